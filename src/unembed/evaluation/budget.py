"""What guided decoding reaches with a given number of encoder calls. Decodes nothing itself."""

from collections.abc import Sequence

import numpy as np

from unembed.config import DecodingConfig
from unembed.evaluation.examiner import Examiner
from unembed.evaluation.recover import Waypoint
from unembed.evaluation.setup import Setup
from unembed.evaluation.table import Fact, Row, Table
from unembed.measures import BY_NAME

_SHOWN = ("cosine", "token_f1", "exact_match")


def budget_table(setup: Setup, way: DecodingConfig) -> Table:
    """Show what a guided search reaches by its number of encoder calls."""
    rows = budget_rows(setup.bench.outcome(way).recovered.ways, setup.bench.examiner)
    note = (
        "What the search had found by a number of encoder calls per text; 0 is its blind start. Texts that ended "
        "earlier keep their result."
    )
    return Table("guided_budget", "Guided decoding by budget", note, rows, "encoder calls per text")


def budget_rows(ways: Sequence[Sequence[Waypoint]], examiner: Examiner) -> list[Row]:
    """Measure, at each budget, the best that every text had by then; a text that ended earlier keeps its result."""
    budgets = choose_budgets(max(way[-1].encoder_calls for way in ways))
    states = {budget: [best_within(way, budget) for way in ways] for budget in budgets}
    # Each hypothesis is embedded once, however many budgets it holds for.
    hypotheses = sorted({(row, tuple(ids)) for reached in states.values() for row, ids in enumerate(reached)})
    rows, ids = [row for row, _ in hypotheses], [list(ids) for _, ids in hypotheses]
    values = examiner.compare(ids, rows, [BY_NAME[name] for name in _SHOWN])
    index = {hypothesis: number for number, hypothesis in enumerate(hypotheses)}
    table_rows = []
    for budget, reached in states.items():
        chosen = [index[row, tuple(ids)] for row, ids in enumerate(reached)]
        figures = {name: examiner.bootstrap.mean(values[name][chosen]) for name in _SHOWN}
        used = float(np.mean([min(budget, way[-1].encoder_calls) for way in ways]))
        facts: dict[str, Fact] = {"encoder calls used, mean": round(used, 1)}
        table_rows.append(Row(str(budget), "guided" if budget else "blind", len(ways), figures, facts))
    return table_rows


def best_within(way: Sequence[Waypoint], budget: int) -> list[int]:
    """Return the best ids so far: those of the search, or of the blind hypotheses before it."""
    searched = [point for point in way if 0 < point.encoder_calls <= budget]
    if searched:
        return searched[-1].ids
    blind = [point for point in way if point.ids and not point.encoder_calls]
    return max(blind, key=lambda point: point.score).ids if blind else way[0].ids


def choose_budgets(largest: int) -> list[int]:
    """Return 0, round numbers (10, 20, 50, 100, ...) well below the largest, and the largest."""
    rounds = [digit * 10**power for power in range(1, 10) for digit in (1, 2, 5)]
    return [0, *(budget for budget in rounds if budget <= 0.75 * largest), *([largest] if largest else [])]
