"""The table of measures, and each function in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unembed.measures import (
    BY_NAME,
    CONTENT_MEASURES,
    MEASURES,
    Forms,
    compare,
    compare_one,
    cosine,
    exact_match,
    percent,
    rouge_l,
    token_accuracy,
    token_f1,
    word_set_f1,
)
from unembed.measures.bleu import bleu_counts, bleu_of_counts, sentence_bleu

texts = st.lists(st.integers(0, 9), min_size=1, max_size=12)
RECOVERED = ["the cat sleeps on the mat.", "a dog plays.", "something else entirely"]
REFERENCES = ["the cat sleeps on the warm mat.", "a dog plays in the snow.", "the girl reads a book"]


class TestTokens:
    @given(text=texts)
    def test_a_text_recovers_itself_fully(self, text):
        assert token_accuracy(text, text) == token_f1(text, text) == exact_match(text, text) == 1.0

    @given(ours=texts, theirs=texts)
    def test_measures_are_shares(self, ours, theirs):
        assert all(0.0 <= measure(ours, theirs) <= 1.0 for measure in (token_accuracy, token_f1, exact_match))

    def test_accuracy_goes_by_position_and_f1_does_not(self):
        assert token_accuracy([2, 1, 3], [1, 2, 3]) == pytest.approx(1 / 3)
        assert token_f1([2, 1, 3], [1, 2, 3]) == 1.0

    def test_accuracy_counts_the_reference_s_positions(self):
        assert token_accuracy([1, 2], [1, 2, 3, 4]) == 0.5
        assert token_accuracy([1, 2, 3, 4], [1, 2]) == 1.0

    def test_f1_counts_a_repeated_token_as_often_as_it_is_there(self):
        assert token_f1([1, 1, 1], [1, 2, 3]) == pytest.approx(1 / 3)

    def test_a_longer_text_is_no_exact_match(self):
        assert exact_match([1, 2, 3], [1, 2]) == 0.0


class TestBleu:
    def test_of_a_corpus_is_sacrebleu_s(self):
        from sacrebleu import corpus_bleu

        counts = np.array([bleu_counts(*pair) for pair in zip(RECOVERED, REFERENCES, strict=True)])
        expected = corpus_bleu(RECOVERED, [REFERENCES]).score
        assert bleu_of_counts(counts.sum(0, keepdims=True)) == pytest.approx([expected])

    def test_of_the_same_text_is_100_and_of_nothing_0(self):
        assert bleu_of_counts(np.array([bleu_counts(REFERENCES[0], REFERENCES[0])])) == pytest.approx([100.0])
        assert bleu_of_counts(np.array([bleu_counts("", REFERENCES[0])])) == [0.0]

    def test_of_a_sentence_is_that_of_a_corpus_of_one(self):
        from sacrebleu import corpus_bleu

        for recovered, reference in zip(RECOVERED, REFERENCES, strict=True):
            assert sentence_bleu(recovered, reference) == pytest.approx(corpus_bleu([recovered], [[reference]]).score)

    def test_of_a_sentence_asks_for_four_words_and_for_the_case(self):
        assert sentence_bleu("a cat sleeps", "a cat sleeps") == 0.0
        assert sentence_bleu("a cat sleeps well", "a cat sleeps well") == pytest.approx(100.0)
        assert sentence_bleu("a cat sleeps well", "A cat sleeps well") < 100.0

    def test_the_mean_over_sentences_is_not_that_of_the_corpus(self):
        compared = compare(Forms(texts=RECOVERED), Forms(texts=REFERENCES))
        corpus = bleu_of_counts(compared["bleu"].sum(0, keepdims=True))[0]
        assert abs(compared["sentence_bleu"].mean() - corpus) > 1.0


class TestRougeL:
    def test_goes_by_the_order_of_words(self):
        assert rouge_l("the sat cat", "the cat sat") == pytest.approx(2 / 3)
        assert rouge_l("cat", "the cat sat on the mat") == pytest.approx(2 / 7)

    def test_minds_neither_case_nor_punctuation(self):
        assert rouge_l("The cat, asleep!", "the cat asleep.") == 1.0

    def test_of_nothing_is_0(self):
        assert rouge_l("", "the cat") == rouge_l("", "") == 0.0

    @given(words=st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
    def test_of_a_text_with_itself_is_1(self, words):
        assert rouge_l(" ".join(words), " ".join(words)) == 1.0


class TestWordSetF1:
    def test_minds_case_but_neither_order_nor_repetition(self):
        assert word_set_f1("cat the cat sat", "the cat sat") == 1.0
        assert word_set_f1("The cat", "the cat") == 0.5

    def test_counts_precision_and_recall_of_different_words(self):
        assert word_set_f1("the dog", "the cat sat on the mat") == pytest.approx(2 * 1 / (2 + 5))

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("Don't stop, it's here.", {"Do", "n't", "stop", ",", "it", "'s", "here", "."}),
            (
                "state-of-the-art at 3:30, for $2,500...",
                {"state-of-the-art", "at", "3:30", ",", "for", "$", "2,500", "..."},
            ),
            ("I'll see (you)", {"I", "'ll", "see", "(", "you", ")"}),
        ],
    )
    def test_cuts_words_as_the_penn_treebank_does(self, text, words):
        assert word_set_f1(text, " ".join(words)) == 1.0
        for word in words:
            assert word_set_f1(text, word) == pytest.approx(2 / (len(words) + 1)), word

    def test_of_nothing_is_0(self):
        assert word_set_f1("", "the cat") == word_set_f1("", "") == 0.0


class TestCosine:
    def test_of_a_vector_and_of_rows_is_the_same(self):
        ours, theirs = np.random.default_rng(0).normal(size=(2, 5, 8))
        expected = [
            ours[row] @ theirs[row] / np.linalg.norm(ours[row]) / np.linalg.norm(theirs[row]) for row in range(5)
        ]
        assert cosine(ours, theirs) == pytest.approx(expected)
        assert cosine(ours[0], theirs[0]) == pytest.approx(expected[0])

    def test_of_a_vector_without_length_is_0(self):
        assert cosine(np.zeros(3), np.ones(3)) == 0.0


class TestTable:
    def test_names_are_those_of_the_entries(self):
        assert len(BY_NAME) == len(MEASURES) + len(CONTENT_MEASURES) + 2
        assert all(BY_NAME[measure.name] is measure for measure in MEASURES)

    def test_only_forms_that_are_known_on_both_sides_are_compared(self):
        ids = Forms(ids=[[1, 2], [3]])
        assert compare(ids, ids).keys() == {"token_accuracy", "token_f1", "exact_match"}
        assert compare(ids, Forms(texts=["a", "b"])) == {}
        both = Forms([[1]], ["a"], np.ones((1, 3)))
        assert compare(both, both).keys() == {measure.name for measure in MEASURES}

    def test_every_text_has_its_own_value(self):
        compared = compare(Forms([[1], [2]], RECOVERED[:2]), Forms([[1], [3]], REFERENCES[:2]))
        assert compared["exact_match"].tolist() == [1.0, 0.0]
        assert compared["bleu"].shape == (2, 10)

    def test_what_is_shown_for_every_text_needs_no_extra(self):
        vectors = np.ones((1, 3))
        everyday = compare_one(Forms([[1]], ["a"], vectors), Forms([[1]], ["a"], vectors))
        assert everyday == {"token_accuracy": 1.0, "token_f1": 1.0, "exact_match": 1.0, "cosine": pytest.approx(1.0)}

    @pytest.mark.parametrize(
        ("name", "value", "shown", "plainly"),
        [
            ("token_f1", 0.573, "57%", "0.573"),
            ("exact_match", 0.0078, "0.8%", "0.008"),
            ("cosine", 0.9123, "0.912", "0.912"),
            ("bleu", 31.94, "31.9", "31.9"),
            ("perplexity", 412.3, "412.3", "412.3"),
        ],
    )
    def test_a_value_is_written_as_its_format_says(self, name, value, shown, plainly):
        assert BY_NAME[name].show(value) == shown
        assert BY_NAME[name].show_plainly(value) == plainly

    def test_a_percentage_has_decimals_only_where_they_are_all_there_is(self):
        assert [percent(value) for value in (0.0, 0.004, 0.0994, 0.0996, 0.5, 1.0)] == [
            "0%",
            "0.4%",
            "9.9%",
            "10%",
            "50%",
            "100%",
        ]
