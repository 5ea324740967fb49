"""An audit as a document: one HTML file that asks for nothing else, and the same as JSON. Knows results, no vectors."""

from unembed.report.page import render
from unembed.report.writing import to_json, write_report

__all__ = ["render", "to_json", "write_report"]
