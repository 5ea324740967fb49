"""Results as documents: one HTML file each that asks for nothing else, and the same as JSON. Knows no vectors."""

from unembed.report.defences import defences_to_json, write_defences
from unembed.report.junit import to_junit
from unembed.report.markdown import to_markdown
from unembed.report.page import render
from unembed.report.sarif import to_sarif
from unembed.report.writing import FILES, to_json, write_report

__all__ = [
    "FILES",
    "defences_to_json",
    "render",
    "to_json",
    "to_junit",
    "to_markdown",
    "to_sarif",
    "write_defences",
    "write_report",
]
