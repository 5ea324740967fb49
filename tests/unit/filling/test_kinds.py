"""Kinds of candidates: what each holds, which slot gets which, and what is wrong with others."""

import pytest

from unembed.errors import ConfigError
from unembed.filling import KINDS, Template, choose_candidates, read_choices
from unembed.filling.kinds import Free, candidates_of


@pytest.mark.parametrize(
    ("kind", "count", "examples"),
    [
        ("digits:4", 10_000, ["0000", "4827", "9999"]),
        ("years:1990-1999", 10, ["1990", "1999"]),
        ("numbers:7", 1, ["7"]),
        ("dates", 2 * 366, ["3 May", "May 3", "29 February"]),
        ("dates:2023", 4 * 365, ["3 May 2023", "May 3, 2023", "2023-05-03", "03/05/2023"]),
        ("amounts:999-1001", 3, ["999", "1,000", "1,001"]),
        ("times", 288, ["0:00", "14:30", "23:55"]),
        ("weekdays", 7, ["Monday"]),
        ("months", 12, ["May"]),
    ],
)
def test_generated_kinds_hold_what_they_say(kind, count, examples):
    found = candidates_of(kind)
    assert len(found) == len(set(found)) == count
    assert set(examples) <= set(found)


def test_a_leap_day_is_a_day_of_leap_years_only():
    assert "29 February 2024" in candidates_of("dates:2024")
    assert "29 February 2023" not in candidates_of("dates:2023")


def test_amounts_without_a_range_have_up_to_three_digits_that_are_not_zero():
    found = set(candidates_of("amounts"))
    assert {"7", "85", "999", "1,250", "45,000", "1,000,000"} <= found
    assert "1,234" not in found


@pytest.mark.parametrize("kind", sorted(kind for kind in KINDS if not KINDS[kind].argument))
def test_lists_have_no_empty_or_doubled_entries(kind):
    found = candidates_of(kind)
    assert len(found) >= 7
    assert len(set(found)) == len(found)
    assert all(value == value.strip() != "" for value in found)


def test_names_are_written_as_texts_write_them():
    assert {"Ada", "Helena"} <= set(candidates_of("first-names"))
    assert {"Berlin", "New York"} <= set(candidates_of("cities"))
    assert not {"Germany", "California", "Europe"} & set(candidates_of("cities"))


def test_candidates_come_from_the_user_then_from_the_template_then_from_the_slots_name():
    template = Template.parse("{name} {city:weekdays} {secret} {date}")
    names, weekdays, free, dates = choose_candidates(template, {"date": ["  today ", "", "today", "tomorrow"]})
    assert "Ada" in names
    assert "Monday" in weekdays
    assert free == Free((1, 2, 3, 4))
    assert dates == ["today", "tomorrow"]


def test_what_is_typed_is_read(tmp_path):
    (tmp_path / "list.txt").write_text("a\n\nb\n", encoding="utf-8-sig")
    given = read_choices(["pin=digits:2"], [f"word={tmp_path / 'list.txt'}"])
    pins, words = choose_candidates(Template.parse("{pin} {word}"), given)
    assert len(pins) == 100
    assert words == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"nam": "cities"}, "no slot 'nam': did you mean 'name'?"),
        ({"name": "citys"}, "no kind 'citys': did you mean 'cities'?"),
        ({"name": "cities:3"}, "takes nothing behind a colon"),
        ({"name": "digits"}, "not a number of digits"),
        ({"name": "digits:7"}, "not a number of digits"),
        ({"name": "numbers:9-1"}, "is not a range"),
        ({"name": "numbers:0-9999999"}, "10,000,000 candidates"),
        ({"name": "years:20000"}, "are not years"),
        ({"name": "free:0"}, "not a number of tokens"),
        ({"name": "free:9"}, "not a number of tokens"),
        ({"name": []}, "the list is empty"),
        ({"name": [" ", ""]}, "the list is empty"),
    ],
)
def test_candidates_that_cannot_be_are_refused(given, problem):
    with pytest.raises(ConfigError) as raised:
        choose_candidates(Template.parse("Dear {name}"), given)
    assert problem in raised.value.problem
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("kinds", "lists", "problem"),
    [
        (["cities"], [], "does not say which slot"),
        ([], ["=x.txt"], "does not say which slot"),
        (["a=cities", "a=months"], [], "given candidates twice"),
        ([], ["a=missing.txt"], "missing.txt"),
    ],
)
def test_what_is_typed_wrong_is_refused(kinds, lists, problem):
    with pytest.raises(Exception, match=problem):
        read_choices(kinds, lists)


def test_a_list_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "list.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text file"):
        read_choices([], [f"a={tmp_path / 'list.bin'}"])
