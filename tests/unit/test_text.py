"""Strings as tokenizers and terminals want them."""

import pytest

from unembed.text import printable, printable_lines, well_formed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id-7", "id-7"),
        ("Łódź 東京 🙂", "Łódź 東京 🙂"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b2J", "\\x9b2J"),
        ("two\r\nlines", "two\\r\\nlines"),
        ("\u202eabc", "\\u202eabc"),
        ("half \ud83d", "half \\ud83d"),
    ],
)
def test_what_is_printed_cannot_control_a_terminal(text, shown):
    assert printable(text) == shown
    assert shown.isprintable()


def test_half_characters_are_replaced_and_whole_ones_kept():
    assert well_formed("a\ud83db") == "a?b"
    assert well_formed("a🙂é東") == "a🙂é東"
    assert well_formed("") == ""


def test_lines_stay_lines():
    assert printable_lines("one\n  two\x07") == "one\n  two\\x07"
