"""Guided decoding, with an encoder without weights and a denoiser that knows nothing: the search must do it all."""

import time

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.config import DecodingConfig, GuidedConfig, NoiseConfig
from unembed.decoding import TextOracle, decode
from unembed.decoding.moves import Proposer, _deletions, _reorderings
from unembed.decoding.search import Attempt, Hypothesis, Search, merge
from unembed.model import NoiseSchedule

NOISE = NoiseSchedule(NoiseConfig())
TEXTS = ["the cat sleeps on the mat.", "a dog", "two birds sing in the garden.", "rain"]


@pytest.fixture
def oracle(fake_encoder):
    return TextOracle(fake_encoder, fake_encoder.tokenizer, CanvasVocabulary.of(fake_encoder.tokenizer), 12)


@pytest.fixture
def model(tiny_checkpoint):
    from unembed.checkpoint import load_checkpoint

    return load_checkpoint(tiny_checkpoint).model


@pytest.fixture
def targets(fake_encoder):
    return torch.from_numpy(fake_encoder.encode(TEXTS))


def search(model, targets, oracle, *, lengths=None, seed=0, **guided):
    options = DecodingConfig(strategy="guided", seed=seed, guided=GuidedConfig(**guided))
    return list(decode(model, NOISE, targets, options, oracle=oracle, lengths=lengths))


def finals(steps):
    return {int(step.rows[0]): step for step in steps if step.final.any()}


def test_it_ends_every_vector_once_with_no_mask_and_no_special_token(model, targets, oracle):
    steps = search(model, targets, oracle, rounds=3)
    ended = [int(row) for step in steps for row in step.rows[step.final]]
    assert sorted(ended) == [0, 1, 2, 3]
    for step in finals(steps).values():
        ids = step.canvas[0].tolist()
        assert ids
        assert model.vocabulary.mask not in ids
        assert not set(model.vocabulary.special) & set(ids)
        assert len(step.confidence[0]) == len(ids)
        assert ((step.confidence > 0) & (step.confidence <= 1)).all()


def test_the_score_is_the_cosine_of_the_texts_vector_and_only_rises(model, targets, oracle, fake_encoder):
    steps = [step for step in search(model, targets, oracle, rounds=12) if step.encoder_calls.sum()]
    for row in range(4):
        mine = [step for step in steps if int(step.rows[0]) == row]
        scores = [float(step.score) for step in mine]
        assert scores == sorted(scores)
        assert scores[-1] > scores[0]
        text = fake_encoder.tokenizer.decode(mine[-1].canvas[0].tolist())
        assert float(fake_encoder.encode([text])[0] @ targets[row].numpy()) == pytest.approx(scores[-1], abs=1e-5)
        calls = [int(step.encoder_calls) for step in mine]
        assert calls == sorted(calls)


def test_every_text_that_is_embedded_is_counted(model, targets, oracle, fake_encoder):
    before = len(fake_encoder.seen)
    steps = search(model, targets, oracle, rounds=5, gradient=False)
    assert sum(int(step.encoder_calls) for step in finals(steps).values()) == len(fake_encoder.seen) - before


def test_no_text_is_embedded_twice_for_a_vector(model, targets, oracle, fake_encoder):
    before = len(fake_encoder.seen)
    search(model, targets[:1], oracle, rounds=10)
    asked = fake_encoder.seen[before:]
    assert len(asked) == len(set(asked))


class ClearSighted(TextOracle):
    """Knows what every substitution gains, as an encoder's gradient does roughly."""

    def substitutions(self, hypotheses, targets, top):
        tokens = [i for i in range(self.vocabulary.size) if i not in self.vocabulary.special]
        found = []
        for ids, target in zip(hypotheses, targets, strict=True):
            changed = [(*ids[:place], token, *ids[place + 1 :]) for place in range(len(ids)) for token in tokens]
            gains = (self.embed(changed) @ target).reshape(len(ids), -1)
            best = np.argsort(-gains, axis=1)[:, :top]
            found.append((np.array(tokens)[best], np.take_along_axis(gains, best, 1)))
        return found


@pytest.mark.parametrize(("row", "length"), [(1, 2), (3, 1)])
def test_with_the_encoders_gradient_it_finds_the_text_itself(model, targets, oracle, row, length):
    oracle = ClearSighted(oracle.encoder, oracle.tokenizer, oracle.vocabulary, 12)
    steps = search(model, targets[row : row + 1], oracle, lengths=torch.tensor([length]), rounds=12)
    (step,) = finals(steps).values()
    assert oracle.tokenizer.decode(step.canvas[0].tolist()) == TEXTS[row]
    assert float(step.score) == pytest.approx(1.0, abs=1e-4)


def test_it_does_not_depend_on_the_batch_and_repeats_itself(model, targets, oracle):
    def texts(steps):
        return [finals(steps)[row].canvas.tolist() for row in sorted(finals(steps))]

    together = texts(search(model, targets, oracle, rounds=6))
    assert texts(search(model, targets, oracle, rounds=6)) == together
    assert [texts(search(model, targets[row : row + 1], oracle, rounds=6))[0] for row in range(4)] == together


def test_rounds_patience_target_and_time_each_end_it(model, targets, oracle):
    def rounds(**limits):
        steps = search(model, targets[:1], oracle, **({"rounds": 9, "patience": 99, "proposals": 8} | limits))
        return sum(bool(step.encoder_calls.sum()) for step in steps) - 1

    assert rounds() == 9
    assert rounds(rounds=0) == 0
    assert rounds(target_cosine=0.01) == 0
    assert rounds(seconds=1e-9) == 0
    assert rounds(rounds=200, patience=2) < 200


def test_a_time_budget_is_kept(model, targets, oracle):
    begun = time.monotonic()
    search(model, targets[:1], oracle, rounds=100_000, patience=100_000, seconds=1.0)
    assert time.monotonic() - begun < 5.0


def test_a_given_length_is_kept(model, targets, oracle):
    lengths = torch.tensor([7, 2, 7, 1])
    steps = search(model, targets, oracle, lengths=lengths, rounds=8)
    assert [finals(steps)[row].canvas.shape[1] for row in range(4)] == lengths.tolist()


def test_more_vectors_than_are_searched_together(model, fake_encoder, oracle):
    targets = torch.from_numpy(fake_encoder.encode([f"the cat {word}" for word in "abcdefghijklmnopqrs"]))
    assert sorted(finals(search(model, targets, oracle, rounds=1))) == list(range(19))


class TestSearch:
    def start(self, **config):
        search = Search(GuidedConfig(**config), np.random.default_rng(0))
        parent = Hypothesis((1, 2, 3), 0.5, -1.0)
        search.add([(parent, Attempt(parent.ids, -1.0))])
        return search, parent

    def test_moves_that_pay_are_tried_more(self):
        search, parent = self.start(proposals=8, beam=1)
        for number in range(40):
            parent.proposals["delete"] = [(number, place) for place in range(50)]
            parent.proposals["insert"] = [(number, place, 0, 0) for place in range(50)]
            attempts = search.choose()
            search.add((Hypothesis(one.ids, 0.4 if one.kind == "delete" else 0.50002, -1.0), one) for one in attempts)
            search.beam = [parent]
        kinds = [attempt.kind for attempt in search.choose()]
        assert kinds.count("insert") > kinds.count("delete")

    def test_no_proposal_is_lost_when_it_is_not_chosen(self):
        search, parent = self.start(proposals=2, beam=1)
        wanted = {kind: [(kind, place) for place in range(3)] for kind in ("delete", "insert", "span", "gradient")}
        parent.proposals = {kind: list(texts) for kind, texts in wanted.items()}
        chosen = []
        while attempts := search.choose():
            chosen += [(attempt.kind, attempt.ids) for attempt in attempts]
        assert sorted(chosen) == sorted((kind, text) for kind, texts in wanted.items() for text in texts)

    def test_the_best_by_cosine_and_another_length_stay_in_the_beam(self):
        search, _ = self.start(beam=3, fluency=1.0)
        nearest = Hypothesis((4, 5, 6), 0.9, -50.0)
        fluent = [Hypothesis((7, 8, number), 0.5, -0.1) for number in range(5)]
        longer = Hypothesis((1, 2, 3, 4), 0.1, -60.0)
        search.add((one, Attempt(one.ids, 0.0)) for one in [nearest, *fluent, longer])
        assert nearest in search.beam
        assert longer in search.beam
        assert len(search.beam) == 3

    def test_without_any_proposal_it_is_finished(self):
        search, _ = self.start()
        assert not search.finished
        assert search.choose() == []
        search.add([])
        assert search.finished


def test_any_phrase_of_a_short_text_can_change_places_with_its_neighbour():
    found = _reorderings(tuple(range(8)), np.random.default_rng(0))
    assert len(found) == len(set(found)) == 84
    assert (0, 4, 5, 6, 1, 2, 3, 7) in found
    assert all(sorted(ids) == list(range(8)) for ids in found)
    assert _reorderings((5,), np.random.default_rng(0)) == []


def test_tokens_are_dropped_alone_and_a_few_in_a_row_the_doubtful_ones_first():
    parent = Hypothesis((1, 2, 3, 4), 0.5, -1.0, confidence=[0.9, 0.1, 0.2, 0.8])
    found = _deletions(parent)
    assert found[-3:] == [(1, 2, 4), (1, 4), (1, 3, 4)]
    assert len(found) == len(set(found)) == 4 + 3 + 2
    assert _deletions(Hypothesis((1,), 0.5, -1.0, confidence=[0.1])) == []


@pytest.mark.parametrize("resize", [True, False])
@torch.inference_mode()
def test_gaps_are_opened_everywhere_unless_the_length_is_known(model, targets, oracle, resize):
    proposer = Proposer(model, NOISE, targets, oracle, gradient=False, resize=resize)
    search = Search(GuidedConfig(), np.random.default_rng(0))
    parent = Hypothesis((10, 11, 12, 13, 14, 15, 16), 0.5, -1.0)
    search.add([(parent, Attempt(parent.ids, 0.0))])
    proposer.expand({0: search})
    lengths = {len(ids) for kind in parent.proposals.values() for ids in kind}
    if not resize:
        assert lengths == {7}
        return
    assert {6, 7, 8} <= lengths
    filled = [
        [place for place, token in enumerate(ids) if token not in parent.ids] for ids in parent.proposals["insert"]
    ]
    assert {gap for places in filled for gap in places} == set(range(8))
    assert max(map(len, filled)) == 1


def test_changes_that_helped_alone_are_tried_together():
    children = [
        Hypothesis((9, 2, 3, 4), 0.9, 0.0),
        Hypothesis((1, 2, 8, 4), 0.8, 0.0),
        Hypothesis((7, 2, 3, 4), 0.7, 0.0),  # the place is taken by a better change
        Hypothesis((1, 6, 3, 4), 0.6, 0.0),
        Hypothesis((1, 2, 3), 0.95, 0.0),  # another length
    ]
    merged = merge((1, 2, 3, 4), children)
    assert set(merged) == {(9, 2, 8, 4), (9, 6, 8, 4), (9, 6, 3, 4)}
    assert merge((1, 2, 3, 4), children[:1]) == []


class TestTextOracle:
    def test_a_hypothesis_is_what_its_text_reads_as(self, oracle):
        tokenizer = oracle.tokenizer
        split = tuple(tokenizer.token_to_id(token) for token in ("c", "##a", "##t"))
        whole = (tokenizer.token_to_id("cat"),)
        assert oracle.settle([split, whole]) == [whole, whole]

    def test_what_does_not_fit_the_canvas_or_says_nothing_is_none(self, oracle):
        cat = oracle.tokenizer.token_to_id("cat")
        assert oracle.settle([(cat,) * 13, (cat,) * 12, ()]) == [None, (cat,) * 12, None]

    def test_an_encoder_without_gradient_proposes_nothing(self, oracle):
        assert oracle.substitutions([(5, 6)], np.ones((1, 16)), 3) == [None]
