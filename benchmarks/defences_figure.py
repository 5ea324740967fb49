"""Draws leakage against search quality, and prints the table of the docs, from a report of ``unembed defend``.

python benchmarks/defences_figure.py work/defend/defences.json --output docs/defences.png
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from unembed.files import atomic_path

_COLOURS = (
    "#1f6fb2",
    "#c8553d",
    "#3f8f5b",
    "#8a5a00",
    "#6f4aa8",
    "#2f8f9d",
    "#b3261e",
    "#5a6675",
    "#a3477f",
    "#9ab12f",
)
_MARKERS = ("o", "s", "^", "D")
_NO_KEY = ("naive", "denoised", "trained", "averaged", "unmixed", "pairs", "unpaired")


def strongest(leakage: dict[str, Any], kinds: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the attack of some kinds that recovered most from a store."""
    tried = [attack for attack in leakage["attacks"] if attack["kind"] in kinds and attack["figures"]]
    return max(tried, key=lambda attack: float(attack["figures"]["token_f1"]["value"]), default=None)


def show(figure: dict[str, Any]) -> str:
    """Write a figure with its interval."""
    return f"{figure['value']:.2f} [{figure['low']:.2f}, {figure['high']:.2f}]"


def rows_of(report: dict[str, Any]) -> list[list[str]]:
    """Return the table: a row for each setting, with every store's figures by the naive and by the best attacker."""
    stores = [leakage["store"] for leakage in report["undefended"]["leakages"]]
    head = ["defence", "bytes", report["undefended"]["searches"][0]["measure"], "change"]
    for store in stores:
        head += [f"{store}: naive", "strongest blind", "by", "exact"]
    rows = [head, ["---"] * len(head)]
    for setting in (report["undefended"], *report["settings"]):
        changes = [search["change"]["value"] for search in setting["searches"]]
        row = [f"`{setting['chain']}`" if setting["chain"] else "none", f"{setting['bytes_per_vector']:,}"]
        row += [f"{setting['utility']:.3f}", f"{sum(changes) / len(changes):+.3f}" if setting["chain"] else ""]
        for leakage in setting["leakages"]:
            naive, best = strongest(leakage, ("naive",)), strongest(leakage, _NO_KEY)
            assert naive is not None
            assert best is not None
            row += [show(naive["figures"]["token_f1"]), show(best["figures"]["token_f1"]), best["name"]]
            row.append(f"{best['figures']['exact_match']['value']:.3f}")
        rows.append(row)
    return rows


def draw(axes: Any, report: dict[str, Any], place: int) -> None:
    """Draw the settings by search quality and by what the strongest blind attacker recovers from one store."""
    plain = report["undefended"]
    families = list(dict.fromkeys(setting["family"] for setting in report["settings"]))

    def point(setting: dict[str, Any]) -> tuple[float, float]:
        best = strongest(setting["leakages"][place], _NO_KEY)
        assert best is not None
        return setting["utility"], best["figures"]["token_f1"]["value"]

    for number, family in enumerate(families):
        members = [point(setting) for setting in report["settings"] if setting["family"] == family]
        colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        axes.plot(*zip(*members, strict=True), color=colour, marker=marker, markersize=4, linewidth=1.2, label=family)
    axes.plot(*point(plain), color="black", marker="*", markersize=11, linestyle="", label="undefended", zorder=1)
    n = strongest(plain["leakages"][place], _NO_KEY)
    axes.set_title(f"{plain['leakages'][place]['store']} (n = {n['n'] if n else 0})", fontsize=10)
    axes.set(xlabel=f"search quality ({plain['searches'][0]['measure']})")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw one panel for each store; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="defences.json")
    parser.add_argument("--output", type=Path, required=True, help="the picture, .png")
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8"))
    stores = report["undefended"]["leakages"]
    figure = Figure(figsize=(1.8 + 4.2 * len(stores), 4.0), layout="constrained")
    every = figure.subplots(1, len(stores), sharey=True, squeeze=False)[0]
    for place, axes in enumerate(every):
        draw(axes, report, place)
    every[0].set_ylim(bottom=0)  # the panels share it, so only now is the top known
    every[0].set_ylabel("words recovered by the strongest blind attacker (token F1)", fontsize=9)
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    with atomic_path(options.output) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
    for row in rows_of(report):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
