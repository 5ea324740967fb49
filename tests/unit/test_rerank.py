"""Rerank: the encoder embeds blind hypotheses, and the nearest is kept."""

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.config import DecodingConfig, NoiseConfig, parse
from unembed.decoding import TextOracle, decode
from unembed.decoding.blind import decode_hypotheses
from unembed.errors import ConfigError
from unembed.model import NoiseSchedule

NOISE = NoiseSchedule(NoiseConfig())
TEXTS = ["the cat sleeps on the mat.", "a dog", "two birds sing in the garden."]


@pytest.fixture
def model(tiny_checkpoint):
    from unembed.checkpoint import load_checkpoint

    return load_checkpoint(tiny_checkpoint).model


@pytest.fixture
def oracle(fake_encoder):
    return TextOracle(fake_encoder, fake_encoder.tokenizer, CanvasVocabulary.of(fake_encoder.tokenizer), 12)


@pytest.fixture
def targets(fake_encoder):
    return torch.from_numpy(fake_encoder.encode(TEXTS))


@pytest.fixture
def rerank(model, oracle, targets):
    """Reranks k hypotheses of each target; returns all complete hypotheses by row, and the results by row."""

    def rerank(count, *, vectors=targets, lengths=None, batch_size=64, **options):
        tried, kept = {}, {}
        config = DecodingConfig(rerank=count, **options)
        for step in decode(model, NOISE, vectors, config, oracle=oracle, lengths=lengths, batch_size=batch_size):
            for text in step.complete(model.vocabulary):
                assert text.row not in kept
                if text.final:
                    kept[text.row] = text
                else:
                    tried.setdefault(text.row, {})[text.candidate] = tuple(text.ids)
        return tried, kept

    return rerank


def cosines(oracle, target, hypotheses):
    vectors = oracle.embed(oracle.write(hypotheses))
    return vectors @ (target / target.norm()).numpy()


@pytest.mark.parametrize("strategy", ["confidence", "adaptive", "sequential", "euler"])
def test_the_nearest_of_the_hypotheses_is_kept_and_its_score_is_its_cosine(rerank, oracle, targets, strategy):
    tried, kept = rerank(6, strategy=strategy)
    for row, target in enumerate(targets):
        hypotheses = [tried[row][candidate] for candidate in range(6)]
        scores = cosines(oracle, target, hypotheses)
        assert tuple(kept[row].ids) == hypotheses[int(scores.argmax())]
        assert kept[row].score == pytest.approx(scores.max(), abs=1e-5)


def test_every_different_text_is_embedded_once_and_all_texts_in_one_call(rerank, oracle, monkeypatch):
    embed, calls = oracle.embed_exactly, []
    monkeypatch.setattr(oracle, "embed_exactly", lambda texts: calls.append(list(texts)) or embed(texts))
    tried, kept = rerank(6)
    texts = {row: set(oracle.write(list(hypotheses.values()))) for row, hypotheses in tried.items()}
    assert len(calls) == 1
    assert sorted(calls[0]) == sorted(set.union(*texts.values()))
    assert {row: text.texts_embedded for row, text in kept.items()} == {row: len(each) for row, each in texts.items()}


def test_half_of_the_hypotheses_have_other_lengths_and_the_rest_are_drawn_with_these(rerank, model, targets):
    tried, _ = rerank(5)
    likeliest = (model.length_logits(targets).topk(3).indices + 1).tolist()
    for row, hypotheses in tried.items():
        lengths = [len(hypotheses[candidate]) for candidate in range(5)]
        assert lengths == [*likeliest[row], *likeliest[row][:2]]


def test_hypotheses_of_a_known_length_differ_too_and_the_first_is_the_blind_text(rerank, model, targets):
    lengths = torch.tensor([7, 3, 8])
    tried, kept = rerank(6, lengths=lengths)
    blind = {
        text.row: tuple(text.ids)
        for step in decode(model, NOISE, targets, DecodingConfig(), lengths=lengths)
        for text in step.finished(model.vocabulary)
    }
    for row, hypotheses in tried.items():
        assert {len(ids) for ids in hypotheses.values()} == {int(lengths[row])}
        assert hypotheses[0] == blind[row]
        assert len(set(hypotheses.values())) > 2
    assert [len(kept[row].ids) for row in range(3)] == lengths.tolist()


def test_a_vector_gives_the_same_text_however_vectors_are_batched_and_another_seed_gives_other_draws(rerank, targets):
    tried, kept = rerank(6)
    one_by_one, chosen = rerank(6, batch_size=1)
    assert one_by_one == tried
    assert [chosen[row].ids for row in range(3)] == [kept[row].ids for row in range(3)]
    alone, _ = rerank(6, vectors=targets[1:2])
    assert alone[0] == tried[1]
    assert rerank(6, seed=1)[0] != tried


def test_more_hypotheses_never_end_further_away(rerank):
    few, many = (rerank(count, lengths=torch.tensor([7, 3, 8]))[1] for count in (2, 8))
    assert all(many[row].score >= few[row].score for row in range(3))
    assert any(many[row].score > few[row].score for row in range(3))


def test_a_strategy_that_samples_draws_at_its_own_temperature(model, targets):
    """At temperature 0 every draw is the likeliest token, so hypotheses of one length are equal in what they say."""
    options = DecodingConfig(strategy="euler-remask", remask_share=0.0, steps=1, temperature=0.0)
    lengths = torch.tensor([7, 3, 8])
    final = list(decode_hypotheses(model, NOISE, targets, options, lengths=lengths, drawn=2))
    said = {row: {tuple(step.canvas[0].tolist()) for step in final if int(step.rows[0]) == row} for row in range(3)}
    assert all(len(texts) == 1 for texts in said.values())


def test_it_needs_an_encoder(model, targets, make_inverter):
    with pytest.raises(ConfigError, match="need something that embeds"):
        next(decode(model, NOISE, targets, DecodingConfig(rerank=2)))
    with pytest.raises(ConfigError, match="need the encoder"):
        make_inverter().invert(np.ones(16), rerank=2)


def test_a_guided_search_cannot_be_reranked():
    with pytest.raises(ConfigError, match="rerank is for blind strategies"):
        parse(DecodingConfig, {"strategy": "guided", "rerank": 4}, "The decoding configuration")
