"""What more training would give: a line through a run's validations over the logarithm of the samples seen.

Reads a file of validations: ``docs/default-inverter.jsonl``, or a run's ``metrics.jsonl``. The line is the simplest
curve that a handful of points can bear, and flatters what lies far ahead: measures cannot rise for ever.
"""

import argparse
import json
from pathlib import Path

import numpy as np

MEASURES = ("elbo", "masked_accuracy@0.1", "masked_accuracy@0.5", "token_f1")


def main() -> None:
    """Fit, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--times", type=float, default=10.0, help="how much more training (default: %(default)s)")
    options = parser.parse_args()
    lines = options.file.read_text(encoding="utf-8").splitlines()
    validations = [event for event in map(json.loads, lines) if event["kind"] == "validation"]
    if len(validations) < 3:
        parser.error(f"{options.file} has {len(validations)} validations; a line needs at least 3")
    decades = np.log10([event["samples"] for event in validations])
    later = decades[-1] + np.log10(options.times)
    print(f"| measure | first ({validations[0]['samples']:,} samples) | last ({validations[-1]['samples']:,}) ", end="")
    print(f"| per tenfold training | with {options.times:g} times as much | scatter |\n|---|---|---|---|---|---|")
    for name in MEASURES:
        values = np.array([event[name] for event in validations])
        slope, start = np.polyfit(decades, values, 1)
        scatter = float(np.std(values - (slope * decades + start), ddof=2))
        figures = (values[0], values[-1], slope, values[-1] + slope * (later - decades[-1]), scatter)
        print(
            f"| {name} | "
            + " | ".join(f"{figure:+.3f}" if figure is slope else f"{figure:.3f}" for figure in figures)
            + " |"
        )
    print(f"\nn = {len(validations)} validations.")


if __name__ == "__main__":
    main()
