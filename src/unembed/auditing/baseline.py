"""What got worse since an earlier audit: differences of two reports, with intervals. Knows no pages.

The interval of a difference is made of the intervals of both figures (Newcombe's method, which holds for shares, and
for means as well). Many figures are compared, so each interval is widened (Bonferroni): if nothing has changed, five
comparisons in a hundred name something all the same.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

from unembed.auditing.result import Attack, Audit, Change, Comparison
from unembed.errors import ConfigError, from_os_error
from unembed.evaluation import Figure
from unembed.measures import BY_NAME

_MEASURES = ("readable", "passage_recall", "exact_match")
_REMEDY = "Give a report.json that unembed audit wrote with this version."
_LEVEL = 0.05
_USUAL = NormalDist().inv_cdf(1 - _LEVEL / 2)


def read_baseline(path: str | Path) -> dict[str, Any]:
    """Return an earlier report.

    Raises:
        ConfigError: the file is missing, or no report.
    """
    file = Path(path)
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise from_os_error(error, f"reading {file}") from error
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON.", _REMEDY) from error
    if not isinstance(report, dict) or not {"source", "encoder", "attacks", "verdict", "made"} <= report.keys():
        raise ConfigError(f"{file} is not the report of an audit.", _REMEDY)
    return report


def compare(audit: Audit, baseline: Mapping[str, Any]) -> Comparison:
    """Compare an audit with an earlier report.

    Raises:
        ConfigError: the two have nothing in common that can be compared.
    """
    try:
        encoder, outcome = baseline["encoder"]["name"], baseline["verdict"]["outcome"]
        pairs = list(_pairs(audit, baseline["attacks"]))
        earlier = [_figure(before) for *_, before, _ in pairs]
        name, made = str(baseline["source"]["name"]), str(baseline["made"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"The baseline lacks {error}.", _REMEDY) from error
    if encoder != audit.encoder.name:
        raise ConfigError(
            f"The baseline is about vectors of {encoder}; these are of {audit.encoder.name}.",
            "Give a baseline of the same encoder, or none.",
        )
    if not pairs:
        raise ConfigError(
            "The baseline has no attacker in common with this audit: one is measured, the other estimated.",
            "Give a baseline that was made in the same way, or none.",
        )
    factor = NormalDist().inv_cdf(1 - _LEVEL / 2 / len(pairs)) / _USUAL
    changes = [
        _change(attack, what, label, before, after, factor)
        for (attack, what, label, _, after), before in zip(pairs, earlier, strict=True)
    ]
    return Comparison(name, made, outcome, changes)


def _pairs(audit: Audit, attacks: list[Any]) -> Iterator[tuple[Attack, str, str, Any, Figure]]:
    """Yield what both have: the attack, the name and the label of the figure, how it was, and how it is."""
    earlier = {(attack["name"], attack["known"]): attack for attack in attacks}
    for attack in audit.attacks:
        before = earlier.get((attack.name, attack.known))
        if before is None:
            continue
        for name in _MEASURES:
            if name in attack.figures and name in before["figures"]:
                yield attack, name, BY_NAME[name].plain, before["figures"][name], attack.figures[name]
        kinds = {leak["kind"]: leak["share"] for leak in before["leaks"]}
        for leak in attack.leaks:
            if leak.kind in kinds:
                how = "given back" if attack.known else "shown"
                yield attack, leak.kind, f"{leak.kind} {how}", kinds[leak.kind], leak.share


def _figure(plain: Any) -> Figure:
    return Figure(plain["value"], plain["low"], plain["high"], plain["n"])


def _change(attack: Attack, what: str, label: str, before: Figure, after: Figure, factor: float) -> Change:
    value = after.value - before.value
    down = factor * math.hypot(after.value - after.low, before.high - before.value)
    up = factor * math.hypot(after.high - after.value, before.value - before.low)
    difference = Figure(value, max(-1.0, value - down), min(1.0, value + up), min(after.n, before.n))
    state = "worse" if difference.low > 0 else "better" if difference.high < 0 else "same"
    return Change(attack.name, what, label, before, after, difference, state)  # type: ignore[arg-type]
