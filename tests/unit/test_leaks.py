"""What counts as a leak: each kind, what only looks like one, and how well the detectors do on labelled lines."""

import sys
from pathlib import Path

import pytest

from unembed.auditing.assumptions import state_coverage
from unembed.auditing.leaks import KINDS, LeakDetectors, coverage_of, find_leaks, gives_back, read_pattern, read_terms
from unembed.auditing.leaks import names as names_module
from unembed.auditing.leaks.scoring import LabelledLine, score
from unembed.errors import ConfigError

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from leaks import load_labelled, without_extra

FLOOR = 0.75
"""Of each kind's precision and recall on the labelled lines; docs/leaks.md has the figures themselves."""


def found(text):
    return sorted((leak.kind, leak.text) for leak in find_leaks(text))


@pytest.fixture
def no_model(monkeypatch):
    monkeypatch.setattr(names_module, "has_model", lambda: False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to maria.keller@example.com.", [("e-mail addresses", "maria.keller@example.com")]),
        ("write to maria. keller @ example. com", [("e-mail addresses", "maria. keller @ example. com")]),
        ("Call +44 20 7946 0958 now", [("phone numbers", "+44 20 7946 0958")]),
        ("call 555 - 0123 now", [("phone numbers", "555 - 0123")]),
        ("It cost $1,250.00, or 40 euros", [("amounts of money", "$1,250.00"), ("amounts of money", "40 euros")]),
        ("on 3 June 2024 and 2024-03-05", [("dates", "2024-03-05"), ("dates", "3 June 2024")]),
        ("due may 2, as agreed", [("dates", "may 2")]),
        ("Maria Keller and Dr. Osei", [("names", "Dr. Osei"), ("names", "Maria Keller")]),
        ("Ask O'Brien or o'connor", [("names", "O'Brien"), ("names", "o'connor")]),
        ("she took insulin in lisbon", [("drugs", "insulin"), ("places", "lisbon")]),
        ("card 4111 - 1111 - 1111 - 1111", [("card numbers", "4111 - 1111 - 1111 - 1111")]),
        ("iban de89 3704 0044 0532 0130 00 now", [("bank accounts", "de89 3704 0044 0532 0130 00")]),
        ("ssn 536 - 90 - 4399", [("social security numbers", "536 - 90 - 4399")]),
        ("from 192. 168. 14. 7 again", [("IP addresses", "192. 168. 14. 7")]),
        ("the password is hunter2!", [("credentials", "hunter2!")]),
        ("he lives at 12 elm street", [("street addresses", "12 elm street")]),
        ("a 67 - year - old man", [("ages", "67 - year - old")]),
        ("she is a union member", [("trade unions", "union member")]),
    ],
)
def test_what_a_text_says_about_people(text, expected, no_model):
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "the cat sleeps on the mat",
        "symptoms experienced by the group",
        "from 1998-2001, about 2,500 people",
        "may 2 be enough",
        "ISBN 978-3-16-148410-0",
        "order number 4471 889 210",
        "version 2.4.11 of the firmware, 10.0.0.138 no more",
        "card 4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "the password is wrong",
        "a 12-year-old whisky",
        "at five o'clock",
    ],
)
def test_what_only_looks_like_a_leak_is_none(text, no_model):
    assert [leak for leak in found(text) if leak[0] != "IP addresses"] == []


def test_a_version_is_neither_a_date_nor_an_address():
    assert found("Update to version 10.2.11 and release 4.3.2.1") == []


def test_only_what_is_the_same_to_the_last_digit_is_given_back():
    leaks = find_leaks("Maria Keller paid $1,250 on 3 June 2024, see maria@example.com")
    recovered = "maria keller paid $ 1, 250 on 4 june 2024, see mario @ example. com"
    assert {leak.text for leak in gives_back(recovered, leaks)} == {"Maria Keller", "$1,250"}
    assert gives_back("mariakeller 1250", leaks) == []


class TestLabelledLines:
    def test_there_are_enough_of_each_kind_and_enough_that_give_nothing_away(self):
        lines = load_labelled()
        assert len(lines) >= 300
        assert sum(not line.leaks for line in lines) >= 100
        for kind in KINDS:
            assert sum(leak.kind == kind for line in lines for leak in line.leaks) >= 5, kind

    @pytest.mark.parametrize("find", [find_leaks, without_extra], ids=["with the extra", "without it"])
    def test_each_kind_is_found_with_few_errors(self, find):
        if find is find_leaks:
            pytest.importorskip("spacy")
        for kind, result in score(load_labelled(), find, KINDS).items():
            assert result.precision >= FLOOR, (kind, result)
            assert result.recall >= FLOOR, (kind, result)

    def test_a_wrong_item_costs_precision_and_a_missed_one_recall(self):
        lines = [LabelledLine.parse("[Anna|names] met Bob in [Rome|places].")]
        assert lines[0].text == "Anna met Bob in Rome."
        result = score(lines, without_extra, ["names"])["names"]
        assert (result.precision, result.recall) == (0.5, 1.0)
        result = score(lines, lambda text: [], ["places"])["places"]
        assert (result.precision, result.recall) == (1.0, 0.0)


class TestLanguages:
    def test_a_kind_of_one_form_is_found_in_any_language(self):
        for kind in ("e-mail addresses", "card numbers", "bank accounts", "IP addresses", "tickets"):
            assert str(coverage_of(kind)) == "any language"
            assert coverage_of(kind).misses(["German", "Chinese"]) == []

    def test_a_kind_that_knows_english_misses_other_languages(self):
        assert coverage_of("religion").misses(["English", "German"]) == ["German"]
        assert coverage_of("street addresses").misses(["English", "German", "Russian"]) == ["Russian"]
        assert str(coverage_of("dates")) == "English; in any language those in numbers"

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("Geboren am 03.05.1971 in Ulm", "dates"),
            ("позвоните +44 20 7946 0958", "phone numbers"),
            ("Das kostet 40 €", "amounts of money"),
            ("Maria hat angerufen", "names"),
            ("Lindenstraße 12", "street addresses"),
            ("rua da Prata 80", "street addresses"),
            ("schreib an maria@example.com", "e-mail addresses"),
        ],
    )
    def test_what_is_said_to_be_found_in_other_languages_is(self, text, kind, no_model):
        assert kind in [leak.kind for leak in find_leaks(text)]

    def test_the_report_says_so_where_the_inverter_writes_other_languages(self):
        assert state_coverage(KINDS, ["English"]) == []
        (sentence,) = state_coverage(KINDS, ["English", "German"])
        assert "religion" in sentence
        assert "street addresses" not in sentence


class TestOwnDetectors:
    def test_a_pattern_finds_what_the_tokenizer_has_torn_apart(self):
        detectors = LeakDetectors([read_pattern("tickets=TCK-[0-9]{4}")])
        assert detectors.kinds[-1] == "tickets"
        for text in ("see TCK-1234", "see tck - 1234"):
            assert [leak.runs for leak in detectors.find(text) if leak.kind == "tickets"] == [("tck", "1234")]

    def test_a_file_of_terms_is_a_kind_of_its_name(self, tmp_path):
        (tmp_path / "projects.txt").write_text("Blue Heron\nmarzipan\n\n")
        detectors = LeakDetectors([read_terms(tmp_path / "projects.txt")])
        leaks = detectors.find("the blue-heron budget and MARZIPAN, but no bluebird")
        assert [leak.text for leak in leaks if leak.kind == "projects"] == ["blue-heron", "MARZIPAN"]

    @pytest.mark.parametrize(
        ("definition", "problem"),
        [
            ("TCK-[0-9]+", "does not define a detector"),
            ("x=[", "is not a regular expression"),
            ("x=a*", "matches the empty text"),
            ("names=A.*", "is a kind that is built in"),
        ],
    )
    def test_a_definition_that_cannot_work_is_an_error(self, definition, problem):
        with pytest.raises(ConfigError, match=problem):
            read_pattern(definition)

    def test_two_detectors_of_one_name_are_an_error(self):
        with pytest.raises(ConfigError, match="several detectors named 'x'"):
            LeakDetectors([read_pattern("x=a"), read_pattern("x=b")])

    def test_a_file_without_terms_is_an_error(self, tmp_path):
        (tmp_path / "none.txt").write_text("\n")
        with pytest.raises(ConfigError, match="has no terms"):
            read_terms(tmp_path / "none.txt")


def test_without_the_extra_the_note_says_what_is_missing(no_model, monkeypatch):
    monkeypatch.setattr("unembed.auditing.leaks.detectors.has_model", lambda: False)
    assert "pip install 'unembed[leaks]'" in LeakDetectors().note
