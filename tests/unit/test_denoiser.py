import pytest
import torch
from torch.testing import assert_close

from unembed.model.candidates import Candidates

VARIANTS = [
    {"norm": norm, "conditioning": conditioning, "time_conditioning": timed}
    for norm in ("pre", "post")
    for conditioning in ("adaln", "adaln-zero")
    for timed in (False, True)
]
VARIANTS += [
    {"architecture": "mpnet", "norm": "post"},
    {"architecture": "modernbert", "rotary": {"global_every": 3, "window": 4}},
]


def inputs(model, rows=5, length=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(rows, 16, generator=generator)
    canvas = torch.randint(2, model.vocabulary.size, (rows, length), generator=generator)
    canvas[:, ::2] = model.vocabulary.mask
    return embeddings, canvas, torch.rand(rows, generator=generator)


def run(model, embeddings, canvas, times):
    condition = model.condition(embeddings)
    where = canvas == model.vocabulary.mask
    return model.logits(model.hidden(canvas, condition, times), where, canvas, condition)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_fresh_model_is_not_modulated_by_its_vector(build_model, variant):
    model = build_model(**variant)
    embeddings, canvas, times = inputs(model)
    assert_close(run(model, embeddings, canvas, times), run(model, -embeddings, canvas, 1 - times))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_trained_model_depends_on_its_vector(build_model, stir, variant):
    model = stir(build_model(**variant))
    embeddings, canvas, times = inputs(model)
    assert not torch.allclose(run(model, embeddings, canvas, times), run(model, -embeddings, canvas, times), atol=1e-2)


def test_adaln_zero_starts_as_the_identity(build_model):
    model = build_model(norm="pre", conditioning="adaln-zero").denoiser
    hidden = torch.randn(3, 5, 24)
    modulation = model.condition(torch.randn(3, 16))
    assert_close(model.blocks[0](hidden, modulation.blocks[:, 0]), hidden)


@pytest.mark.parametrize("timed", [False, True])
def test_time_matters_only_with_time_conditioning(build_model, stir, timed):
    model = stir(build_model(time_conditioning=timed))
    embeddings, canvas, times = inputs(model)
    same = torch.allclose(run(model, embeddings, canvas, times), run(model, embeddings, canvas, 1 - times), atol=1e-4)
    assert same is not timed


def test_time_conditioning_adds_to_the_condition_as_in_eq_8_and_9(build_model, stir):
    model = stir(build_model(time_conditioning=True)).denoiser
    embeddings, canvas, times = inputs(model)
    modulation = model.condition(embeddings)
    blocks, final = model._split(model._time_modulation(times))
    by_hand = modulation._replace(blocks=modulation.blocks + blocks, final=modulation.final + final)
    expected = model.hidden(canvas, modulation, times)
    model.time_modulation.weight.data.zero_()
    model.time_modulation.bias.data.zero_()
    assert_close(model.hidden(canvas, by_hand, times), expected)


def test_eq_10_without_gates(build_model, stir):
    block = stir(build_model(norm="pre", conditioning="adaln")).denoiser.blocks[0]
    hidden, modulation = torch.randn(2, 4, 24), torch.randn(2, 4, 24)
    scale, shift = modulation[:, 0:1], modulation[:, 1:2]
    normed = (hidden - hidden.mean(-1, keepdim=True)) / hidden.std(-1, keepdim=True, unbiased=False)
    after_attention = hidden + block._attend((1 + scale) * normed + shift)
    scale, shift = modulation[:, 2:3], modulation[:, 3:4]
    normed = (after_attention - after_attention.mean(-1, keepdim=True)) / after_attention.std(
        -1, keepdim=True, unbiased=False
    )
    expected = after_attention + block._feed((1 + scale) * normed + shift)
    assert_close(block(hidden, modulation), expected, atol=1e-4, rtol=1e-4)


def test_every_position_sees_every_other(build_model, stir):
    model = stir(build_model())
    embeddings, canvas, _ = inputs(model)
    condition = model.condition(embeddings)
    before = model.hidden(canvas, condition)
    canvas[:, 5] = (canvas[:, 5] + 1 - 2) % 38 + 2
    moved = (model.hidden(canvas, condition) - before).abs().amax(-1)
    assert (moved > 1e-5).all()


def test_the_norm_of_a_vector_does_not_matter(build_model, stir):
    model = stir(build_model(readout="linear"))
    embeddings, canvas, times = inputs(model)
    assert_close(
        run(model, embeddings, canvas, times), run(model, 7.0 * embeddings, canvas, times), atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("canvas_kind", ["exact", "fixed"])
def test_the_mask_has_no_score_and_special_tokens_have_none_to_win_with(build_model, stir, canvas_kind):
    model = stir(build_model(canvas=canvas_kind))
    logits = run(model, *inputs(model))
    assert logits.shape[1] <= model.vocabulary.mask
    assert (logits[:, list(model.vocabulary.special)] == -torch.inf).all()
    assert torch.isfinite(logits[:, 2:]).all()


def test_only_a_fixed_canvas_scores_end_and_padding(build_model):
    assert build_model(canvas="exact").denoiser.outputs == 40
    assert build_model(canvas="fixed").denoiser.outputs == 42


def test_logits_are_computed_at_the_asked_positions_only_and_are_those_of_the_dense_head(build_model, stir):
    model = stir(build_model(readout="linear"))
    embeddings, canvas, times = inputs(model)
    condition = model.condition(embeddings)
    hidden = model.hidden(canvas, condition, times)
    everywhere = torch.ones_like(canvas, dtype=torch.bool)
    dense = model.logits(hidden, everywhere, canvas, condition).view(*canvas.shape, -1)
    masked = canvas == model.vocabulary.mask
    assert_close(model.logits(hidden, masked, canvas, condition), dense[masked])


@pytest.mark.parametrize("prefix_tokens", [0, 2])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_last_block_may_leave_out_positions_that_do_not_matter(build_model, stir, variant, prefix_tokens):
    model = stir(build_model(prefix_tokens=prefix_tokens, **variant))
    embeddings, canvas, times = inputs(model)
    condition = model.condition(embeddings)
    whole = model.hidden(canvas, condition, times)
    seen = []
    model.denoiser.blocks[-1].feedforward_in.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[1]))
    even = torch.rand(canvas.shape).argsort(1) < 2
    found = model.hidden(canvas, condition, times, even)
    assert_close(found[even], whole[even])
    assert not found[~even].any()
    uneven = torch.arange(7) <= torch.arange(5)[:, None]
    assert_close(model.hidden(canvas, condition, times, uneven)[uneven], whole[uneven])
    assert seen == [2, 7 + prefix_tokens]


@pytest.mark.parametrize("readout", ["none", "linear", "mlp"])
def test_scoring_a_choice_of_tokens_gives_their_columns_but_for_a_constant_per_row(build_model, stir, readout):
    model = stir(build_model(readout=readout))
    embeddings, canvas, times = inputs(model)
    tokens, correction = torch.tensor([3, 17, 22, 39]), torch.tensor([0.0, 0.5, 0.0, 2.0])
    canvas[:, 1] = 17  # a candidate that is revealed, and so damped
    dropped = torch.tensor([False, True, False, False, False])
    masked = canvas == model.vocabulary.mask
    whole = model.condition(embeddings, dropped)
    some = model.condition(embeddings, dropped, Candidates(tokens, correction))
    hidden = model.hidden(canvas, whole, times)
    everything = model.logits(hidden, masked, canvas, whole)[:, tokens] + correction
    chosen = model.logits(hidden, masked, canvas, some)
    assert_close(chosen.log_softmax(-1), everything.log_softmax(-1), atol=1e-4, rtol=1e-4)


def test_a_condition_computed_once_serves_every_pass_and_any_part_of_the_batch(build_model, stir):
    model = stir(build_model(readout="linear", prefix_tokens=2))
    embeddings, canvas, _ = inputs(model)
    condition = model.condition(embeddings)
    rows = torch.tensor([3, 1])
    whole = model.hidden(canvas, condition)
    assert_close(model.hidden(canvas[rows], condition.rows(rows)), whole[rows], atol=1e-5, rtol=1e-4)
    assert_close(model.condition(embeddings[rows]).offsets, condition.rows(rows).offsets, atol=1e-5, rtol=1e-4)


def test_a_dropped_condition_is_the_same_for_all_vectors(build_model, stir):
    model = stir(build_model(readout="linear"))
    embeddings, _, _ = inputs(model)
    dropped = model.condition(embeddings, torch.ones(len(embeddings), dtype=torch.bool))
    assert_close(dropped.modulation.blocks, dropped.modulation.blocks[:1].expand_as(dropped.modulation.blocks))
    assert_close(dropped.offsets, dropped.offsets[:1].expand_as(dropped.offsets))


def test_revealed_tokens_lose_some_of_their_prior_the_more_the_rarer_they_return(build_model, stir):
    model = stir(build_model(readout="linear"))
    model.readout.repetition.copy_(torch.linspace(0.5, 3.0, 40))
    embeddings, canvas, times = inputs(model)
    condition = model.condition(embeddings)
    hidden, masked = model.hidden(canvas, condition, times), canvas == model.vocabulary.mask
    model.prior_damping.data.fill_(0.0)
    plain = model.logits(hidden, masked, canvas, condition)
    model.prior_damping.data.fill_(2.0)
    damped = model.logits(hidden, masked, canvas, condition)
    rows = masked.nonzero()[:, 0]
    for difference, row in zip(plain - damped, rows, strict=True):
        counts = torch.bincount(canvas[row][canvas[row] < 40], minlength=40)
        assert_close(difference[2:], (2.0 * counts * model.readout.repetition)[2:], atol=1e-4, rtol=1e-4)
    stronger = model.logits(hidden, masked, canvas, condition.damped(3.0).rows(torch.arange(5)))
    assert_close((plain - stronger)[:, 2:], 3.0 * (plain - damped)[:, 2:], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("canvas_kind", ["exact", "fixed"])
@pytest.mark.parametrize("with_entropy", [False, True])
def test_a_shortlist_of_the_likeliest_tokens_gives_what_all_tokens_would_if_it_holds_enough(
    build_model, stir, monkeypatch, canvas_kind, with_entropy
):
    model = stir(build_model(readout="linear", canvas=canvas_kind))
    embeddings, canvas, times = inputs(model)
    canvas[0, :] = model.vocabulary.mask  # so that rows have different numbers of masks
    masked = canvas == model.vocabulary.mask
    whole = model.condition(embeddings).damped(2.0)
    hidden = model.hidden(canvas, whole, times)
    kept = model.denoiser.outputs - len(model.vocabulary.special)  # all but the forbidden ones
    monkeypatch.setattr("unembed.model.mdlm.SHORTLIST", kept)
    short = model.shorten(whole)
    assert (whole.choices, short.choices) == (model.denoiser.outputs, kept)
    order = torch.tensor([4, 0, 1, 3, 2])
    everything = model.likeliest(hidden[order], masked[order], canvas[order], whole.rows(order))
    chosen = model.likeliest(hidden[order], masked[order], canvas[order], short.rows(order), with_entropy=with_entropy)
    assert torch.equal(chosen.tokens, everything.tokens)
    assert_close(chosen.confidence, everything.confidence, atol=1e-5, rtol=1e-4)
    assert bool(chosen.entropy.isfinite().all()) == with_entropy


def test_a_shortlist_holds_the_likeliest_tokens_of_each_vector_alone(build_model, stir, monkeypatch):
    model = stir(build_model(readout="linear"))
    embeddings, canvas, times = inputs(model)
    condition = model.condition(embeddings)
    assert model.shorten(condition) is condition, "the vocabulary is shorter than a shortlist"
    monkeypatch.setattr("unembed.model.mdlm.SHORTLIST", 5)
    masked = canvas == model.vocabulary.mask
    chosen = model.likeliest(model.hidden(canvas, condition, times), masked, canvas, model.shorten(condition))
    best = condition.offsets.topk(5).indices
    assert all(token in best[row] for token, row in zip(chosen.tokens, masked.nonzero()[:, 0], strict=True))
    without = stir(build_model())
    assert without.shorten(without.condition(embeddings)).shortlist is None, "nothing is known of its vectors"


def test_prefix_tokens_carry_the_vector_and_take_no_place_on_the_canvas(build_model, stir):
    model = stir(build_model(prefix_tokens=3))
    embeddings, canvas, times = inputs(model)
    assert model.hidden(canvas, model.condition(embeddings), times).shape == (5, 7, 24)


def test_the_length_head_scores_every_length_and_a_fixed_canvas_has_none(build_model):
    from unembed.errors import ConfigError

    assert build_model().length_logits(torch.randn(3, 16)).shape == (3, 12)
    with pytest.raises(ConfigError, match="no length head"):
        build_model(canvas="fixed").length_logits(torch.randn(3, 16))


def test_frozen_token_embeddings_are_not_trained(build_model):
    model = build_model(norm="post", freeze_token_embeddings=True)
    assert not model.denoiser.token_embedding.weight.requires_grad
    assert model.denoiser.own_embedding.weight.requires_grad


@pytest.mark.parametrize("canvas", ["exact", "fixed"])
def test_weights_laid_out_for_decoding_give_the_same_logits_and_are_not_saved(build_model, stir, canvas):
    plain, laid_out = (stir(build_model(readout="linear", canvas=canvas)) for _ in range(2))
    laid_out.lay_out_for_decoding()
    assert plain.state_dict().keys() == laid_out.state_dict().keys()
    ids = torch.full((2, 12), plain.vocabulary.mask)
    for asked in (1, 2, 5):
        where = torch.zeros(2, 12, dtype=torch.bool)
        where[0, :asked] = True
        found = []
        for model in (plain, laid_out):
            condition = model.condition(torch.ones(2, 16))
            found.append(model.logits(model.hidden(ids, condition), where, ids, condition))
        assert_close(*found)
