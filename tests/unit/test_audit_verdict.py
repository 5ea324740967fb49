"""The verdict: only where the interval excludes the threshold, and no all-clear where the method cannot see."""

from collections import Counter

import pytest

from unembed.auditing.encoder import Identified
from unembed.auditing.intervals import wilson
from unembed.auditing.result import Attack, Audit, SourceFacts
from unembed.auditing.verdict import explain, headline, judge
from unembed.connectors import StorageInfo
from unembed.evaluation import Figure


def attack(readable, n, name="blind", *, unseen=0, known=True):
    """An attack with so many readable texts of n, and so many more that it cannot see."""
    figures = {
        "readable": wilson(readable, n),
        "not_cleared": wilson(readable + unseen, n),
        "unseen": wilson(unseen, n),
        "too_long": wilson(unseen, n),
        "other_language": wilson(0, n),
    }
    return Attack(name, n, known, figures, [], [], [], [], [], None, 0.0, 0.0, [])


def audit_of(*attacks, threshold=0.1, vectors=10_000):
    return Audit(
        unembed_version="1",
        made="2026-01-01T00:00+00:00",
        source=SourceFacts("db", StorageInfo("x"), 8, vectors, Counter(), (1, 1, 1), True, {}),
        encoder=Identified("e", "because", True),
        inverter={},
        languages=["English"],
        sample=attacks[0].n,
        wanted=attacks[0].n,
        seed=0,
        attacks=list(attacks),
        calibration=None,
        verdict=judge(attacks, threshold),
        assumptions=[],
        command="",
        shows_text=False,
        canvas_length=32,
    )


class TestJudge:
    def test_an_interval_above_the_threshold_exposes(self):
        assert judge([attack(60, 300)], 0.1).outcome == "above"

    def test_an_interval_below_it_clears(self):
        assert judge([attack(10, 300)], 0.1).outcome == "below"

    def test_an_interval_that_holds_it_decides_nothing(self):
        assert judge([attack(30, 300)], 0.1).outcome == "undecided"
        assert judge([attack(35, 300)], 0.1).outcome == "undecided"

    @pytest.mark.parametrize(("readable", "n"), [(0, 1), (1, 1), (0, 20), (0, 34), (2, 10)])
    def test_few_vectors_decide_nothing(self, readable, n):
        assert judge([attack(readable, n)], 0.3 if readable == n else 0.1).outcome == "undecided"

    def test_few_vectors_may_expose(self):
        assert judge([attack(5, 5)], 0.1).outcome == "above"

    def test_texts_that_the_method_cannot_see_are_not_cleared(self):
        verdict = judge([attack(0, 300, unseen=300)], 0.1)
        assert verdict.outcome == "undecided"
        assert verdict.enough is None
        assert judge([attack(0, 300, unseen=10)], 0.1).outcome == "below"

    def test_texts_that_it_cannot_see_may_be_exposed(self):
        assert judge([attack(150, 300, unseen=150)], 0.1).outcome == "above"

    def test_one_attacker_is_enough_to_expose_and_all_are_needed_to_clear(self):
        safe, exposing, open_ = attack(5, 300), attack(20, 40, "guided"), attack(1, 20, "guided")
        assert (judge([safe, exposing], 0.1).outcome, judge([safe, exposing], 0.1).attacker) == ("above", "guided")
        assert (judge([safe, open_], 0.1).outcome, judge([safe, open_], 0.1).attacker) == ("undecided", "guided")
        assert judge([safe, attack(0, 40, "guided")], 0.1).outcome == "below"

    def test_the_number_that_would_decide_it_decides_it(self):
        verdict = judge([attack(6, 100)], 0.1)
        assert verdict.outcome == "undecided"
        assert 100 < verdict.enough < 600
        assert wilson(0.06 * verdict.enough, verdict.enough).high <= 0.1


class TestHeadline:
    def test_it_says_that_the_method_cannot_see(self):
        audit = audit_of(attack(3, 150, unseen=147))
        assert headline(audit) == "No verdict: the method cannot see 98% of the texts"
        said = " ".join(explain(audit))
        assert "98% are longer than the 32 tokens that this inverter writes" in said
        assert "More vectors will not decide it" in said

    def test_few_vectors_are_named_and_how_many_would_do(self):
        audit = audit_of(attack(0, 20))
        assert headline(audit) == "Undecided: too few vectors for a verdict"
        assert f"`size={audit.verdict.enough}`" in explain(audit)[-1]
        guided = audit_of(attack(0, 300), attack(0, 20, "guided"))
        assert f"`guided={guided.verdict.enough}`" in explain(guided)[-1]

    def test_a_small_database_has_no_more_vectors_to_offer(self):
        assert "too near the threshold" in explain(audit_of(attack(0, 20), vectors=20))[-1]

    def test_an_estimate_that_is_too_wide_asks_for_texts(self):
        audit = audit_of(attack(30, 300, known=False))
        assert headline(audit) == "Undecided: the estimate is too wide"
        assert "`calibrate`" in explain(audit)[-1]

    def test_the_figures_are_those_of_the_verdict(self):
        audit = audit_of(attack(60, 300), attack(0, 40, "guided"))
        assert headline(audit) == "Above the threshold: the texts are exposed"
        assert explain(audit)[0].startswith("Measured: 20% of the texts can be read back in substance")
        assert "n = 300, blind attacker" in explain(audit)[0]

    def test_another_language_is_named(self):
        exposed = attack(60, 300)
        exposed.figures["other_language"] = Figure(0.4, 0.3, 0.5, 300)
        assert "40% are in another language than its English" in explain(audit_of(exposed))[1]
