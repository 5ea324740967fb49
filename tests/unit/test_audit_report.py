"""A report never contradicts itself: headline, tables, histogram and examples are the same rows, whatever they are."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits import WORDS, audit_of, estimated, measured
from unembed.auditing.estimate import step_of
from unembed.measures import percent
from unembed.report import render, to_json, write_report

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40).map(" ".join)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=30)
thresholds = st.sampled_from([0.0, 0.1, 0.5, 1.0])


def check(audit):
    page = render(audit)
    deciding = audit.deciding
    readable = np.mean([row.values["readable"] for row in deciding.rows])
    verdict = audit.verdict

    # The headline.
    assert verdict.readable.value == pytest.approx(readable)
    assert f"{percent(verdict.readable.value)} of the texts can be read back in substance" in page
    assert (verdict.outcome == "above") == any(
        attack.figures["readable"].low > verdict.threshold for attack in audit.attacks
    )
    assert (verdict.outcome == "below") == all(
        attack.figures["not_cleared"].high <= verdict.threshold for attack in audit.attacks
    )
    assert f'class="verdict {verdict.outcome}"' in page

    for attack in audit.attacks:
        # Every figure is the mean of its rows, inside its interval.
        for name, figure in attack.figures.items():
            assert figure.value == pytest.approx(np.mean([row.values[name] for row in attack.rows]))
            assert figure.low - 1e-9 <= figure.value <= figure.high + 1e-9
            assert figure.n == attack.n == len(attack.rows)
        for row in attack.rows:
            assert row.values["not_cleared"] >= max(row.values["readable"], row.values["unseen"]) - 1e-9
        # The histogram: all vectors, and as many red ones as the headline says.
        assert sum(attack.distribution) == pytest.approx(attack.n)
        assert sum(attack.distribution[5:]) == pytest.approx(attack.n * attack.figures["readable"].value)
        assert f"in substance, {percent(attack.figures['readable'].value)} of all" in page
        # Groups and leaks are counts of rows.
        assert sum(group.n for group in attack.by_length) == attack.n
        for leak in attack.leaks:
            assert leak.given_back == sum(leak.kind in row.given for row in attack.rows)
            assert leak.holding is None or leak.given_back <= leak.holding
        # The worst are the worst, and those at the threshold only just count.
        recalls = sorted((row.values["passage_recall"] for row in attack.rows), reverse=True)
        shown = [attack.rows[example.row].values["passage_recall"] for example in attack.worst]
        assert shown == recalls[: len(shown)]
        least = sorted(row.values["passage_recall"] for row in attack.rows if row.values["readable"] == 1.0)
        near = [attack.rows[example.row].values["passage_recall"] for example in attack.borderline]
        assert near == (least[: len(near)] if attack.known else [])
        assert len(near) == (min(3, len(least)) if attack.known else 0)
        if attack.known:
            for row in attack.rows:
                assert row.chances[step_of(row.values["passage_recall"])] == 1.0
        if attack.patient:
            for name, figure in attack.patient.figures.items():
                assert attack.figures[name].value - 1e-9 <= figure.value <= 1.0

    # The histograms that are drawn are those of the result, red from the threshold on.
    labels = re.findall(r'aria-label="Vectors by [^"]*: (0%: [^"]*)"', page)
    assert len(labels) == len(audit.attacks)
    for label, attack in zip(labels, audit.attacks, strict=True):
        drawn = [float(count.partition(": ")[2].replace(",", "")) for count in label.split(", ")]
        assert drawn == pytest.approx(attack.distribution, abs=0.5)
    # Every example says what its row says.
    heads = re.findall(r"number (\d+) of the sample\), (\w+) attacker</span><span>(\S+) of the content words", page)
    by_name = {attack.name: attack for attack in audit.attacks}
    assert heads
    for number, name, share in heads:
        assert share == percent(by_name[name].rows[int(number) - 1].values["passage_recall"])


@settings(max_examples=25, deadline=None)
@given(pairs=pairs, few=st.integers(1, 10), threshold=thresholds)
def test_a_measured_report_agrees_with_its_rows(pairs, few, threshold):
    check(audit_of([measured("blind", pairs), measured("guided", pairs[:few])], threshold))


@settings(max_examples=25, deadline=None)
@given(pairs=pairs, seed=st.integers(0, 99), threshold=thresholds)
def test_an_estimated_report_agrees_with_its_rows(pairs, seed, threshold):
    check(audit_of([estimated("blind", pairs, seed), estimated("guided", pairs, seed)], threshold))


def test_the_report_says_in_which_languages_each_kind_is_looked_for():
    audit = audit_of([measured("blind", [("maria keller salary", "maria keller"), ("the contract", "lisbon")])], 0.1)
    assert {leak["kind"]: leak["coverage"]["languages"] for leak in to_json(audit)["attacks"][0]["leaks"]} == {
        "names": ("English",),
        "places": ("English",),
        "medical terms": ("English",),
    }
    page = render(audit)
    assert "English; in any language 1,300 first names in Latin letters" in page
    assert "medical terms." in page
    assert "writes up to 8 tokens of English." in page
    multilingual = render(replace(audit, languages=["English", "German"]))
    assert "medical terms (English)." in multilingual
    assert "writes up to 8 tokens of English, German." in multilingual


def test_the_report_links_to_that_of_the_defences_once_it_is_there(tmp_path):
    audit = audit_of([measured("blind", [("insulin salary", "insulin")])], 0.1)
    link = '<a href="defences.html">'
    write_report(tmp_path, audit)
    before = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert link not in before
    assert "None was tried here" in before
    (tmp_path / "defences.html").write_text("measured")
    write_report(tmp_path, audit)
    after = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert link in after
    assert "None was tried here" not in after


def test_the_rows_are_in_the_json():
    audit = audit_of([measured("blind", [("insulin salary", "insulin"), ("maria keller", "the of")])], 0.1)
    (attack,) = to_json(audit)["attacks"]
    assert [row["values"]["readable"] for row in attack["rows"]] == [1.0, 0.0]
    assert attack["figures"]["readable"]["value"] == 0.5


def test_without_texts_a_text_with_the_very_vector_is_recovered_and_no_guided_attacker_is_excluded():
    pairs = [("", "insulin"), ("", "salary maria")]
    before = estimated("guided", pairs, 0)
    assert before.figures["readable"].high == before.figures["not_cleared"].high == 1.0
    assert estimated("blind", pairs, 0).figures["readable"].high < 1.0
    found = estimated("guided", pairs, 0, cosine=1.0)
    assert found.figures["readable"].value == found.figures["exact_match"].value == 1.0
    assert found.figures["unseen"].value == 0.0
    assert found.distribution[-1] == 2.0
    assert [row.tokens for row in found.rows] == [1, 2]


def test_ten_times_the_budget_adds_what_the_last_tenfold_added():
    pairs = [("insulin salary", "insulin salary"), ("maria keller lisbon", "the of maria keller lisbon")] * 3
    attack = measured("guided", pairs)  # the first came back early, the second late
    assert [row.early["readable"] for row in attack.rows[:2]] == [1.0, 0.0]
    assert attack.patient.figures["readable"].value == 1.0
    attack = measured("guided", [*pairs, *[("doctor monday", "the")] * 6])
    assert attack.figures["readable"].value == 0.5
    assert attack.patient.figures["readable"].value == 0.75
    assert measured("blind", pairs).patient is None
