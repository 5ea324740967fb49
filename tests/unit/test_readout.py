import math

import pytest
import torch
from torch.testing import assert_close

from unembed.config import ReadoutConfig
from unembed.errors import ConfigError
from unembed.model.candidates import draw_candidates
from unembed.model.readout import bag_f1, bag_of_tokens, make_readout, scale_to_sphere


def bags(rows=600, outputs=30, dim=16, seed=0):
    """Rows whose vector is the sum of their tokens' directions: what a linear readout can learn."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(outputs, dim, generator=torch.Generator().manual_seed(99))
    tokens = torch.stack([torch.randperm(outputs, generator=generator)[:3] for _ in range(rows)])
    padded = torch.cat([tokens, torch.full((rows, 2), outputs + 1)], dim=1)
    return directions[tokens].sum(1), padded


def fitted(kind, ridge=0.01):
    readout = make_readout(ReadoutConfig(kind=kind, bottleneck=32), 16, 30, 30)
    embeddings, tokens = bags()
    readout.fit(iter([(embeddings[:200], tokens[:200]), (embeddings[200:], tokens[200:])]), ridge)
    return readout


def test_a_bag_holds_each_token_once_and_no_padding():
    dense = bag_of_tokens(torch.tensor([[1, 1, 2, 9], [0, 9, 9, 9]]), 5).to_dense()
    assert dense.tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 0]]


def test_the_closed_form_is_the_ridge_regression_to_the_bag():
    readout = fitted("linear", ridge=0.05)
    embeddings, tokens = bags()
    inputs = scale_to_sphere(embeddings).double()
    targets = bag_of_tokens(tokens, 30).to_dense().double()
    centred = inputs - inputs.mean(0)
    weights = torch.linalg.solve(
        centred.T @ centred + 0.05 * len(inputs) * torch.eye(16, dtype=torch.float64),
        centred.T @ (targets - targets.mean(0)),
    )
    assert_close(readout.linear.weight.double(), weights.T, atol=1e-5, rtol=1e-3)


def test_the_readout_alone_finds_a_held_out_text_s_tokens():
    embeddings, tokens = bags(rows=200, seed=5)
    found = bag_f1(fitted("linear")(embeddings), tokens, 30)
    base = bag_f1(fitted("linear").base.expand(200, -1), tokens, 30)
    assert found > 0.6 > 0.3 > base


def test_base_rates_are_the_tokens_shares_and_stand_in_for_a_dropped_vector():
    readout = fitted("linear")
    _, tokens = bags()
    presence = bag_of_tokens(tokens, 30).to_dense().mean(0)
    assert_close(readout.base.exp(), presence, atol=1e-6, rtol=1e-4)
    prior = readout(torch.randn(2, 16), torch.tensor([True, False]))
    assert_close(prior[0], readout.base)
    assert not torch.allclose(prior[1], readout.base)


def test_a_token_that_often_stands_twice_in_a_text_returns_with_less_surprise():
    readout = make_readout(ReadoutConfig(kind="mlp"), 16, 30, 30)
    tokens = torch.tensor([[3, 3, 4, 99], [3, 3, 5, 99]]).repeat(500, 1)
    readout.fit(iter([(torch.randn(1000, 16), tokens)]), 0.01)
    surprise = readout.repetition.exp().reciprocal()
    assert surprise[3] == pytest.approx(0.5, abs=0.01)
    assert surprise[4] < 0.01
    assert surprise[7] == pytest.approx(0.05), "never seen: as words usually return"


def fitted_mlp(blocks):
    torch.manual_seed(0)
    readout = make_readout(ReadoutConfig(kind="mlp", bottleneck=32, blocks=blocks), 16, 30, 30)
    readout.fit(iter([bags()]), 0.01)
    return readout


@pytest.mark.parametrize("blocks", [0, 2])
def test_the_mlp_prior_is_a_distribution_and_learns_by_its_loss(blocks):
    readout = fitted_mlp(blocks)
    embeddings, tokens = bags()
    assert_close(readout(embeddings).exp().sum(1), torch.ones(len(embeddings)))
    before = float(readout.bag_loss(embeddings, tokens))
    readout.requires_grad_(True)
    optimiser = torch.optim.AdamW(readout.parameters(), lr=1e-2)
    for _ in range(60):
        readout.bag_loss(embeddings, tokens).backward()
        optimiser.step()
        optimiser.zero_grad()
    assert float(readout.bag_loss(embeddings, tokens).detach()) < before - 0.5


def test_a_sampled_softmax_weighs_the_drawn_tokens_as_all_that_are_not_drawn():
    """Where every word is equally likely, any draw gives the full softmax exactly."""
    readout = fitted_mlp(0)
    torch.nn.init.zeros_(readout.out.weight)
    torch.nn.init.zeros_(readout.out.bias)
    embeddings, _ = bags(rows=4)
    tokens = torch.tensor([[5, 6, 99]] * 4)
    drawn = draw_candidates(torch.tensor([5, 6]), torch.arange(3), 30, 8, torch.Generator().manual_seed(0))
    assert len(drawn.tokens) == 3 + 2 + 8
    assert float(readout.bag_loss(embeddings, tokens, drawn)) == pytest.approx(math.log(30), rel=1e-5)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_loss_weighs_texts_by_their_length_as_the_power_says(power):
    readout = fitted_mlp(0)
    embeddings, _ = bags(rows=2)
    long, short = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[9, 99, 99, 99]])
    alone = [readout.bag_loss(embeddings[:1], long), readout.bag_loss(embeddings[1:], short)]
    weight = 4 ** (1 - power)
    expected = (weight * alone[0] + alone[1]) / (weight + 1)
    assert_close(readout.bag_loss(embeddings, torch.cat([long, short]), length_power=power), expected)


def test_the_width_of_the_blocks_is_a_choice_and_old_ones_have_four_bottlenecks():
    def shape(**changes):
        config = ReadoutConfig(kind="mlp", bottleneck=8, blocks=1, **changes)
        return tuple(make_readout(config, 16, 30, 30).blocks[0].up.weight.shape)

    assert shape() == (32, 8)
    assert shape(expansion=6) == (48, 8)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_word_scores_order_words_as_log_prior_less_half_the_base_rate_does(kind):
    readout, (embeddings, _) = fitted(kind), bags(rows=5, seed=3)
    words = torch.tensor([1, 4, 7, 20])
    weight, bias = readout.word_scores(words)
    scores = readout.features(embeddings) @ weight.T + bias
    expected = readout.word_log_probabilities(embeddings)[:, words] - readout.base[words] / 2
    if kind == "linear":  # scores are probabilities there, and negative where the prior is cut off
        assert_close(scores.clamp(min=1e-3).log(), expected.clamp(min=math.log(1e-3)), atol=1e-3, rtol=1e-3)
    else:
        assert_close(scores.log_softmax(1), expected.log_softmax(1))


def test_without_a_readout_there_are_no_words_to_name():
    readout = make_readout(ReadoutConfig(kind="none"), 16, 30, 30)
    readout.fit(iter([bags()]), 0.01)
    for ask in (lambda: readout.word_scores(torch.tensor([1])), lambda: readout.word_log_probabilities(bags()[0])):
        with pytest.raises(ConfigError, match="has no readout"):
            ask()


def test_blocks_change_nothing_until_they_are_trained():
    plain, grown = fitted_mlp(0), fitted_mlp(2)
    missing, unknown = grown.load_state_dict(plain.state_dict(), strict=False)
    assert all(name.startswith("blocks.") for name in missing)
    assert not unknown
    embeddings, _ = bags()
    assert_close(grown(embeddings), plain(embeddings))
    torch.nn.init.ones_(grown.blocks[1].down.bias)
    assert not torch.allclose(grown(embeddings), plain(embeddings))


def test_no_readout_adds_nothing():
    assert not make_readout(ReadoutConfig(kind="none"), 16, 30, 30)(torch.randn(3, 16)).any()


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_end_and_padding_of_a_fixed_canvas_are_no_words_to_the_readout(kind):
    embeddings, tokens = bags()  # padded with id 31, which a fixed canvas scores
    plain, closed = (make_readout(ReadoutConfig(kind=kind, bottleneck=32), 16, 30, outputs) for outputs in (30, 32))
    closed.load_state_dict(plain.state_dict())
    for readout in (plain, closed):
        readout.fit(iter([(embeddings, tokens)]), 0.01)
    prior = closed(embeddings)
    assert_close(prior[:, :30], plain(embeddings))
    assert not prior[:, 30:].any()
    if kind == "mlp":
        assert_close(closed.bag_loss(embeddings, tokens), plain.bag_loss(embeddings, tokens))
    some = torch.tensor([2, 7, 31])  # normalised over all words, for [PAD] is compared with them
    assert_close(closed(embeddings, None, some), prior[:, some], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["none", "linear", "mlp"])
def test_a_readout_is_not_trained_with_the_denoiser(kind):
    assert not any(parameter.requires_grad for parameter in fitted(kind).parameters())
