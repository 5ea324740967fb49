"""Texts to look at, chosen by rule: the best, the median and the worst, and one of them pass by pass."""

from dataclasses import dataclass

import numpy as np

from unembed.config import DecodingConfig
from unembed.evaluation.bench import mode_of
from unembed.evaluation.denoising import Pass
from unembed.evaluation.setup import Setup
from unembed.evaluation.table import Row, Table

_BY = "token_f1"
_EXAMPLES_OF_A_KIND = 3


@dataclass(frozen=True)
class Denoising:
    """An inversion, pass by pass."""

    strategy: str
    reference: str
    recovered: str
    passes: list[Pass]


def examples_table(setup: Setup, way: DecodingConfig) -> Table:
    """Show the best, the median and the worst texts of a way of decoding."""
    outcome = setup.bench.outcome(way)
    rows = [
        Row(
            f"{kind} {number}",
            mode_of(way),
            1,
            facts={
                **{name: float(outcome.scores.per_text[name][index]) for name in (_BY, "cosine")},
                "original": setup.references.texts[index],
                "recovered": outcome.scores.texts[index],
            },
        )
        for kind, indices in choose_examples(outcome.scores.per_text[_BY]).items()
        for number, index in enumerate(indices, start=1)
    ]
    note = f"By rule: all texts ordered by {_BY} (ties by their random order); the first, the middle, the last."
    return Table(f"examples_{way.strategy}", f"Examples: {way.strategy}", note, rows)


def show_denoising(setup: Setup) -> Denoising:
    """Decode the median text once more and keep its passes."""
    outcome = setup.bench.outcome(setup.blind)
    median = choose_examples(outcome.scores.per_text[_BY])["median"][0]
    return Denoising(
        setup.blind.strategy,
        setup.references.texts[median],
        outcome.scores.texts[median],
        setup.bench.passes(setup.blind, median),
    )


def choose_examples(values: np.ndarray) -> dict[str, list[int]]:
    """Return the indices of the best, the median and the worst values, the worst of all first; of three none twice."""
    order = np.argsort(-values, kind="stable").tolist()
    count = min(_EXAMPLES_OF_A_KIND, max(1, len(order) // 3))
    middle = (len(order) - count) // 2
    return {"best": order[:count], "median": order[middle : middle + count], "worst": order[: -count - 1 : -1]}
