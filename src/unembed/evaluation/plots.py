"""Curves of a report as PNG. Knows tables, nothing of how they were measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unembed.errors import require_extra
from unembed.evaluation.table import Table
from unembed.files import atomic_path

_COLOURS = ("#1f6fb2", "#c8553d", "#3f8f5b")


def draw_profile(table: Table, target: Path, *, measure: str = "token_accuracy") -> None:
    """Draw a measure over neighbouring rows, such as positions: a line in the band of its interval."""
    figure, axes = _axes()
    ticks = range(1, len(table.rows) + 1)
    _band(axes, ticks, table, measure, _COLOURS[0])
    names = [row.name for row in table.rows]
    step = -(-len(names) // 16)
    axes.set_xticks(ticks[::step], names[::step])
    axes.set(xlabel=table.what, ylabel=measure, title=_title(table))
    axes.set_ylim(0, _ceiling(table, measure))
    _save(figure, target)


def draw_groups(table: Table, target: Path, *, measure: str = "token_accuracy") -> None:
    """Draw a measure of separate groups: bars with their intervals."""
    figure, axes = _axes()
    figures = [row.figures[measure] for row in table.rows]
    values = [each.value for each in figures]
    errors = [[each.value - each.low for each in figures], [each.high - each.value for each in figures]]
    axes.bar(range(len(values)), values, width=0.62, color=_COLOURS[0], alpha=0.85)
    axes.errorbar(range(len(values)), values, yerr=errors, fmt="none", ecolor="#16324f", elinewidth=1.2, capsize=3)
    axes.set_xticks(range(len(values)), [f"{row.name}\nn = {row.n:,}" for row in table.rows], fontsize=8)
    axes.set(xlabel=table.what, ylabel=measure, title=_title(table))
    axes.set_ylim(0, _ceiling(table, measure))
    _save(figure, target)


def draw_budget(table: Table, target: Path) -> None:
    """Draw what guided decoding reaches over its encoder calls, on a logarithmic axis that begins at 0."""
    figure, axes = _axes()
    calls = [int(row.name) for row in table.rows]
    for measure, colour in zip(table.rows[0].figures, _COLOURS, strict=False):
        _band(axes, calls, table, measure, colour)
    axes.set_xscale("symlog", linthresh=10, linscale=0.4)
    axes.set_xticks(calls, [f"{count:,}" for count in calls], fontsize=8)
    axes.minorticks_off()
    axes.set(xlabel=f"{table.what} (0: the blind start)", title=_title(table), ylim=(0, 1.02), xlim=(0, None))
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _save(figure, target)


def _axes() -> tuple[Any, Any]:
    require_extra("eval", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _band(axes: Any, positions: Sequence[int], table: Table, measure: str, colour: str) -> None:
    figures = [row.figures[measure] for row in table.rows]
    axes.plot(positions, [each.value for each in figures], color=colour, marker="o", markersize=3.5, label=measure)
    axes.fill_between(
        positions,
        [each.low for each in figures],
        [each.high for each in figures],
        color=colour,
        alpha=0.15,
        linewidth=0,
    )


def _title(table: Table) -> str:
    counts = sorted({row.n for row in table.rows})
    n = f"n = {counts[0]:,}" if len(counts) == 1 else f"n = {counts[0]:,} to {counts[-1]:,}"
    modes = ", ".join(sorted({row.mode for row in table.rows}))
    return f"{table.title} ({modes}, {n}, 95 % intervals)"


def _ceiling(table: Table, measure: str) -> float:
    """Return where the axis ends: 1, or less when all is far below it."""
    return min(1.02, max(0.05, 1.15 * max(row.figures[measure].high for row in table.rows)))


def _save(figure: Any, target: Path) -> None:
    for axes in figure.axes:
        axes.title.set_fontsize(10)
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
