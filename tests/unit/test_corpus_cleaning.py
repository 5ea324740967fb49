"""Cleaning a text and cutting it into sentences, fragments or questions."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unembed.corpus import clean, split_sentences
from unembed.corpus.cleaning import cut_fragment, find_question

any_text = st.text(st.characters(codec=None), max_size=60)
sentence_like = st.text(st.sampled_from("aB1.!?…。！」\"') Mr"), max_size=80).map(clean)


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("  two\t\twords\n", "two words"),
        ("line\u2028one\x85two\x1cthree\r\nfour", "line one two three four"),
        ("no\u00a0break\u3000space", "no break space"),
        ("zero\u200bwidth\ufeff and soft\u00adhyphen", "zerowidth and softhyphen"),
        ("bell\x07 and nul\x00 and half \ud800 a pair", "bell and nul and half a pair"),
        ("cafe\u0301", "café"),
        ("e\u200b\u0301", "é"),
        ("\u200b \u200b", ""),
    ],
)
def test_a_clean_text_has_visible_composed_characters_and_single_spaces(dirty, cleaned):
    assert clean(dirty) == cleaned


@given(any_text)
@example("e\u200b\u0301")
@example("\ud800")
def test_cleaning_is_idempotent_and_gives_one_writable_line(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert cleaned == unicodedata.normalize("NFC", cleaned)
    assert len(cleaned.splitlines()) <= 1
    assert cleaned.isprintable()
    cleaned.encode("utf-8")


@pytest.mark.parametrize(
    "sentences",
    [
        ["He left.", "She stayed!", "Why?", "Nobody knows…", "The end"],
        ["Dr. Smith met Mrs. Jones.", "They talked."],
        ["J. R. R. Tolkien wrote it.", "The U.S. Senate read it."],
        ["It costs 3.14 dollars on example.org today.", "It is cheap."],
        ["See No. 5 and Fig. 3 for details.", "He said no.", "Then he went."],
        ['"Stop!" he cried.', '"Why?" asked the owl.', "(Nobody answered.)", "So it went."],
        ["Some animals, e.g. owls, fly at night.", "Others do not."],
        ["1. First item.", "2. Second item."],
        ["¿Qué hora es?", "¡Ya es tarde!"],
    ],
)
def test_sentences_end_where_a_reader_would_end_them(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_chinese_and_japanese_sentences_need_no_space_between_them():
    assert split_sentences("今日は晴れ。元気ですか？「はい。」") == ["今日は晴れ。", "元気ですか？", "「はい。」"]


def test_no_text_has_no_sentences():
    assert split_sentences("") == []


@given(sentence_like)
def test_splitting_loses_nothing_but_white_space(text):
    sentences = split_sentences(text)
    assert "".join(sentences).replace(" ", "") == text.replace(" ", "")
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@given(any_text.map(clean), st.floats(0, 1, exclude_max=True))
def test_a_fragment_is_a_part_of_its_text_and_never_empty(text, position):
    fragment = cut_fragment(text, position)
    assert fragment in text
    assert fragment or not text


@pytest.mark.parametrize(
    ("position", "fragment"),
    [(0.0, "one, two"), (0.499, "four, five"), (0.5, "one, two, three"), (0.9999, "three, four, five")],
)
def test_the_position_decides_how_many_words_and_from_where(monkeypatch, position, fragment):
    monkeypatch.setattr("unembed.corpus.cleaning._LONGEST_FRAGMENT", 3)
    assert cut_fragment("one, two, three, four, five.", position) == fragment


def test_a_text_of_one_word_or_of_punctuation_stays_whole():
    assert cut_fragment("Amen.", 0.5) == "Amen."
    assert cut_fragment("... ?!", 0.5) == "... ?!"


@pytest.mark.parametrize(
    ("position", "question"),
    [
        (0.0, "What is it?"),
        (0.25, "What is it"),
        (0.5, "Who asks?"),
        (0.75, "Who asks"),
    ],
)
def test_the_position_decides_which_question_and_whether_its_mark_stays(position, question):
    assert find_question("It fell. What is it? A stone, I think. “Who asks?", position) == question


def test_a_text_that_asks_nothing_has_no_question():
    assert find_question("So be it. Nobody asked.", 0.5) is None
    assert not find_question("?", 0.5)
