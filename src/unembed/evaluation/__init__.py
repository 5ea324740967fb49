"""Measures of an inversion, each under its own name, and the report that holds them."""

from unembed.evaluation.bench import Subject
from unembed.evaluation.bootstrap import Bootstrap, Figure
from unembed.evaluation.denoising import draw_denoising, read_passes
from unembed.evaluation.perplexity import load_language_model
from unembed.evaluation.report import Report, evaluate
from unembed.evaluation.setup import EvaluationSettings
from unembed.evaluation.writing import to_json, write_report

__all__ = [
    "Bootstrap",
    "EvaluationSettings",
    "Figure",
    "Report",
    "Subject",
    "draw_denoising",
    "evaluate",
    "load_language_model",
    "read_passes",
    "to_json",
    "write_report",
]
