"""Which content words came back, word by word."""

import pytest

from unembed.measures import all_words, fate_of, fates


def test_each_different_content_word_has_a_fate_in_the_order_of_the_text():
    found = fates("My doctor says that I have diabetes.", all_words("i have a doctor about diabetic saying."))
    assert [(each.word, each.fate) for each in found] == [("doctor", "same"), ("says", "near"), ("diabetes", "near")]


def test_accents_and_case_do_not_matter():
    assert [each.fate for each in fates("Café Zürich", ["cafe", "zurich"])] == ["same", "same"]


@pytest.mark.parametrize(
    ("word", "other", "fate"),
    [
        ("divorced", "divorce", "near"),
        ("diabetes", "diabetic", "near"),
        ("northwind", "north", "near"),
        ("understand", "underground", "lost"),
        ("party", "part", "lost"),
        ("march", "march", "same"),
    ],
)
def test_near_is_the_same_stem_or_most_of_the_letters(word, other, fate):
    assert fate_of(word, [other]) == fate


def test_a_word_that_comes_twice_counts_once():
    assert len(fates("dog bites dog", ["dog"])) == 2


def test_a_text_of_function_words_counts_all_its_words():
    assert len(fates("it is what it is", [])) == 3
