"""What every strategy promises, and what each is."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unembed.config import SEARCHES, STRATEGIES, DecodingConfig, NoiseConfig
from unembed.decoding import Step, decode
from unembed.decoding.euler_remask import least_confident
from unembed.decoding.sampling import Guess, choose, guide, repeated
from unembed.model import NoiseSchedule

BLIND = [name for name in STRATEGIES if name not in SEARCHES]
WRITER = {"freeze_token_embeddings": True, "writer": {"layers": 1}}
# The writer takes no passes of the denoiser: no canvas of it has a date, and it was trained to repeat as texts do.
DENOISING = [name for name in BLIND if name != "writer"]
NOISE = NoiseSchedule(NoiseConfig())
LOGLINEAR = NoiseSchedule(NoiseConfig(schedule="loglinear"))
PROPERTY = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def vectors(rows, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32))


def results(model, embeddings, *, lengths=None, batch_size=64, noise=NOISE, **options):
    """Decode, check what must hold after every pass, and return the final canvas of each row."""
    ended = {}
    for step in decode(model, noise, embeddings, DecodingConfig(**options), lengths=lengths, batch_size=batch_size):
        masked = step.canvas == model.vocabulary.mask
        assert not torch.isin(step.canvas, torch.tensor(model.vocabulary.special)).any()
        assert (step.confidence[masked] == 0).all()
        assert ((step.confidence >= 0) & (step.confidence <= 1 + 1e-6)).all()
        assert torch.allclose(step.mask_rate, masked.float().mean(1))
        for index in step.final.nonzero()[:, 0].tolist():
            row = int(step.rows[index])
            assert row not in ended
            assert not masked[index].any()
            ended[row] = tuple(step.canvas[index].tolist())
    assert sorted(ended) == list(range(len(embeddings)))
    return [ended[row] for row in range(len(embeddings))]


@pytest.mark.parametrize("strategy", BLIND)
@PROPERTY
@given(
    steps=st.integers(1, 40),
    rows=st.integers(1, 6),
    batch_size=st.integers(1, 8),
    candidates=st.integers(1, 15),
    canvas=st.sampled_from(["exact", "fixed"]),
    beams=st.integers(1, 50),
    guidance=st.sampled_from([0.0, 1.5]),
    data=st.data(),
)
def test_ends_with_no_mask_and_no_special_token_whatever_the_options(
    build_model, stir, strategy, steps, rows, batch_size, candidates, canvas, beams, guidance, data
):
    canvas, parts = ("exact", WRITER) if strategy == "writer" else (canvas, {})
    guidance = 0.0 if strategy == "writer" else guidance  # it has no unconditional branch
    model = stir(build_model(canvas=canvas, readout="linear", **parts))
    lengths = None
    if canvas == "exact" and data.draw(st.booleans()):
        lengths = torch.tensor(data.draw(st.lists(st.integers(1, 12), min_size=rows, max_size=rows)))
    ended = results(
        model,
        vectors(rows),
        strategy=strategy,
        steps=steps,
        candidates=candidates,
        guidance=guidance,
        lengths=lengths,
        batch_size=batch_size,
        beams=beams,
        remask_threshold=data.draw(st.none() | st.floats(0, 1)),
        remask_share=data.draw(st.floats(0, 1)),
        refine_share=data.draw(st.floats(0.01, 1)),
        entropy_bound=data.draw(st.floats(0, 10)),
        top_k=data.draw(st.integers(0, 50)),
        temperature=data.draw(st.sampled_from([0.0, 0.5, 1.0, 30.0])),
    )
    if lengths is not None:
        assert [len(ids) for ids in ended] == lengths.tolist()


@pytest.mark.parametrize("strategy", BLIND)
def test_the_same_seed_gives_the_same_text_however_vectors_are_batched_and_ordered(build_model, stir, strategy):
    model = stir(build_model(readout="linear", **WRITER))
    embeddings, options = vectors(9), {"strategy": strategy, "seed": 3, "candidates": 2}
    wanted = results(model, embeddings, **options)
    assert results(model, embeddings, **options) == wanted
    assert results(model, embeddings, **options, batch_size=1) == wanted
    assert [results(model, embeddings[row : row + 1], **options)[0] for row in range(9)] == wanted
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    assert results(model, embeddings[order], **options) == [wanted[row] for row in order.tolist()]


@pytest.mark.parametrize("strategy", ["euler", "euler-remask", "two-stage"])
def test_another_seed_gives_another_draw(build_model, stir, strategy):
    model, lengths = stir(build_model()), torch.full((4,), 12)
    first, second = (results(model, vectors(4), strategy=strategy, seed=seed, lengths=lengths) for seed in (0, 1))
    assert first != second


@pytest.mark.parametrize("strategy", BLIND)
def test_time_conditioned_models_and_log_linear_schedules_decode_too(build_model, stir, strategy):
    model = stir(build_model(time_conditioning=True, **WRITER))
    results(model, vectors(3), strategy=strategy, noise=LOGLINEAR, steps=5)


@pytest.mark.parametrize("noise", [NOISE, LOGLINEAR], ids=["linear", "loglinear"])
@pytest.mark.parametrize("strategy", DENOISING)
def test_every_canvas_is_dated_by_its_mask_rate(build_model, stir, monkeypatch, strategy, noise):
    model = stir(build_model())
    hidden, dates = model.hidden, []

    def watch(canvas, condition, time, where):
        rates = (canvas == model.vocabulary.mask).float().mean(1)
        dates.extend(zip(rates.tolist(), time.tolist(), strict=True))
        return hidden(canvas, condition, time, where)

    monkeypatch.setattr(model, "hidden", watch)
    steps_of(model, rows=2, strategy=strategy, steps=4, noise=noise)
    rates, times = torch.tensor(dates).T
    assert torch.allclose(times, noise.time_of(rates))
    assert len(set(times.tolist())) > 1


def steps_of(model, rows=1, length=12, noise=NOISE, **options):
    lengths = torch.full((rows,), length)
    config = DecodingConfig(**{"candidates": 1} | options)
    return list(decode(model, noise, vectors(rows), config, lengths=lengths))


def test_a_step_reads_texts_up_to_the_first_end_and_tells_results_from_hypotheses(build_model):
    vocabulary = build_model().vocabulary
    eos, pad, mask = vocabulary.eos, vocabulary.pad, vocabulary.mask
    canvas = torch.tensor([[5, 6, eos, 7, pad], [eos] * 5, [5, mask, 7, 8, 9], [5, 6, 7, 8, 9]])
    masked = canvas == mask
    step = Step(
        rows=torch.tensor([3, 4, 5, 3]),
        candidate=torch.tensor([0, 0, 0, 1]),
        canvas=canvas,
        changed=masked,
        confidence=torch.arange(20).reshape(4, 5) / 20,
        mask_rate=masked.float().mean(1),
        passes=torch.tensor([1, 2, 3, 4]),
        score=torch.tensor([-1.0, -2.0, -3.0, -4.0]),
        final=torch.tensor([True, True, False, False]),
        texts_embedded=torch.tensor([7, 8, 9, 10]),
    )
    first, empty = step.finished(vocabulary)
    assert (first.row, first.candidate, first.ids) == (3, 0, [5, 6])
    assert first.confidences == pytest.approx([0.0, 0.05])
    assert (first.passes, first.score, first.texts_embedded) == (1, -1.0, 7)
    assert (empty.row, empty.ids, empty.confidences) == (4, [], [])
    assert [(text.row, text.candidate, text.final) for text in step.complete(vocabulary)] == [
        (3, 0, True),
        (4, 0, True),
        (3, 1, False),
    ]
    assert step.only(3).finished(vocabulary) == []
    assert step.only(3).complete(vocabulary)[0].ids == [5, 6, 7, 8, 9]


def test_sequential_goes_from_left_to_right_one_token_a_pass(build_model, stir):
    steps = steps_of(stir(build_model()), strategy="sequential")
    assert [step.changed[0].nonzero()[:, 0].tolist() for step in steps] == [[position] for position in range(12)]
    assert [int(step.passes[0]) for step in steps] == list(range(1, 13))


def test_sequential_takes_the_likeliest_token_given_the_tokens_before(build_model, stir):
    model = stir(build_model(readout="linear"))
    steps = steps_of(model, strategy="sequential")
    condition = model.condition(vectors(1)).damped(DecodingConfig().repetition_damping)
    canvas = torch.full((1, 12), model.vocabulary.mask)
    for position in range(12):
        logits = model.logits(model.hidden(canvas, condition), canvas == model.vocabulary.mask, canvas, condition)
        canvas[0, position] = logits[0].argmax()
    assert torch.equal(steps[-1].canvas, canvas)


def test_confidence_reveals_the_surest_positions_and_keeps_what_it_revealed(build_model, stir):
    model = stir(build_model())
    before = None
    for step in steps_of(model, rows=3, strategy="confidence", steps=5):
        if before is not None:
            revealed = before != model.vocabulary.mask
            assert torch.equal(step.canvas[revealed], before[revealed])
            assert torch.equal(step.changed, step.canvas != before)
        before = step.canvas
    first = steps_of(model, strategy="confidence", steps=12)[0]
    condition, canvas = (
        model.condition(vectors(1)).damped(DecodingConfig().repetition_damping),
        torch.full((1, 12), model.vocabulary.mask),
    )
    everywhere = torch.ones_like(canvas, dtype=torch.bool)
    sureness = model.logits(model.hidden(canvas, condition), everywhere, canvas, condition).softmax(-1).amax(-1)
    assert first.changed[0].nonzero()[:, 0].tolist() == [int(sureness.argmax())]


def test_of_positions_that_say_the_same_only_the_surest_is_not_a_repetition():
    tokens = torch.tensor([[5, 6, 5, 5, 7, 6]])
    sureness = torch.tensor([[0.2, 0.4, 0.9, 0.9, 0.1, -1.0]])  # the last one was not asked
    marked = repeated(Guess(tokens, sureness, sureness, torch.zeros_like(sureness)))
    assert marked.tolist() == [[True, False, False, True, False, False]]


@pytest.mark.parametrize("strategy", ["confidence", "adaptive"])
def test_no_token_is_revealed_twice_in_a_pass_while_there_is_a_choice(build_model, stir, strategy):
    model = stir(build_model())
    with torch.no_grad():
        model.denoiser.output_bias[7:9] += 50.0  # two tokens outdo all others: nearly everything is a repetition
    first = steps_of(model, rows=4, strategy=strategy, steps=6, entropy_bound=5.0)[0]
    for canvas, changed in zip(first.canvas, first.changed, strict=True):
        said = canvas[changed].tolist()
        assert len(said) <= 2
        assert len(said) == len(set(said)) or len(set(said)) == 1, "only one token was ever the likeliest"


def test_adaptive_takes_more_passes_the_tighter_its_bound(build_model, stir):
    model = stir(build_model())
    passes = [len(steps_of(model, strategy="adaptive", steps=12, entropy_bound=bound)) for bound in (0.0, 2.0, 1e9)]
    assert passes[0] >= passes[1] >= passes[2]
    assert passes[0] > passes[2]


def test_adaptive_lets_finished_rows_go(build_model, stir):
    model = stir(build_model(), seed=5)
    steps = steps_of(model, rows=8, strategy="adaptive", steps=12, entropy_bound=3.0)
    sizes = [len(step.rows) for step in steps]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 8
    assert sizes[-1] < 8, "all rows took the same number of passes; choose another seed"


@pytest.mark.parametrize(
    ("noise", "expected"),
    [(NOISE, [0.75, 0.5, 0.25, 0.0]), (LOGLINEAR, [0.983, 0.924, 0.718, 0.0])],
    ids=["linear", "loglinear"],
)
def test_euler_reveals_in_each_pass_what_the_schedule_says(build_model, stir, noise, expected):
    steps = steps_of(stir(build_model()), rows=64, strategy="euler", steps=4, noise=noise)
    rates = [float((step.mask_rate.sum()) / 64) for step in steps]
    assert rates == pytest.approx(expected, abs=0.06)


def test_euler_samples_from_the_models_distribution(build_model, stir):
    model = stir(build_model())
    condition, canvas = model.condition(vectors(1)), torch.full((1, 1), model.vocabulary.mask)
    logits = model.logits(model.hidden(canvas, condition), torch.ones(1, 1, dtype=torch.bool), canvas, condition)
    draws = torch.arange(10_000) / 10_000
    chosen = choose(logits.expand(len(draws), -1), draws, DecodingConfig())
    shares = torch.bincount(chosen.tokens, minlength=logits.shape[1]) / len(draws)
    assert torch.allclose(shares, logits[0].softmax(-1), atol=2e-3)
    assert torch.allclose(chosen.confidence, logits[0].softmax(-1)[chosen.tokens], atol=1e-5)


def test_top_k_and_temperature_limit_what_is_drawn():
    logits = torch.tensor([[0.0, 3.0, 2.0, 1.0, -torch.inf]]).expand(1000, -1)
    draws = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    assert set(choose(logits, draws, DecodingConfig(top_k=2)).tokens.tolist()) == {1, 2}
    assert set(choose(logits, draws, DecodingConfig(temperature=0.0)).tokens.tolist()) == {1}
    assert set(choose(logits, draws, DecodingConfig(temperature=50.0)).tokens.tolist()) == {0, 1, 2, 3}
    edge = choose(logits[:1], torch.tensor([1.0 - 1e-9]), DecodingConfig(temperature=50.0))
    assert int(edge.tokens) != 4, "a draw at the very edge reached a forbidden token"


def test_remasking_takes_back_its_share_of_the_revealed_positions(build_model, stir):
    model = stir(build_model())
    plain, none, half = (
        steps_of(model, rows=16, strategy=strategy, steps=6, remask_share=share)[0]
        for strategy, share in (("euler", 0.0), ("euler-remask", 0.0), ("euler-remask", 0.5))
    )
    assert torch.equal(plain.canvas, none.canvas)
    revealed, kept = ((step.canvas != model.vocabulary.mask).sum(1) for step in (plain, half))
    assert torch.equal(kept, revealed // 2)
    assert (revealed > 1).any()


def test_the_least_confident_share_is_counted_among_the_marked_positions_only():
    confidence = torch.tensor([[0.5, 0.1, 0.4, 0.2, 0.3, 0.0, 0.0, 0.0]])
    among = torch.tensor([[True, True, True, True, True, False, False, False]])
    assert least_confident(confidence, among, 0.4).nonzero()[:, 1].tolist() == [1, 3]
    assert least_confident(confidence, among, 0.0).sum() == 0
    assert torch.equal(least_confident(confidence, among, 1.0), among)


def test_remasking_goes_by_the_largest_probability_of_the_current_pass(build_model, stir):
    """Not by the drawn token's own probability when it was revealed, which is often low at this temperature."""
    model, threshold = stir(build_model()), 0.3
    options = {"strategy": "euler-remask", "steps": 6, "remask_threshold": threshold, "temperature": 3.0}
    steps = steps_of(model, rows=8, **options)
    condition = model.condition(vectors(8)).damped(DecodingConfig().repetition_damping)
    before, kept_with_little_confidence = torch.full((8, 12), model.vocabulary.mask), 0
    for step in steps[:-1]:
        assert len(step.rows) == 8, "a row was finished early; choose another seed"
        everywhere = torch.ones_like(before, dtype=torch.bool)
        logits = model.logits(model.hidden(before, condition), everywhere, before, condition)
        largest = logits.softmax(-1).amax(-1).reshape(8, 12)
        kept = step.canvas != model.vocabulary.mask
        assert (largest[kept] >= threshold - 1e-5).all()
        lost = (before != model.vocabulary.mask) & ~kept
        assert (largest[lost] < threshold + 1e-5).all()
        kept_with_little_confidence += int((kept & (step.confidence < threshold)).sum())
        before = step.canvas
    assert kept_with_little_confidence


def test_two_stage_goes_on_from_the_time_of_the_share_that_it_masks_again(build_model, stir):
    steps = steps_of(stir(build_model()), rows=64, strategy="two-stage", steps=4, refine_share=0.25, noise=LOGLINEAR)
    start = float(LOGLINEAR.time_of(torch.tensor(0.25)))
    expected = float(LOGLINEAR.mask_rate(torch.tensor(0.75 * start)))
    assert float(steps[12].mask_rate.mean()) == pytest.approx(expected, abs=0.02)


def test_two_stage_changes_no_more_than_its_share_of_the_sequential_hypothesis(build_model, stir):
    model = stir(build_model())
    steps = steps_of(model, strategy="two-stage", steps=4, refine_share=0.25, temperature=5.0)
    hypothesis = steps_of(model, strategy="sequential")[-1]
    assert torch.equal(steps[11].canvas, hypothesis.canvas)
    kept = steps[-1].canvas == hypothesis.canvas
    assert int((~kept).sum()) <= 3
    assert (hypothesis.confidence[~kept].max() if (~kept).any() else 0.0) <= hypothesis.confidence[kept].min()


@pytest.mark.parametrize("guidance", [0.0, 1.0])
@pytest.mark.parametrize("strategy", DENOISING)
def test_the_more_repetition_is_damped_the_fewer_tokens_come_twice(build_model, stir, strategy, guidance):
    model, lengths = stir(build_model(readout="linear")), torch.full((8,), 12)
    model.readout.repetition.fill_(2.0)
    model.prior_damping.data.fill_(1.0)
    different = [
        sum(
            len(set(ids))
            for ids in results(
                model, vectors(8), strategy=strategy, guidance=guidance, lengths=lengths, repetition_damping=damping
            )
        )
        for damping in (0.0, 1.0, 50.0)
    ]
    assert different[0] < different[1] < different[2]


def test_guidance_moves_away_from_the_unconditional_model_and_keeps_forbidden_tokens_out():
    logits = torch.tensor([[1.0, 2.0, -torch.inf]])
    without = torch.tensor([[2.0, 1.0, -torch.inf]])
    assert guide(logits, without, 2.0).tolist() == [[-1.0, 4.0, -torch.inf]]


def test_guidance_computes_a_second_pass_and_changes_the_result(build_model, stir):
    model = stir(build_model())
    assert results(model, vectors(6), guidance=4.0) != results(model, vectors(6))


def test_the_condition_is_computed_once_and_logits_only_where_they_are_needed(build_model, stir, monkeypatch):
    model = stir(build_model())
    calls = {"condition": 0, "positions": []}
    condition, logits = model.condition, model.logits

    def count_condition(*arguments):
        calls["condition"] += 1
        return condition(*arguments)

    def count_logits(hidden, where, canvas, said):
        calls["positions"].append(int(where.sum()))
        return logits(hidden, where, canvas, said)

    monkeypatch.setattr(model, "condition", count_condition)
    monkeypatch.setattr(model, "logits", count_logits)
    steps_of(model, rows=3, strategy="sequential")
    assert calls == {"condition": 1, "positions": [3] * 12}


def test_logits_of_many_rows_are_computed_in_portions(build_model, stir, monkeypatch):
    model = stir(build_model())
    wanted = results(model, vectors(8), strategy="confidence")
    largest = []
    logits = model.logits
    monkeypatch.setattr("unembed.decoding.canvases._LOGITS_AT_ONCE", 10 * 40)
    monkeypatch.setattr(
        model, "logits", lambda h, where, *rest: largest.append(int(where.sum())) or logits(h, where, *rest)
    )
    assert results(model, vectors(8), strategy="confidence") == wanted
    assert max(largest) < 10 + 12


def test_gradients_are_not_switched_off_for_the_receiver(build_model, stir):
    for _ in decode(stir(build_model()), NOISE, vectors(1), DecodingConfig()):
        assert torch.is_grad_enabled()
