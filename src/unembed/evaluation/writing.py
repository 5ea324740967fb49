"""Writes a report into a folder: JSON, Markdown and pictures."""

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from unembed.evaluation.denoising import draw_denoising
from unembed.evaluation.markdown import to_markdown
from unembed.evaluation.plots import draw_budget, draw_groups, draw_profile
from unembed.evaluation.report import Report, Timing
from unembed.evaluation.section import Section
from unembed.files import write_json, write_text
from unembed.training.curves import draw_curves

REPORT_FILE = "report.json"
MARKDOWN_FILE = "report.md"
TIMING_FILE = "timing.json"
FIGURES_FOLDER = "figures"
_DIGITS = 4
_DRAWN = {
    "by_position": draw_profile,
    "by_frequency": draw_groups,
    "by_length": draw_groups,
    "guided_budget": draw_budget,
}


def write_report(
    folder: Path, report: Report, timing: Timing, *, run: Path | None = None, inputs: Mapping[str, Any] | None = None
) -> None:
    """Write everything.

    ``report.json`` comes out the same, byte for byte, when the same is measured again on the same machine. What does
    not (times, dates, paths: ``inputs``) goes into ``timing.json``.
    """
    write_json(folder / REPORT_FILE, to_json(report))
    machine = {"cores": os.cpu_count(), "threads": torch.get_num_threads(), "machine": platform.machine()}
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    facts = {"date": datetime.now(UTC).isoformat(timespec="seconds"), **machine, **versions, "inputs": inputs or {}}
    write_json(folder / TIMING_FILE, facts | {"seconds_per_text": _rounded(timing)})
    pictures: dict[tuple[str, str], str] = {}
    for section in report.sections:
        pictures |= _draw(section, folder)
    if run is not None and draw_curves(run, folder / FIGURES_FOLDER / "training.png"):
        pictures["", "training"] = f"{FIGURES_FOLDER}/training.png"
    write_text(folder / MARKDOWN_FILE, to_markdown(report, timing, pictures))


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as plain values, numbers to four significant digits."""
    plain: dict[str, Any] = _rounded(asdict(report))
    return plain


def _draw(section: Section, folder: Path) -> dict[tuple[str, str], str]:
    """Draw the pictures of a section; return their paths within the folder."""
    drawn = {}

    def path_of(key: str) -> Path:
        drawn[section.name, key] = f"{FIGURES_FOLDER}/{section.name}-{key.replace('_', '-')}.png"
        return folder / drawn[section.name, key]

    for table in section.tables:
        if table.key in _DRAWN and len(table.rows) > 1:
            _DRAWN[table.key](table, path_of(table.key))
    shown = section.denoising
    draw_denoising(shown.passes, {"original": shown.reference, "recovered": shown.recovered}, path_of("denoising"))
    return drawn


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
