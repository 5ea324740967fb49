"""All tables on the texts of one file under one protocol, in the order of the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.evaluation import comparisons
from unembed.evaluation.bench import Subject, describe
from unembed.evaluation.breakdowns import breakdown_tables
from unembed.evaluation.budget import budget_table
from unembed.evaluation.examples import Denoising, examples_table, show_denoising
from unembed.evaluation.setup import Setup
from unembed.evaluation.table import Table
from unembed.evaluation.texts import Protocol
from unembed.store import Store

Seconds = dict[str, dict[str, float]]
"""Wall time per text, by strategy."""


@dataclass(frozen=True)
class Section:
    """All tables on the texts of one file under one protocol."""

    name: str
    texts: str
    protocol: Protocol
    canvas_length: int
    n: int
    looked_at: int
    available: int
    tables: list[Table]
    denoising: Denoising

    def table(self, key: str) -> Table | None:
        """Return a table, if the section has it."""
        return next((table for table in self.tables if table.key == key), None)


def make_section(
    setup: Setup, store: Store | None, counts: np.ndarray | None, milestones: Sequence[Subject]
) -> tuple[Section, Seconds]:
    """Make all tables; also return the seconds that each strategy took per text."""
    setup.bench.passes(setup.blind, 0)  # the first decoding of all is slow, and times are taken below
    tables = [comparisons.encoders(setup), comparisons.strategies(setup, store), comparisons.masked(setup)]
    if any(way.strategy == "euler-remask" for way in setup.ways):
        tables.append(comparisons.remasking(setup))
    if not setup.settings.brief:
        tables.append(comparisons.guidance(setup))
    tables.append(comparisons.cost(setup))
    seconds = _seconds(setup)
    if milestones:
        tables.append(comparisons.training_milestones(setup, milestones))
    tables += breakdown_tables(setup, counts)
    tables += [budget_table(setup, way) for way in setup.guided_ways]
    tables += [examples_table(setup, way) for way in dict.fromkeys([setup.ways[0], *setup.guided_ways])]
    section = Section(
        name=setup.name,
        texts=setup.texts_name,
        protocol=setup.protocol,
        canvas_length=setup.references.canvas_length,
        n=len(setup.references),
        looked_at=setup.references.looked_at,
        available=setup.references.available,
        tables=tables,
        denoising=show_denoising(setup),
    )
    return section, seconds


def _seconds(setup: Setup) -> Seconds:
    seconds: Seconds = {}
    for number, way in enumerate(setup.ways):
        setup.on_progress(f"{setup.name}: time at batch 1", int(number > 0), len(setup.ways))
        seconds[describe(way)] = setup.bench.seconds_per_text(way)
    return seconds
