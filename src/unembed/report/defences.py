"""What defences hide and cost, as one HTML page and as JSON. How it looks is in ``defences.html``."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from unembed.defences import TRANSFORMS
from unembed.defending.attackers import DESCRIPTIONS
from unembed.defending.recommend import price
from unembed.defending.result import FLOOR, MATCHED, DefenceReport, Setting
from unembed.evaluation import Figure
from unembed.files import write_json, write_text
from unembed.measures import BY_NAME
from unembed.report.charts import Point, scatter
from unembed.report.page import DEFENCES_FILE, environment, read_part

JSON_FILE = "defences.json"
GROUPS = {
    "naive": ("naive",),
    "adaptive": ("denoised", "trained", "averaged", "unmixed", "pairs", "unpaired"),
    "guided": ("guided",),
}
"""Columns of the table: the strongest attacker of each group."""


def render_defences(report: DefenceReport) -> str:
    """Return the page. It is whole: nothing in it is fetched from elsewhere, and it runs no script."""
    page = environment()
    page.filters |= {"plainly": _plainly}
    measure = report.undefended.searches[0].measure
    return page.from_string(read_part(DEFENCES_FILE)).render(
        report=report,
        style=read_part("report.css"),
        picture=scatter(
            [_point(report.undefended), *map(_point, report.settings)],
            across=f"search quality ({measure})",
            up="words recovered (F1)",
        ),
        measure=measure,
        groups=GROUPS,
        descriptions=DESCRIPTIONS,
        transforms=TRANSFORMS.values(),
        floor=FLOOR,
        matched_within=MATCHED,
        price=lambda setting: price(report.undefended, setting),
        glossary=[BY_NAME[name] for name in report.undefended.leakages[0].strongest.figures],
    )


def write_defences(folder: Path, report: DefenceReport) -> None:
    """Write ``defences.html`` and ``defences.json``; if they show texts, only their owner can read them."""
    write_json(folder / JSON_FILE, defences_to_json(report), private=report.shows_text)
    write_text(folder / DEFENCES_FILE, render_defences(report), private=report.shows_text)


def defences_to_json(report: DefenceReport) -> dict[str, Any]:
    """Return the results as plain values, with what is computed from them."""
    values = asdict(report)
    for setting, plain in zip(
        (report.undefended, *report.settings), (values["undefended"], *values["settings"]), strict=True
    ):
        plain |= {
            "leakage": setting.leakage,
            "guided_leakage": setting.guided_leakage,
            "utility": setting.utility,
            "price": price(report.undefended, setting),
        }
        for leakage, each in zip(setting.leakages, plain["leakages"], strict=True):
            each["strongest"] = leakage.strongest.name
    values["means_something"] = report.means_something
    values["matched"] = [[setting.chain for setting in group] for group in report.matched()]
    return values


def _point(setting: Setting) -> Point:
    return Point(setting.utility, setting.leakage, setting.name, setting.family)


def _plainly(figure: Figure) -> str:
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
