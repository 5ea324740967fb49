"""How tokenizers of each family mark the pieces of words."""

import pytest

from unembed.canvas.marks import SubwordMarks

TEXT = "the garden is xylophonic"


def pieces_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


@pytest.mark.parametrize(
    ("family", "continuation", "start"), [("WordPiece", "##", ""), ("BPE", "", "Ġ"), ("Unigram", "", "▁")]
)
def test_marks_are_found_in_the_tokenizer(build_tokenizer, family, continuation, start):
    marks = SubwordMarks.of(build_tokenizer(family))
    assert (marks.continuation, marks.start) == (continuation, start)


def test_bare_pieces_are_the_text_without_its_spaces(any_tokenizer):
    marks = SubwordMarks.of(any_tokenizer)
    assert "".join(marks.bare(piece) for piece in pieces_of(any_tokenizer, TEXT)) == TEXT.replace(" ", "")


def test_a_word_begins_where_a_piece_does_not_continue_one(any_tokenizer):
    marks = SubwordMarks.of(any_tokenizer)
    words = []
    for piece in pieces_of(any_tokenizer, TEXT):
        if words and marks.continues(piece):
            words[-1] += marks.bare(piece)
        else:
            words.append(marks.bare(piece))
    assert words == TEXT.split()


def test_a_word_by_itself_is_read_as_inside_a_text(any_tokenizer):
    marks = SubwordMarks.of(any_tokenizer)
    inside = pieces_of(any_tokenizer, "the garden")[len(pieces_of(any_tokenizer, "the")) :]
    assert pieces_of(any_tokenizer, marks.inside_text("garden")) == inside


def test_bytes_are_written_as_the_characters_that_they_are(build_tokenizer):
    marks = SubwordMarks.of(build_tokenizer("BPE"))
    assert marks.bare("ĠcafÃ©") == "café"


def test_a_mark_by_itself_is_a_piece_of_text():
    marks = SubwordMarks(continuation="##")
    assert not marks.continues("##")
    assert marks.continues("##s")
