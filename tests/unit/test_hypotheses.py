"""Which hypotheses of a vector are decoded blind, how they are scored, and which is kept."""

import copy

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from unembed.config import SEARCHES, STRATEGIES, DecodingConfig, NoiseConfig
from unembed.decoding import decode
from unembed.decoding.blind import decode_hypotheses
from unembed.model import NoiseSchedule

BLIND = [name for name in STRATEGIES if name not in SEARCHES]
NOISE = NoiseSchedule(NoiseConfig())
SURROGATE = {"freeze_token_embeddings": True, "surrogate": {"layers": 1}}


def vectors(rows, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32))


def test_more_candidates_never_give_a_worse_score(build_model, stir):
    model = stir(build_model(readout="linear", freeze_token_embeddings=True, writer={"layers": 1}))
    for strategy in BLIND:
        scores = []
        for candidates in (1, 5):
            options = DecodingConfig(strategy=strategy, candidates=candidates)
            final = [step for step in decode(model, NOISE, vectors(6), options) if step.final.any()]
            best = {int(row): float(score) for step in final for row, score in zip(step.rows, step.score, strict=True)}
            scores.append(torch.tensor([best[row] for row in range(6)]))
        assert (scores[1] >= scores[0] - 1e-5).all()


@torch.no_grad()
def test_the_score_is_what_the_tokens_cover_of_the_prior_and_a_little_of_length_and_confidence(build_model, stir):
    model = stir(build_model(readout="linear"))
    lengths = model.length_logits(vectors(2)).log_softmax(-1)
    prior = model.condition(vectors(2)).offsets.softmax(-1)
    scored = 0
    for step in decode_hypotheses(model, NOISE, vectors(2), DecodingConfig(candidates=3, repetition_damping=0.0)):
        for index in step.final.nonzero()[:, 0].tolist():
            row, length = int(step.rows[index]), step.canvas.shape[1]
            different = list(set(step.canvas[index].tolist()))
            expected = (
                prior[row, different].sum() / length**0.5
                + 0.03 * lengths[row, length - 1]
                + 0.02 * step.confidence[index].log().mean()
            )
            assert float(step.score[index]) == pytest.approx(float(expected), abs=1e-5)
            assert step.finished(model.vocabulary)[0].fluency == pytest.approx(
                float(step.confidence[0].log().mean()), abs=1e-5
            )
            scored += 1
    assert scored == 6


def test_candidates_are_the_likeliest_lengths(build_model, stir):
    model = stir(build_model())
    options = DecodingConfig(candidates=3)
    lengths = {
        (int(candidate), step.canvas.shape[1])
        for step in decode(model, NOISE, vectors(1), options)
        for candidate in step.candidate
    }
    best = model.length_logits(vectors(1))[0].topk(3).indices + 1
    assert lengths == set(enumerate(best.tolist()))


@pytest.mark.parametrize(
    ("strategy", "expected"), [("confidence", 5), ("sequential", 5), ("adaptive", 5), ("euler", 1)]
)
def test_five_lengths_are_decoded_unless_the_strategy_samples_or_the_length_is_known(
    build_model, stir, strategy, expected
):
    model, options = stir(build_model()), DecodingConfig(strategy=strategy)
    assert len({step.canvas.shape[1] for step in decode(model, NOISE, vectors(1), options)}) == expected
    known = decode(model, NOISE, vectors(1), options, lengths=torch.tensor([5]))
    assert {(step.canvas.shape[1], int(step.candidate[0])) for step in known} == {(5, 0)}


@pytest.mark.parametrize(
    ("count", "apart", "expected"),
    [
        (3, 0.0, [10, 11, 9]),
        (3, 0.1, [10, 12, 8]),  # 11 and 9 are within a tenth of 10
        (4, 0.5, [10, 4, 1, 10]),  # no other is left that is more than half as long again: from the beginning
    ],
)
def test_the_lengths_of_hypotheses_may_be_kept_apart(build_model, stir, monkeypatch, count, apart, expected):
    model = stir(build_model())
    scores = torch.full((12,), -9.0)
    for rank, length in enumerate([10, 11, 9, 12, 8, 4]):
        scores[length - 1] = -float(rank)
    monkeypatch.setattr(model, "length_logits", lambda embeddings: scores.repeat(len(embeddings), 1))
    options = DecodingConfig(candidates=count)
    chosen = {
        int(candidate): step.canvas.shape[1]
        for step in decode_hypotheses(model, NOISE, vectors(2), options, apart=apart)
        for candidate in step.candidate
    }
    assert [chosen[candidate] for candidate in range(count)] == expected


@torch.no_grad()
def surrogate_cosine(model, ids, vector):
    """Return the cosine of a vector with the one that the surrogate gives a text."""
    (own,) = model.surrogate(model.denoiser.token_embedding(torch.tensor([ids])))
    return float(own @ vector / own.norm() / vector.norm())


def remove_surrogate(model):
    """Return a copy that has no surrogate."""
    model = copy.deepcopy(model)
    model.surrogate = None
    return model


@torch.no_grad()
def complete(model, embeddings, **options):
    """Return every hypothesis of each vector, as text, by row."""
    found = {}
    for step in decode_hypotheses(model, NOISE, embeddings, DecodingConfig(**options)):
        for text in step.finished(model.vocabulary):
            found.setdefault(text.row, []).append(text)
    return found


def kept(model, embeddings, **options):
    """Return the results by row."""
    steps = decode(model, NOISE, embeddings, DecodingConfig(**options))
    return {text.row: text for step in steps for text in step.finished(model.vocabulary)}


class TestResemblance:
    """Where the model has a surrogate of the encoder, hypotheses are compared by its vectors too."""

    @pytest.fixture
    def model(self, build_model, stir):
        return stir(build_model(readout="linear", **SURROGATE))

    @pytest.fixture
    def without_surrogate(self, model):
        return remove_surrogate(model)

    @torch.no_grad()
    def test_it_is_the_cosine_with_the_surrogates_vector(self, model):
        canvas = torch.tensor([[20, 31, 25], [25, 31, 20]])
        own = model.surrogate(model.denoiser.token_embedding(canvas))
        assert_close(model.resemblance(canvas, 3.0 * own), torch.ones(2))
        assert_close(model.resemblance(canvas, -own), -torch.ones(2))
        expected = [
            surrogate_cosine(model, ids, vector) for ids, vector in zip(canvas.tolist(), vectors(2), strict=True)
        ]
        assert_close(model.resemblance(canvas, vectors(2)), torch.tensor(expected))

    @pytest.mark.parametrize("settings", [{}, SURROGATE | {"canvas": "fixed"}], ids=["no surrogate", "fixed canvas"])
    def test_models_without_a_surrogate_and_fixed_canvases_have_none(self, build_model, stir, settings):
        model = stir(build_model(**settings))
        assert model.resemblance(torch.tensor([[20, 31, 25]]), vectors(1)) is None

    def test_a_finished_hypothesis_has_half_of_the_former_score_beside_it(self, model, without_surrogate):
        new, former = (complete(each, vectors(3)) for each in (model, without_surrogate))
        for row, vector in enumerate(vectors(3)):
            assert len(new[row]) == 5
            for text, before in zip(new[row], former[row], strict=True):
                assert text.ids == before.ids
                expected = surrogate_cosine(model, text.ids, vector) + 0.5 * before.score
                assert text.score == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize("strategy", ["confidence", "adaptive", "euler"])
    @torch.no_grad()
    def test_what_is_not_finished_is_not_asked_about(self, model, without_surrogate, monkeypatch, strategy):
        resemblance, asked = model.resemblance, []

        def count(canvas, embeddings):
            assert len(canvas) == len(embeddings)
            assert (canvas != model.vocabulary.mask).all()
            asked.append(len(canvas))
            return resemblance(canvas, embeddings)

        monkeypatch.setattr(model, "resemblance", count)
        options = DecodingConfig(strategy=strategy, candidates=2, steps=4)
        steps = list(decode_hypotheses(model, NOISE, vectors(6), options))
        former = list(decode_hypotheses(without_surrogate, NOISE, vectors(6), options))
        assert sum(asked) == 6 * 2
        assert not all(step.final.all() for step in steps)
        for step, before in zip(steps, former, strict=True):
            assert_close(step.score[~step.final], before.score[~step.final])

    def test_the_hypothesis_with_the_best_score_is_kept(self, model, without_surrogate):
        hypotheses, results = complete(model, vectors(12)), kept(model, vectors(12))
        for row, result in results.items():
            assert result.ids == max(hypotheses[row], key=lambda text: text.score).ids
        before = kept(without_surrogate, vectors(12))
        assert any(results[row].ids != before[row].ids for row in results), "the surrogate decides nothing"

    def test_other_things_being_equal_the_one_is_kept_whose_vector_is_nearer(self, model, monkeypatch):
        monkeypatch.setattr("unembed.decoding.canvases._BESIDE_RESEMBLANCE", 0.0)
        hypotheses, results = complete(model, vectors(12)), kept(model, vectors(12))
        for row, vector in enumerate(vectors(12)):
            cosines = [surrogate_cosine(model, text.ids, vector) for text in hypotheses[row]]
            assert surrogate_cosine(model, results[row].ids, vector) == pytest.approx(max(cosines), abs=1e-5)
        assert len({len(result.ids) for result in results.values()}) > 1

    def test_a_vector_gives_the_same_text_however_vectors_are_batched(self, model):
        together = kept(model, vectors(6))
        for row, vector in enumerate(vectors(6)):
            assert kept(model, vector[None])[0].ids == together[row].ids

    def test_fixed_canvases_are_scored_as_without_a_surrogate(self, build_model, stir):
        model = stir(build_model(readout="linear", canvas="fixed", **SURROGATE))
        former = remove_surrogate(model)
        for strategy in ("confidence", "euler"):
            texts, before = (kept(each, vectors(4), strategy=strategy, candidates=3) for each in (model, former))
            assert texts == before
