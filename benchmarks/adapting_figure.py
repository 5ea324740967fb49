"""Draws recovery against the number of pairs, from the JSON files that ``adapting.py`` wrote.

python benchmarks/adapting_figure.py bge.json openai.json --output docs/adapting.png
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unembed.evaluation import Bootstrap
from unembed.files import atomic_path

_COLOURS = ("#1f6fb2", "#c8553d", "#3f8f5b", "#8a6bbf", "#b8862b", "#5f6b76")
_BLIND = re.compile(r"(.+), (\d+) pairs")
_BOOTSTRAP = Bootstrap()
_NO_PAIRS = 30
"""Where 0 pairs stand on the logarithmic axis."""


def read_curves(result: dict[str, Any]) -> dict[str, dict[int, list[float]]]:
    """Return the token F1 of every text, by the texts' name and the number of pairs."""
    curves: dict[str, dict[int, list[float]]] = {}
    for name, values in result["times"].items():
        if found := _BLIND.fullmatch(name):
            curves.setdefault(found[1], {})[int(found[2])] = values
    return curves


def draw(axes: Any, encoder: str, points: dict[int, list[float]], base: list[float], colour: str) -> None:
    """Draw one encoder's share of its base's token F1, in the band of its interval."""
    if 0 in points:
        alone = _BOOTSTRAP.ratio(np.array(points[0]), np.array(base))
        reach = [[alone.value - alone.low], [alone.high - alone.value]]
        axes.errorbar([_NO_PAIRS], [alone.value], yerr=reach, color=colour, marker="D", markersize=5, capsize=2)
    sizes = sorted(size for size in points if size)
    shares = [_BOOTSTRAP.ratio(np.array(points[size]), np.array(base)) for size in sizes]
    axes.plot(sizes, [each.value for each in shares], color=colour, marker="o", markersize=3.5, label=encoder)
    axes.fill_between(
        sizes, [each.low for each in shares], [each.high for each in shares], color=colour, alpha=0.15, linewidth=0
    )


def main() -> None:
    """Draw one panel for each kind of text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files of adapting.py")
    parser.add_argument("--output", type=Path, required=True, help="the picture, .png")
    options = parser.parse_args()
    panels: dict[str, list[tuple[str, dict[int, list[float]], list[float]]]] = {}
    for place in options.results:
        result = json.loads(place.read_text(encoding="utf-8"))
        encoder = result["title"].removeprefix("Adapting to ")
        for texts, points in read_curves(result).items():
            panels.setdefault(texts, []).append((encoder, points, result["times"][f"{texts}, base"]))
    figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    encoders = list(dict.fromkeys(encoder for curves in panels.values() for encoder, _, _ in curves))
    for axes, (texts, curves) in zip(every, panels.items(), strict=True):
        for encoder, points, base in curves:
            draw(axes, encoder, points, base, _COLOURS[encoders.index(encoder) % len(_COLOURS)])
        axes.set_title(f"{texts} (n = {len(curves[0][2])}, 95 % intervals)", fontsize=10)
        axes.set(xscale="log", xlabel="pairs", ylim=(0, 1.02))
        axes.set_xticks([_NO_PAIRS, 100, 1_000, 10_000], ["0", "100", "1,000", "10,000"])
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    every[0].set_ylabel("share of the base's token F1")
    with atomic_path(options.output) as temporary:
        figure.savefig(temporary, format="png", dpi=130)


if __name__ == "__main__":
    main()
