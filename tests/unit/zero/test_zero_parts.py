"""What a search without training is made of: words, changes, and the map between two encoders."""

import numpy as np
import pytest

from unembed.decoding.zero.changes import Edit, combine, propose
from unembed.decoding.zero.mapping import OnlineMap
from unembed.decoding.zero.words import WordBank, write
from unembed.measures import cosine
from unembed.measures.vectors import normalise


class TestWords:
    def test_they_are_whole_words_and_marks_of_the_tokenizer(self, bank, tiny_tokenizer):
        assert {"cat", "the", "."} <= set(bank.words)
        assert not any(word.startswith(("#", "[")) for word in bank.words)
        assert [tiny_tokenizer.id_to_token(token) for token in bank.ids] == bank.words

    def test_they_are_the_same_for_tokenizers_that_mark_starts(self, build_tokenizer, build_fake_encoder):
        tokenizer = build_tokenizer("Unigram")
        assert "cat" in WordBank.of(tokenizer, build_fake_encoder(tokenizer)).words

    def test_they_are_embedded_once(self, bank, fake_encoder):
        calls = fake_encoder.calls
        again = WordBank.of(fake_encoder.tokenizer, fake_encoder)
        assert fake_encoder.calls == calls
        assert np.array_equal(again.vectors, bank.vectors)

    def test_a_mark_has_no_space_before_it(self):
        assert write(("the", "cat", "sleeps", ".")) == "the cat sleeps."


class TestMap:
    @pytest.fixture
    def pairs(self):
        random = np.random.default_rng(0)
        turn = random.normal(size=(16, 12))
        local = normalise(random.normal(size=(80, 16)))
        return local, normalise(local @ turn)

    def test_it_learns_from_every_answer(self, pairs):
        local, theirs = pairs
        space_map = OnlineMap(local[:4], theirs[:4])
        before = cosine(space_map.predict(local[60:]), theirs[60:]).mean()
        space_map.learn(local[4:60], theirs[4:60])
        after = cosine(space_map.predict(local[60:]), theirs[60:]).mean()
        assert after > max(0.9, before + 0.2)

    def test_an_unchanged_text_stays_where_it_is(self, pairs):
        local, theirs = pairs
        space_map = OnlineMap(local[:4], theirs[:4])
        assert space_map.predict_changed(local[70:], local[70:], theirs[70:]) == pytest.approx(theirs[70:], abs=1e-6)


class TestChanges:
    TEXT = ("the", "cat")

    @pytest.fixture
    def proposed(self, bank):
        gains, likely = np.zeros(len(bank.words)), np.full((3, len(bank.words)), -5.0)
        gains[bank.index["sleeps"]] = 1.0
        gains[[bank.index[word] for word in self.TEXT]] = 0.5
        likely[2, bank.index["sleeps"]] = -0.1
        return propose(self.TEXT, bank, gains, likely)

    def test_the_best_puts_the_word_that_is_missing_where_it_is_likely(self, proposed):
        assert proposed[0].words == ("the", "cat", "sleeps")
        assert proposed[0].nats == pytest.approx(-0.1)

    def test_words_are_put_in_exchanged_removed_and_moved(self, proposed):
        found = {change.words for change in proposed}
        assert {("sleeps", "the", "cat"), ("the", "sleeps"), ("the",), ("cat",), ("cat", "the")} <= found
        assert self.TEXT not in found

    def test_no_word_follows_itself_and_long_ones_do_not_return(self, bank):
        text, gains = ("the", "horse", "runs"), np.zeros(len(bank.words))
        gains[[bank.index["the"], bank.index["horse"]]] = 1.0
        found = [change.words for change in propose(text, bank, gains, np.full((4, len(bank.words)), -1.0))]
        assert ("the", "horse", "runs", "the") in found
        assert not any(words.count("horse") > 1 for words in found)
        assert ("the", "the", "horse", "runs") not in found

    def test_two_edits_are_combined_whatever_their_order(self):
        edits = [(Edit(2, 2, ("sleeps",)), -1.0), (Edit(0, 1, ("a",)), -2.0)]
        (combined,) = combine(self.TEXT, edits)
        assert (combined.words, combined.nats) == (("a", "cat", "sleeps"), -3.0)

    def test_edits_of_one_place_are_not(self):
        assert not combine(self.TEXT, [(Edit(0, 1, ("a",)), 0.0), (Edit(0, 1, ("my",)), 0.0)])
        assert not combine(self.TEXT, [(Edit(1, 1, ("old",)), 0.0), (Edit(1, 1, ("warm",)), 0.0)])
