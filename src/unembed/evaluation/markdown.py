"""A report as Markdown. Knows the shape of tables, not what is in them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unembed.evaluation.report import Report, Timing
from unembed.evaluation.section import Section
from unembed.evaluation.table import Fact, Row, Table
from unembed.measures import BY_NAME

_PROTOCOLS = {
    "canvas": "canvas (cut to {} tokens, length known)",
    "natural": "natural (uncut, at most {} tokens, length guessed)",
}


def to_markdown(report: Report, timing: Timing, pictures: Mapping[tuple[str, str], str]) -> str:
    """Write a report.

    Args:
        report: what was measured.
        timing: seconds per text, which Table 5 shows.
        pictures: paths, by section and table; ``denoising`` and, of no section, ``training`` are no tables.
    """
    lines = ["# Evaluation", ""]
    lines += [f"- {note}" for note in report.notes]
    lines += [
        f"- Seed {report.seed}, {report.bootstrap_resamples:,} bootstrap resamples, unembed {report.unembed_version}, "
        f"sacrebleu `{report.bleu}`.",
        "",
    ]
    for section in report.sections:
        lines += [f"## {section.texts}, protocol {section.protocol}", "", _describe(section), ""]
        if len(report.models) > 1:
            lines += [f"All tables but the first and the teacher-forced one are about {report.models[0]['name']}.", ""]
        for table in section.tables:
            if table.key == "cost":
                table = with_seconds(table, timing[section.name])
            lines += [f"### {table.title}", "", f"{_caption(section, table)} {table.note}", "", *to_rows(table), ""]
            if path := pictures.get((section.name, table.key)):
                lines += [f"![{table.title}]({path})", ""]
        shown = f"{section.denoising.strategy}, the median text by token_f1"
        lines += ["### Denoising", "", f"Rows are passes, cells tokens, shaded by confidence: {shown}.", ""]
        lines += [f"![Denoising]({pictures[section.name, 'denoising']})", ""]
    if path := pictures.get(("", "training")):
        lines += ["## Training curves", "", f"![Training curves]({path})", ""]
    return "\n".join(lines).rstrip() + "\n"


def to_rows(table: Table) -> list[str]:
    """Write one table, a line per row."""
    header, *body = cells(table)
    return [_line(header), _line(["---"] * len(header)), *(_line(row) for row in body)]


def cells(table: Table) -> list[list[str]]:
    """Return the header and the rows of a table as strings."""
    names = {name: None for row in table.rows for name in row.figures}
    measures = [name for name in BY_NAME if name in names] + [name for name in names if name not in BY_NAME]
    facts = list({name: None for row in table.rows for name in row.facts})
    lines = [[table.what, "mode", "n", *measures, *facts]]
    for row in table.rows:
        figures = [format_figure(name, row) for name in measures]
        lines.append(
            [row.name, row.mode, f"{row.n:,}", *figures, *(format_fact(row.facts.get(name, "")) for name in facts)]
        )
    return lines


def format_figure(name: str, row: Row) -> str:
    """Write a figure with its interval; its n where that is not the row's. Nothing where there is none."""
    if name not in row.figures:
        return ""
    figure = row.figures[name]
    value, low, high = (_show(name, number) for number in (figure.value, figure.low, figure.high))
    shown = f"{value} [{low}, {high}]"
    return shown if figure.n == row.n else f"{shown} (n = {figure.n:,})"


def _show(name: str, value: float) -> str:
    return BY_NAME[name].show_plainly(value) if name in BY_NAME else f"{value:.3f}"


def format_fact(fact: Fact) -> str:
    """Write a fact: thousands separated, three significant digits."""
    if isinstance(fact, str):
        return fact
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:,.0f}" if abs(fact) >= 1000 else f"{fact:.3g}"


def with_seconds(table: Table, seconds: Mapping[str, Mapping[str, float]]) -> Table:
    """Add the wall times, which the report leaves out because they differ from run to run."""
    rows = [replace(row, facts=row.facts | dict(seconds[row.name])) for row in table.rows]
    return replace(
        table, note=f"{table.note} Seconds are wall time per text on this machine, decoding alone.", rows=rows
    )


def _describe(section: Section) -> str:
    return (
        f"{section.n:,} texts: of the {section.available:,} different ones in the file, taken in a random order, the "
        f"first that the protocol admits ({section.looked_at:,} were looked at)."
    )


def _caption(section: Section, table: Table) -> str:
    modes = ", ".join(sorted({row.mode for row in table.rows}))
    protocol = _PROTOCOLS[section.protocol].format(section.canvas_length)
    return f"*{section.texts}; protocol {protocol}; {modes}.*"


def _line(parts: Sequence[str]) -> str:
    return "| " + " | ".join(part.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for part in parts) + " |"
