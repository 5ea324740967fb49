"""What the figures mean, in plain sentences. Knows results, no vectors."""

from collections.abc import Sequence

from unembed.defending.result import FLOOR, Setting
from unembed.measures import percent

PRICE = 0.05
"""Share of its quality that a search may lose for a defence to be recommended."""
# Of what is recovered from undefended vectors.
_NOTHING, _LITTLE = 0.95, 0.8


def recommend(undefended: Setting, settings: Sequence[Setting]) -> list[str]:
    """Return what to do, then a sentence for each defence."""
    if undefended.leakage < FLOOR:
        return [
            f"No conclusion: even from undefended vectors the attackers recover only {percent(undefended.leakage)} of "
            f"the words (F1), and {percent(FLOOR)} are needed. With so weak an attack, every defence would look good."
        ]
    families: dict[str, list[Setting]] = {}
    for setting in settings:
        families.setdefault(setting.family, []).append(setting)
    return [_overall(undefended, settings), *(_judge(undefended, each) for each in families.values())]


def price(undefended: Setting, setting: Setting) -> float:
    """Return the share of its quality that a search loses; below 0 if it gains."""
    return (undefended.utility - setting.utility) / max(undefended.utility, 1e-9)


def kept_share(undefended: Setting, setting: Setting) -> float:
    """Return how much of what is recovered from undefended vectors still is, by whom the defence hinders least."""
    shares = [setting.leakage / undefended.leakage]
    if setting.guided_leakage is not None and undefended.guided_leakage:
        shares.append(setting.guided_leakage / undefended.guided_leakage)
    return max(shares)


def _overall(undefended: Setting, settings: Sequence[Setting]) -> str:
    affordable = [each for each in settings if price(undefended, each) <= PRICE]
    best = min(affordable, key=lambda each: kept_share(undefended, each), default=None)
    if best is None or kept_share(undefended, best) > _LITTLE:
        return (
            f"No defence that was tried hides much at a price of up to {PRICE:.0%} of search quality. Protect the "
            "vectors as you protect the texts."
        )
    return (
        f"If a search may lose up to {PRICE:.0%} of its quality, {best.chain} hides most: the strongest blind "
        f"attacker ({best.leakages[0].strongest_blind.name}) recovers {percent(best.leakage)} of the words (F1) "
        f"instead of {percent(undefended.leakage)}. What is left is still a leak: protect the vectors as you "
        "protect the texts."
    )


def _judge(undefended: Setting, settings: Sequence[Setting]) -> str:
    """Say in a sentence what one defence does."""
    if any(attack.kind == "key" for attack in settings[0].leakages[0].attacks):
        return _judge_keyed(undefended, settings[-1])
    affordable = [each for each in settings if price(undefended, each) <= PRICE]
    chosen = min(affordable or settings, key=lambda each: kept_share(undefended, each))
    kept = kept_share(undefended, chosen)
    if kept >= _NOTHING:
        hides = "hides nothing from the strongest attacker"
    elif kept >= _LITTLE:
        hides = "hides little"
    else:
        hides = f"takes {percent(1 - kept)} of the recovered words away"
    exact = [
        sum(each.strongest_blind.figures["exact_match"].value for each in setting.leakages) / len(setting.leakages)
        for setting in (undefended, chosen)
    ]
    return (
        f"{chosen.chain} {hides}: words recovered (F1) {percent(undefended.leakage)} before, {percent(chosen.leakage)} "
        f"after; word for word {percent(exact[0])} before, {percent(exact[1])} after{_by_search(undefended, chosen)}. "
        f"{_cost(undefended, chosen)}"
    )


def _by_search(undefended: Setting, setting: Setting) -> str:
    if setting.guided_leakage is None or undefended.guided_leakage is None:
        return ""
    return (
        f"; by a search with the encoder, words {percent(undefended.guided_leakage)} before, "
        f"{percent(setting.guided_leakage)} after"
    )


def _judge_keyed(undefended: Setting, setting: Setting) -> str:
    leakage = setting.leakages[0]
    without = leakage.best_of("naive", "unpaired")
    stops = (
        f"leaves {percent(without.leakage)} of the words (F1) to whoever knows no pair"
        if without
        else "was not tried against whoever knows no pair"
    )
    with_pairs = [each for each in leakage.attacks if each.kind == "pairs" and each.figures]
    half = next((each for each in with_pairs if each.leakage >= 0.5 * undefended.leakage), None)
    falls = (
        f"; {half.name} are enough to recover {percent(half.leakage)}"
        if half
        else f"; with {with_pairs[-1].name} {percent(with_pairs[-1].leakage)} are recovered"
        if with_pairs
        else ""
    )
    return f"{setting.chain} {stops}{falls}. {_cost(undefended, setting)}"


def _cost(undefended: Setting, setting: Setting) -> str:
    lost, measure = price(undefended, setting), setting.searches[0].measure
    room = 1 - setting.bytes_per_vector / undefended.bytes_per_vector
    paid = f"It costs {percent(lost)} of {measure}" if lost >= 0.005 else f"It costs nothing in {measure}"
    return f"{paid}{f', and saves {percent(room)} of the room' if room >= 0.01 else ''}."
