"""What is said about defences, from figures alone."""

import pytest

from unembed.defending.recommend import price, recommend
from unembed.defending.result import AttackResult, DefenceReport, Leakage, SearchResult, Setting
from unembed.evaluation import Figure
from unembed.report.charts import Point, scatter


def figure(value):
    return Figure(value, value - 0.05, value + 0.05, 100)


def attack(name, f1, kind=None):
    figures = {"token_f1": figure(f1), "exact_match": figure(f1 / 2)}
    return AttackResult(name, kind or name, 100, figures, 4, 1, 2, 0.1)


def setting(chain, family, utility, size=1536, **leakages):
    attacks = [attack(name.replace("_", " "), f1) for name, f1 in leakages.items()]
    search = SearchResult("c", "ndcg@10", {"ndcg@10": figure(utility)}, figure(0.0), 1.0, 1)
    return Setting(chain, family, size, [Leakage("texts", attacks)], [search], 1.0)


PLAIN = setting("", "undefended", 0.5, naive=0.6)


def test_a_weak_attack_gives_no_conclusion():
    weak = setting("", "undefended", 0.5, naive=0.2)
    (said,) = recommend(weak, [setting("int8", "int", 0.5, naive=0.1)])
    assert said.startswith("No conclusion")


def test_what_hides_nothing_is_said_to_hide_nothing():
    said = recommend(PLAIN, [setting("int8", "int", 0.5, 388, naive=0.3, trained=0.6)])
    assert said[0].startswith("No defence that was tried hides much")
    assert "int8 hides nothing from the strongest attacker" in said[1]
    assert "costs nothing in ndcg@10" in said[1]
    assert "saves 75% of the room" in said[1]


def test_a_defence_that_only_hinders_the_blind_hides_nothing():
    plain = setting("", "undefended", 0.5, naive=0.6, guided=0.8)
    said = recommend(plain, [setting("int8", "int", 0.5, naive=0.1, guided=0.8)])
    assert said[0].startswith("No defence that was tried hides much")
    assert "int8 hides nothing from the strongest attacker" in said[1]
    assert "by a search with the encoder, words 80% before, 80% after" in said[1]


def test_the_best_defence_at_a_fair_price_is_named_with_what_is_left():
    weak = setting("noise:0.2", "noise", 0.49, naive=0.2, trained=0.4)
    strong = setting("noise:1", "noise", 0.3, naive=0.0, trained=0.05)
    said = recommend(PLAIN, [weak, strong])
    assert "noise:0.2 hides most: the strongest blind attacker (trained) recovers 40%" in said[0]
    assert "noise:0.2 takes 33% of the recovered words away" in said[1]
    assert "costs 2.0% of ndcg@10" in said[1]
    assert price(PLAIN, strong) == pytest.approx(0.4)


def test_a_rotation_is_judged_by_who_knows_what():
    rotated = setting("rotate", "rotate", 0.5, naive=0.05)
    attacks = [attack("naive", 0.05), attack("10 pairs", 0.1, "pairs"), attack("100 pairs", 0.35, "pairs")]
    attacks += [attack("384 pairs", 0.6, "pairs"), attack("key known", 0.6, "key")]
    rotated = Setting("rotate", "rotate", 1536, [Leakage("texts", attacks)], rotated.searches, 1.0)
    said = recommend(PLAIN, [rotated])[1]
    assert "leaves 5.0% of the words (F1) to whoever knows no pair" in said
    assert "100 pairs are enough to recover 35%" in said
    assert rotated.leakages[0].strongest.name == "384 pairs"


def test_settings_of_like_quality_are_compared_with_one_another():
    settings = [
        setting("a", "a", 0.50, naive=0.6),
        setting("b", "b", 0.49, naive=0.2),
        setting("c", "c", 0.40, naive=0.1),
        setting("d", "d", 0.39, naive=0.3),
        setting("e", "e", 0.10, naive=0.0),
    ]
    report = DefenceReport("1", "now", "e", "i", {}, {}, 0, 0, PLAIN, settings, [], [], "", False)
    assert [[each.chain for each in group] for group in report.matched()] == [["b", "a"], ["c", "d"]]
    assert report.means_something


def test_an_attacker_who_could_do_nothing_recovers_nothing():
    failed = AttackResult("0 pairs", "unpaired", 0, {}, 0, 0, 0, 0.0, "too few")
    leakage = Leakage("texts", [attack("naive", 0.1), failed])
    assert leakage.strongest.name == "naive"
    assert leakage.best_of("unpaired") is None


def test_the_picture_has_a_point_for_each_setting_and_escapes_names():
    drawn = str(scatter([Point(0.5, 0.6, "<b>", "x"), Point(0.4, 0.2, "two", "x")], across="nDCG", up="F1"))
    assert drawn.count("<circle") == 3
    assert "<b>" not in drawn
    assert "nDCG" in drawn
