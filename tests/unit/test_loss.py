import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from unembed.config import NoiseConfig, TrainingConfig
from unembed.model import NoiseSchedule, Objective
from unembed.model.candidates import draw_candidates
from unembed.model.loss import Noised


def objective(noise=None, counts=None, **training):
    training = {"condition_dropout": 0.0} | training
    counts = torch.arange(40, 0, -1) if counts is None else counts
    return Objective(NoiseSchedule(noise or NoiseConfig()), TrainingConfig(**training), counts)


def batch(rows=6, length=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 16, generator=generator), torch.randint(2, 40, (rows, length), generator=generator)


def test_the_loss_is_the_weighted_cross_entropy_of_masked_positions_per_token(build_model, stir):
    model, (embeddings, tokens) = stir(build_model()), batch()
    loss = objective()
    noised = loss.draw(tokens, torch.Generator().manual_seed(1))
    canvas = tokens.masked_fill(noised.masks, model.vocabulary.mask)
    condition = model.condition(embeddings)
    everywhere = torch.ones_like(tokens, dtype=torch.bool)
    dense = model.logits(model.hidden(canvas, condition), everywhere, canvas, condition).view(*tokens.shape, -1)
    entropies = -dense.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
    expected = (entropies * noised.masks / noised.times[:, None]).sum() / tokens.numel()
    assert_close(loss(model, embeddings, tokens, noised), expected)


@pytest.mark.parametrize("masking", ["independent", "count"])
def test_a_uniform_model_has_the_elbo_of_uniform_guessing(build_model, masking):
    model = build_model()
    with torch.no_grad():
        for parameter in model.denoiser.parameters():
            parameter.zero_()
    embeddings, tokens = batch(rows=64, length=8)
    loss = objective(NoiseConfig(masking=masking))
    draws = [
        float(loss(model, embeddings, tokens, loss.draw(tokens, torch.Generator().manual_seed(seed))))
        for seed in range(60)
    ]
    assert sum(draws) / len(draws) == pytest.approx(math.log(38), rel=0.05)  # 40 tokens less two special ones


@pytest.mark.parametrize("settings", [{}, {"masking": "count"}, {"schedule": "loglinear"}], ids=str)
def test_the_exact_elbo_of_a_two_token_text_is_its_average_over_orders(build_model, stir, settings):
    """With exact weights the ELBO is the mean negative log-likelihood over reveal orders, whatever the schedule."""
    model = stir(build_model())
    embeddings, tokens = batch(rows=1, length=2)
    condition = model.condition(embeddings)

    def entropy(canvas, position):
        where = torch.zeros_like(canvas, dtype=torch.bool)
        where[0, position] = True
        logits = model.logits(model.hidden(canvas, condition), where, canvas, condition)
        return -float(logits.log_softmax(-1)[0, tokens[0, position]].detach())

    total = 0.0
    for order in itertools.permutations(range(2)):
        canvas = torch.full((1, 2), model.vocabulary.mask)
        for position in order:
            total += entropy(canvas, position) / 2
            canvas = canvas.clone()
            canvas[0, position] = tokens[0, position]
    rows = 20_000
    loss = objective(NoiseConfig(minimum_time=1e-4, **settings))
    many, same = embeddings.expand(rows, -1), tokens.expand(rows, -1)
    with torch.no_grad():
        estimate = loss(model, many, same, loss.draw(same, torch.Generator().manual_seed(0)))
    assert float(estimate) * 2 == pytest.approx(total, rel=0.03)


def test_padding_counts_a_tenth_on_a_fixed_canvas(build_model, stir):
    model = stir(build_model(canvas="fixed"))
    embeddings, tokens = batch(rows=4, length=12)
    tokens[:, 6], tokens[:, 7:] = model.vocabulary.eos, model.vocabulary.pad
    masks = torch.ones_like(tokens, dtype=torch.bool)
    noised = Noised(torch.ones(4), torch.ones(4), masks, torch.zeros(4, dtype=torch.bool), None)
    canvas = torch.full_like(tokens, model.vocabulary.mask)
    condition = model.condition(embeddings)
    logits = model.logits(model.hidden(canvas, condition), masks, canvas, condition)
    entropies = -logits.log_softmax(-1).gather(1, tokens.view(-1, 1))[:, 0].view(4, 12)
    weights = torch.ones(4, 12)
    weights[:, 7:] = 0.1
    counts = torch.ones(42)
    expected = (entropies * weights).sum() / weights.sum()
    assert_close(objective(counts=counts)(model, embeddings, tokens, noised), expected)


@pytest.mark.parametrize("readout", ["linear", "mlp"])
@pytest.mark.parametrize("canvas", ["exact", "fixed"])
def test_sampling_every_token_gives_the_full_softmax(build_model, stir, canvas, readout):
    model, (embeddings, tokens) = stir(build_model(readout=readout, canvas=canvas)), batch(length=12)
    if canvas == "fixed":
        tokens[:, 5], tokens[:, 6:] = model.vocabulary.eos, model.vocabulary.pad
    counts = torch.ones(model.denoiser.outputs)
    sampled = objective(counts=counts, sampled_softmax=42, frequent_tokens=5)
    noised = sampled.draw(tokens, torch.Generator().manual_seed(2))
    full = objective(counts=counts)(model, embeddings, tokens, noised._replace(candidates=None))
    assert noised.candidates is not None
    assert_close(sampled(model, embeddings, tokens, noised), full)


def test_the_sampled_softmax_estimates_the_full_one_and_always_holds_the_targets(build_model, stir):
    model, (embeddings, tokens) = stir(build_model()), batch(rows=16)
    sampled = objective(sampled_softmax=8, frequent_tokens=4)
    base = sampled.draw(tokens, torch.Generator().manual_seed(3))
    full = float(objective()(model, embeddings, tokens, base._replace(candidates=None)))
    estimates = []
    for seed in range(120):
        drawn = draw_candidates(
            tokens[base.masks], torch.arange(4), model.denoiser.outputs, 8, torch.Generator().manual_seed(seed)
        )
        assert torch.isin(tokens[base.masks], drawn.tokens).all()
        with torch.no_grad():
            estimates.append(float(sampled(model, embeddings, tokens, base._replace(candidates=drawn))))
    assert sum(estimates) / len(estimates) == pytest.approx(full, rel=0.05)


def test_the_tokens_that_are_drawn_stand_for_all_that_are_not(build_model):
    """Where every token is equally likely, any draw gives the full softmax exactly."""
    model = build_model()
    with torch.no_grad():
        for parameter in model.denoiser.parameters():
            parameter.zero_()
    embeddings, tokens = batch(rows=4)
    tokens = 5 + tokens % 2  # two targets, so that most tokens are drawn or not
    sampled = objective(sampled_softmax=8, frequent_tokens=4)  # among the frequent are the two special ones
    noised = sampled.draw(tokens, torch.Generator().manual_seed(1))
    assert len(noised.candidates.tokens) == 4 + 2 + 8
    per_token = sampled(model, embeddings, tokens, noised._replace(weights=torch.ones(4)))
    assert float(per_token) == pytest.approx(math.log(38) * float(noised.masks.float().mean()), rel=1e-5)


def test_the_same_generator_draws_the_same_noise():
    _, tokens = batch()
    loss = objective(sampled_softmax=8, frequent_tokens=4, condition_dropout=0.5)
    one, two = (loss.draw(tokens, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one.masks, two.masks)
    assert torch.equal(one.times, two.times)
    assert torch.equal(one.dropped, two.dropped)
    assert torch.equal(one.candidates.tokens, two.candidates.tokens)
