"""What more training would give: a line through a run's validations over the logarithm of the samples seen.

Reads a file of validations: ``docs/default-inverter.jsonl``, or a run's ``metrics.jsonl``. The line is the simplest
curve that a handful of points can bear, and flatters what lies far ahead: measures cannot rise for ever. Where
something else than the samples changed on the way, ``--until`` fits the validations before that; what the line gains
is added to the last validation all the same.
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
    parser.add_argument("--until", type=int, help="fit only the validations up to so many samples")
    options = parser.parse_args()
    lines = options.file.read_text(encoding="utf-8").splitlines()
    validations = [event for event in map(json.loads, lines) if event["kind"] == "validation"]
    fitted = [event for event in validations if not options.until or event["samples"] <= options.until]
    if len(fitted) < 3:
        parser.error(f"{options.file} has {len(fitted)} such validations; a line needs at least 3")
    decades = np.log10([event["samples"] for event in fitted])
    print(f"| measure | first ({validations[0]['samples']:,} samples) | last ({validations[-1]['samples']:,}) ", end="")
    print(f"| per tenfold training | with {options.times:g} times as much | scatter |\n|---|---|---|---|---|---|")
    for name in MEASURES:
        values = np.array([event[name] for event in fitted])
        first, last = validations[0][name], validations[-1][name]
        slope, start = np.polyfit(decades, values, 1)
        scatter = float(np.std(values - (slope * decades + start), ddof=2))
        figures = (first, last, slope, last + slope * np.log10(options.times), scatter)
        print(
            f"| {name} | "
            + " | ".join(f"{figure:+.3f}" if figure is slope else f"{figure:.3f}" for figure in figures)
            + " |"
        )
    print(f"\nLine through n = {len(fitted)} of {len(validations)} validations.")


if __name__ == "__main__":
    main()
