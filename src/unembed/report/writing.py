"""Writes an audit into a folder, each file whole or not at all."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from unembed.audit import Audit
from unembed.files import write_json, write_text
from unembed.report.page import DEFENCES_FILE, render

HTML_FILE = "report.html"
JSON_FILE = "report.json"


def write_report(folder: Path, audit: Audit) -> None:
    """Write ``report.html`` and ``report.json``; if they show texts, only their owner can read them."""
    write_json(folder / JSON_FILE, to_json(audit), private=audit.shows_text)
    page = render(audit, defences_measured=(folder / DEFENCES_FILE).is_file())
    write_text(folder / HTML_FILE, page, private=audit.shows_text)


def to_json(audit: Audit) -> dict[str, Any]:
    """Return an audit as plain values."""
    return asdict(audit)
