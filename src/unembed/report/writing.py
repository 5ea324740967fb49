"""Writes an audit into a folder, each file whole or not at all."""

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unembed.auditing import Audit
from unembed.files import write_json, write_text
from unembed.report.junit import to_junit
from unembed.report.markdown import to_markdown
from unembed.report.page import DEFENCES_FILE, render
from unembed.report.pdf import print_page
from unembed.report.sarif import to_sarif

HTML_FILE = "report.html"
JSON_FILE = "report.json"
FILES = {"markdown": "report.md", "pdf": "report.pdf", "sarif": "report.sarif", "junit": "junit.xml"}
"""What can be written beside HTML and JSON, and how these files are called."""


def write_report(folder: Path, audit: Audit, formats: Collection[str] = ()) -> None:
    """Write ``report.html``, ``report.json`` and what else is asked for; if they show texts, for their owner only."""
    private = audit.shows_text
    write_json(folder / JSON_FILE, to_json(audit), private=private)
    page = render(audit, defences_measured=(folder / DEFENCES_FILE).is_file())
    write_text(folder / HTML_FILE, page, private=private)
    if "markdown" in formats:
        write_text(folder / FILES["markdown"], to_markdown(audit), private=private)
    if "sarif" in formats:
        write_json(folder / FILES["sarif"], to_sarif(audit), private=private)
    if "junit" in formats:
        write_text(folder / FILES["junit"], to_junit(audit), private=private)
    if "pdf" in formats:
        print_page(page, folder / FILES["pdf"], private=private)


def to_json(audit: Audit) -> dict[str, Any]:
    """Return an audit as plain values."""
    return asdict(audit)
