"""Strings as tokenizers and terminals want them."""

import pytest

from unembed.text import printable, well_formed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id-7", "id-7"),
        ("Łódź 東京 🙂", "Łódź 東京 🙂"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bcreset", "creset"),
        ("two\r\nlines\t", "twolines"),
        ("\u202eabc\u2066", "abc"),
        ("half \ud83d", "half ?"),
    ],
)
def test_what_is_printed_cannot_control_a_terminal(text, shown):
    assert printable(text) == shown
    assert printable(printable(text)) == printable(text)


def test_half_characters_are_replaced_and_whole_ones_kept():
    assert well_formed("a\ud83db") == "a?b"
    assert well_formed("a🙂é東") == "a🙂é東"
    assert well_formed("") == ""
