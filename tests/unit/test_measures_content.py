"""Content words: which words count, when two are the same, and what of a long text came back."""

import pytest

from unembed.measures import PASSAGE_WORDS, best_passage, content_words, stem
from unembed.measures.content import content_precision, content_recall, passage_recall, readable

LONG = " ".join(f"filler{number}" for number in range(60))


@pytest.mark.parametrize(
    "forms",
    [
        ("invoice", "invoices", "invoiced", "invoicing"),
        ("salary", "salaries"),
        ("stop", "stops", "stopped", "stopping"),
        ("process", "processes", "processed"),
        ("quick", "quickly"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms):
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(("word", "other"), [("bus", "bu"), ("sing", "s"), ("red", "r"), ("analysis", "analy")])
def test_an_ending_is_not_cut_where_it_belongs_to_the_word(word, other):
    assert stem(word) != stem(other)


def test_function_words_and_short_words_do_not_count():
    assert content_words("The patient was given 40 mg of insulin, and it helped") == [
        "patient",
        "40",
        "insulin",
        "help",
    ]


def test_a_text_of_function_words_alone_is_compared_by_these():
    assert content_words("what is this") == ["what", "is", "this"]


def test_words_of_other_scripts_count_however_short_they_are():
    assert content_words("猫 на") == ["猫", "на"]


def test_recall_is_of_the_original_and_precision_of_the_recovery():
    recovered, original = "the patient took aspirin", "patients took insulin and metformin daily"
    assert content_recall(recovered, original) == pytest.approx(1 / 4)
    assert content_precision(recovered, original) == pytest.approx(1 / 2)


def test_a_word_that_is_there_twice_counts_once():
    assert content_recall("insulin", "insulin insulin insulin aspirin") == pytest.approx(1 / 2)


class TestPassages:
    def test_a_passage_of_a_long_text_can_come_back_whole(self):
        secret = "maria keller owes seven thousand euros"
        original = f"{LONG} {secret} {LONG}"
        recovered = (
            f"{' '.join(f'filler{number}' for number in range(50, 60))} {secret} filler0 filler1 filler2 filler3"
        )
        assert content_recall(recovered, original) < 0.35
        assert passage_recall(recovered, original) > 0.75
        assert readable(recovered, original) == 1.0
        assert secret in best_passage(recovered, original)[0]

    def test_scattered_words_of_a_long_text_are_no_passage(self):
        recovered = " ".join(f"filler{number}" for number in range(0, 60, 6))
        assert content_precision(recovered, LONG) == 1.0
        assert passage_recall(recovered, LONG) < 0.25
        assert readable(recovered, LONG) == 0.0

    def test_of_a_short_text_the_passage_is_the_whole(self):
        text = " ".join(f"word{number}" for number in range(PASSAGE_WORDS))
        assert best_passage("word3", text) == (text, 1 / PASSAGE_WORDS)
        assert len(best_passage("word3", f"{text} more")[0].split()) == PASSAGE_WORDS

    def test_half_of_the_content_words_are_enough(self):
        assert readable("insulin", "insulin with aspirin") == 1.0
        assert readable("insulin", "insulin with aspirin and codeine") == 0.0


class TestWithoutSpaces:
    def test_a_chinese_text_is_compared_by_its_characters(self):
        assert content_words("我们在会议上讨论了新的合同。") == list("会议上讨论新合同")
        assert passage_recall("会议 合同", "会议讨论合同") == pytest.approx(4 / 6)
        assert readable("会议合同", "会议讨论合同") == 1.0

    def test_japanese_grammar_does_not_count_and_a_katakana_word_is_one(self):
        assert content_words("会社のサーバーは止まった") == ["会", "社", "サーバー", "止"]

    def test_a_text_of_grammar_alone_is_compared_as_it_is(self):
        assert content_words("ありがとう") == ["ありがとう"]

    def test_other_scripts_have_words(self):
        assert content_words("Счёт ещё не оплачен") == ["счёт", "ещё", "не", "оплачен"]
        assert content_words("لم يتم دفع الفاتورة") == ["لم", "يتم", "دفع", "الفاتورة"]
