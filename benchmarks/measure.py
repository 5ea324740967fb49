"""How the benchmarks take times and hand on results. Knows nothing of what is measured, and imports no torch."""

import argparse
import json
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Figure:
    """A figure that has a target."""

    name: str
    value: float
    target: float
    at_least: bool = True
    """Whether the target is a lower bound."""

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    def verdict(self, *, quick: bool) -> str:
        """Say the figure, its target, and whether it is met."""
        bound = f"{'at least' if self.at_least else 'at most'} {self.target:g}"
        judgement = "not judged in a smoke run" if quick else "met" if self.met else "missed"
        return f"{self.name}: **{self.value:.2f}** (target {bound}: {judgement})"


@dataclass
class Result:
    """What one benchmark found; ``run.py`` turns it into a section of ``results.md``."""

    title: str
    compared: str
    """What is compared with what, in a sentence or two."""
    columns: list[str]
    rows: list[list[str]]
    figures: list[Figure]
    repetitions: int
    sizes: dict[str, Any]
    times: dict[str, list[float]] = field(default_factory=dict)
    """Every repetition's figure (seconds unless the benchmark says otherwise), by variant."""
    notes: list[str] = field(default_factory=list)
    command: str = ""
    quick: bool = False
    measured: str = ""
    """When, as far as it is known."""


def interleave(variants: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, list[float]]:
    """Time the variants in turn, A B A B ..., so that a drift of the machine meets all of them alike.

    The caller has run each of them before: no warm-up happens here.
    """
    times: dict[str, list[float]] = {name: [] for name in variants}
    for repetition in range(repetitions):
        for name, run in variants.items():
            begun = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begun)
            print(f"  {repetition + 1}/{repetitions} {name}: {times[name][-1]:.2f} s", file=sys.stderr, flush=True)
    return times


def spread(rates: Sequence[float]) -> str:
    """Format the median with the smallest and the largest of several figures."""
    return f"{statistics.median(rates):,.1f} ({min(rates):,.1f} to {max(rates):,.1f})"


def make_parser(documentation: str | None, repetitions: int) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that the script runs, measures nothing")
    parser.add_argument("--repetitions", type=int, default=repetitions, help="timed rounds (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    return parser


def finish(result: Result, options: argparse.Namespace) -> None:
    """Print a result, and write it where ``--json`` says."""
    arguments = sys.argv[1:]
    if "--json" in arguments:  # where the figures go is not part of how they come about
        place = arguments.index("--json")
        del arguments[place : place + 2]
    result.quick = options.quick
    result.command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *arguments])
    print(format_section(result))
    if options.json:
        values = asdict(result) | {"met": all(figure.met for figure in result.figures)}
        options.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def format_section(result: Result) -> str:
    """Return a result as Markdown."""
    lines = [f"## {result.title}", "", result.compared, ""]
    for figure in result.figures:
        lines += [figure.verdict(quick=result.quick), ""]
    lines += [f"| {' | '.join(cells)} |" for cells in (result.columns, ["---"] * len(result.columns), *result.rows)]
    lines += ["", *(f"- {note}" for note in result.notes)]
    sizes = ", ".join(f"{name} {value}" for name, value in result.sizes.items())
    lines.append(f"- Sizes: {sizes}. Repetitions: {result.repetitions}. Command: `{result.command}`")
    lines += [f"- Measured {result.measured}."] * bool(result.measured)
    lines.append("")
    return "\n".join(lines)
