"""Edits that hold for related texts too."""

import pytest

from unembed.decoding.guided.edits import Change, SlotBook, apply, compare, locate


class TestEdits:
    def test_a_change_is_as_small_as_can_be(self):
        assert compare((1, 2, 3, 4), (1, 2, 9, 4)) == [Change(2, 3, (9,))]
        assert compare((1, 2, 3, 4), (1, 3, 4)) == [Change(1, 2, ())]
        assert compare((1, 2, 3), (1, 2, 9, 3)) == [Change(2, 2, (9,))]
        assert compare((1, 2, 3), (1, 2, 3)) == []

    @pytest.mark.parametrize("after", [(5, 2, 3, 4, 1), (4, 2, 3, 1), (7, 8), (1, 1, 2, 2), (9, 1, 2, 3, 4, 9)])
    def test_changes_make_the_one_text_of_the_other(self, after):
        before = (1, 2, 3, 4)
        assert apply(before, compare(before, after)) == after

    def test_an_edit_of_one_text_fits_its_relatives(self):
        book = SlotBook()
        parent, child = (1, 2, 3), (1, 8, 8, 3)
        slots = book.first(parent)
        related = book.after(slots, compare(parent, child))
        edit = book.edit(slots, [Change(2, 3, (9,))])
        positions = {slot: position for position, slot in enumerate(related)}
        assert apply(child, locate(edit, positions)) == (1, 8, 8, 9)
        gone = book.edit(slots, [Change(1, 2, (7,))])
        assert locate(gone, positions) is None

    def test_insertions_stay_behind_the_token_that_they_followed(self):
        book = SlotBook()
        slots = book.first((1, 2, 3))
        shorter = {slot: position for position, slot in enumerate(book.after(slots, [Change(0, 1, ())]))}
        assert apply((2, 3), locate(book.edit(slots, [Change(2, 2, (9,))]), shorter)) == (2, 9, 3)
        assert apply((2, 3), locate(book.edit(slots, [Change(0, 0, (9,))]), shorter)) == (9, 2, 3)

    def test_the_same_edit_gives_the_same_slots(self):
        book = SlotBook()
        slots = book.first((1, 2, 3))
        one, other = (book.after(slots, [Change(1, 2, (token,))]) for token in (7, 8))
        assert one == book.after(slots, [Change(1, 2, (7,))])
        assert (one[0], one[2]) == (other[0], other[2])
        assert one[1] != other[1]
