"""Results as documents: one HTML file each that asks for nothing else, and the same as JSON. Knows no vectors."""

from unembed.report.defences import defences_to_json, write_defences
from unembed.report.page import render
from unembed.report.writing import to_json, write_report

__all__ = ["defences_to_json", "render", "to_json", "write_defences", "write_report"]
