"""Guided decoding, with an encoder without weights and a denoiser that knows nothing: the search must do it all."""

import time

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.config import DecodingConfig, GuidedConfig, NoiseConfig
from unembed.decoding import SearchRounds, TextOracle, decode
from unembed.decoding.guided.search import Search
from unembed.model import NoiseSchedule

NOISE = NoiseSchedule(NoiseConfig())


def make_options(seed=0, **guided):
    return DecodingConfig(strategy="guided", seed=seed, guided=GuidedConfig(**guided))


def search(model, targets, oracle, *, lengths=None, **options):
    return list(decode(model, NOISE, targets, make_options(**options), oracle=oracle, lengths=lengths))


def take_rounds(model, targets, oracle, **options):
    """Return a search that goes on when it is asked for the next round."""
    return SearchRounds(model, NOISE, targets, make_options(**options), oracle=oracle)


def embed_ids(oracle, ids):
    return oracle.embed(oracle.write(ids))


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
    steps = [step for step in search(model, targets, oracle, rounds=12) if step.texts_embedded.sum()]
    for row in range(4):
        mine = [step for step in steps if int(step.rows[0]) == row]
        scores = [float(step.score) for step in mine]
        assert scores == sorted(scores)
        assert scores[-1] > scores[0]
        text = fake_encoder.tokenizer.decode(mine[-1].canvas[0].tolist())
        assert float(fake_encoder.encode([text])[0] @ targets[row].numpy()) == pytest.approx(scores[-1], abs=1e-5)
        calls = [int(step.texts_embedded) for step in mine]
        assert calls == sorted(calls)


def test_every_text_that_is_embedded_is_counted(model, targets, oracle, fake_encoder):
    before = len(fake_encoder.seen)
    steps = search(model, targets, oracle, rounds=5, gradient=False)
    assert sum(int(step.texts_embedded) for step in finals(steps).values()) == len(fake_encoder.seen) - before


def test_no_text_is_embedded_twice_for_a_vector(model, targets, oracle, fake_encoder):
    before = len(fake_encoder.seen)
    search(model, targets[:1], oracle, rounds=10)
    asked = fake_encoder.seen[before:]
    assert len(asked) == len(set(asked))


class ClearSighted(TextOracle):
    """Knows what every substitution gains, as an encoder's gradient does roughly."""

    def substitutions(self, hypotheses, targets, top):
        tokens = [i for i in range(self.vocabulary.size) if i not in self.vocabulary.special]
        estimates = []
        for ids, target in zip(hypotheses, targets, strict=True):
            changed = [(*ids[:index], token, *ids[index + 1 :]) for index in range(len(ids)) for token in tokens]
            gains = (embed_ids(self, changed) @ target).reshape(len(ids), -1)
            best = np.argsort(-gains, axis=1)[:, :top]
            estimates.append((np.array(tokens)[best], np.take_along_axis(gains, best, 1)))
        return estimates


@pytest.mark.parametrize(("row", "length"), [(1, 2), (3, 1)])
def test_with_the_encoders_gradient_it_finds_the_text_itself(model, targets, texts, oracle, row, length):
    oracle = ClearSighted(oracle.encoder, oracle.tokenizer, oracle.vocabulary, 12)
    steps = search(model, targets[row : row + 1], oracle, lengths=torch.tensor([length]), rounds=12)
    (step,) = finals(steps).values()
    assert oracle.tokenizer.decode(step.canvas[0].tolist()) == texts[row]
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
        return sum(bool(step.texts_embedded.sum()) for step in steps) - 1

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


class TestRounds:
    """A search that its caller drives."""

    def test_its_steps_are_those_of_decode(self, model, targets, oracle):
        rounds = take_rounds(model, targets, oracle, rounds=3)
        steps = [step for round_ in rounds for step in round_]
        assert [step.canvas.tolist() for step in steps] == [
            step.canvas.tolist() for step in search(model, targets, oracle, rounds=3)
        ]

    def test_searches_that_take_turns_do_not_disturb_one_another(self, model, targets, oracle):
        alone = finals(search(model, targets[:1], oracle, rounds=4))[0]
        first, second = (take_rounds(model, targets[row : row + 1], oracle, rounds=4) for row in (0, 1))
        for steps in first:
            last = steps
            next(second, None)
        assert last[0].final.all()
        assert torch.equal(last[0].canvas, alone.canvas)
        assert int(last[0].texts_embedded) == int(alone.texts_embedded)

    def test_a_search_that_is_stopped_gives_its_best_text_in_the_next_round(self, model, targets, oracle, fake_encoder):
        rounds = take_rounds(model, targets[:1], oracle, rounds=50, patience=50)
        searched = (steps[0] for steps in rounds if steps[0].texts_embedded.sum())
        shown = [next(searched) for _ in range(3)][-1]
        asked = len(fake_encoder.seen)
        rounds.stop()
        ((last,),) = list(rounds)
        assert last.final.all()
        assert torch.equal(last.canvas, shown.canvas)
        assert float(last.score) == float(shown.score)
        assert len(fake_encoder.seen) == asked, "texts were embedded although the search was stopped"

    def test_some_vectors_can_be_stopped_while_the_others_go_on(self, model, targets, oracle):
        rounds = take_rounds(model, targets, oracle, rounds=3, patience=50)
        rounds.stop([1, 3])
        later = [steps for steps in rounds if steps[0].texts_embedded.sum()]
        assert [int(step.rows[0]) for step in later[0] if step.final.all()] == [1, 3]
        assert [int(step.rows[0]) for step in later[1]] == [0, 2]
        assert [int(step.rows[0]) for step in later[-1] if step.final.all()] == [0, 2]

    def test_only_its_own_work_counts_as_its_time(self, model, targets, oracle, monkeypatch):
        class Clock:
            now = 0.0

            def monotonic(self):
                return self.now

        clock = Clock()
        monkeypatch.setattr("unembed.decoding.guided.rounds.time", clock)
        count = 0
        for steps in take_rounds(model, targets[:1], oracle, rounds=3, patience=9, seconds=5.0):
            clock.now += 100.0  # the caller does something else
            count += bool(steps[0].texts_embedded.sum())
        assert count == 3 + 1

    def test_gradients_are_not_switched_off_for_its_caller(self, model, targets, oracle):
        for _ in take_rounds(model, targets[:1], oracle, rounds=1):
            assert torch.is_grad_enabled()


def test_hypotheses_know_their_text_their_vector_and_where_they_come_from(model, targets, oracle, monkeypatch):
    added = []
    add = Search.add

    def watch(self, attempts):
        added.extend(hypothesis for _, hypothesis in attempts)
        add(self, attempts)

    monkeypatch.setattr(Search, "add", watch)
    search(model, targets[:1], oracle, rounds=2)
    assert {hypothesis.move for hypothesis in added} > {"", "insert"}
    for hypothesis in added:
        assert hypothesis.text == oracle.tokenizer.decode(list(hypothesis.ids))
        assert np.allclose(hypothesis.vector, oracle.embed([hypothesis.text])[0], atol=1e-6)
        assert hypothesis.cosine == pytest.approx(float(hypothesis.vector @ targets[0].numpy()), abs=1e-6)
        assert (hypothesis.parent is None) == (hypothesis.move == "")


@pytest.mark.parametrize("free_tokens", [True, False])
def test_a_search_knows_what_length_to_expect_unless_every_token_has_its_price(
    model, targets, oracle, monkeypatch, free_tokens
):
    told = []

    def watch(*arguments):
        told.append(arguments[5])
        return Search(*arguments)

    monkeypatch.setattr("unembed.decoding.guided.rounds.Search", watch)
    take_rounds(model, targets, oracle, free_tokens=free_tokens)
    likely = model.length_logits(targets).softmax(-1).detach().numpy()
    assert told == pytest.approx(list(likely @ np.arange(1, likely.shape[1] + 1)) if free_tokens else [0.0] * 4)


class Rounded:
    """The fake encoder, with vectors that are a little wrong."""

    def __init__(self, exact):
        self.exact, self.description, self.tokenizer, self.seen = exact, exact.description, exact.tokenizer, []

    def encode(self, sentences, **_):
        self.seen += sentences
        noise = np.random.default_rng(0).normal(size=(len(sentences), 16))
        return (self.exact.encode(sentences) + 1e-3 * noise).astype(np.float32)


def test_a_quicker_encoder_searches_and_the_given_one_has_the_last_word(model, targets, fake_encoder, monkeypatch):
    quick = Rounded(fake_encoder)
    monkeypatch.setattr(fake_encoder, "quicker", lambda: quick, raising=False)
    oracle = TextOracle(fake_encoder, fake_encoder.tokenizer, CanvasVocabulary.of(fake_encoder.tokenizer), 12)
    (last,) = finals(search(model, targets[:1], oracle, rounds=4)).values()
    text = fake_encoder.tokenizer.decode(last.canvas[0].tolist())
    assert text in quick.seen
    assert float(last.score) == pytest.approx(float(fake_encoder.encode([text])[0] @ targets[0].numpy()), abs=1e-6)


class TestDrafts:
    """A search to which something drafts vectors, here without any error."""

    @pytest.fixture
    def drafting(self, oracle, build_fake_encoder):
        other = build_fake_encoder()  # so that what is drafted does not count as encoded

        def draft(texts):
            return other.encode(oracle.write(texts))

        return TextOracle(oracle.encoder, oracle.tokenizer, oracle.vocabulary, 12, draft)

    def test_no_more_texts_are_embedded_than_the_budget_allows_and_drafts_do_not_count(
        self, model, targets, drafting, fake_encoder
    ):
        before = len(fake_encoder.seen)
        steps = search(model, targets, drafting, calls=40, proposals=8, patience=99, target_cosine=2.0)
        used = [int(step.texts_embedded) for step in finals(steps).values()]
        assert sum(used) == len(fake_encoder.seen) - before
        # The round in which the budget is used up is the last.
        assert all(40 <= calls < 40 + 8 for calls in used)

    def test_they_bring_it_nearer_with_as_many_texts(self, model, targets, oracle, drafting):
        def mean_score(by):
            steps = search(model, targets, by, calls=60, patience=99)
            return np.mean([float(step.score) for step in finals(steps).values()])

        assert mean_score(drafting) > mean_score(oracle) + 0.02

    def test_it_does_not_depend_on_the_batch(self, model, targets, drafting):
        together = finals(search(model, targets[:3], drafting, rounds=5))
        for row in range(3):
            (alone,) = finals(search(model, targets[row : row + 1], drafting, rounds=5)).values()
            assert torch.equal(alone.canvas, together[row].canvas)

    def test_a_given_length_is_kept(self, model, targets, drafting):
        lengths = torch.tensor([7, 2, 7, 1])
        steps = search(model, targets, drafting, lengths=lengths, rounds=6)
        assert [finals(steps)[row].canvas.shape[1] for row in range(4)] == lengths.tolist()

    def test_phrases_are_rearranged_only_if_there_are_drafts(self, model, targets, oracle, drafting, monkeypatch):
        def moves(by):
            added = []
            monkeypatch.setattr(Search, "add", lambda self, attempts: added.extend(attempts) or add(self, attempts))
            search(model, targets[:1], by, rounds=12, patience=99, target_cosine=2.0)
            return [(attempt, hypothesis) for attempt, hypothesis in added if attempt.move == "rearrange"]

        add = Search.add
        rearranged = moves(drafting)
        assert rearranged
        assert all(sorted(attempt.ids) == sorted(attempt.parent.ids) for attempt, _ in rearranged)
        assert moves(oracle) == []
