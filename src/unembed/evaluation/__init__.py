"""Measures of an inversion, each under its own name, and the report that holds them."""

from unembed.evaluation.bench import Subject
from unembed.evaluation.bootstrap import Bootstrap, Figure
from unembed.evaluation.denoising import draw_denoising, read_passes
from unembed.evaluation.free_running import measure_free_running
from unembed.evaluation.metrics import exact_match, rouge_l, token_accuracy, token_f1
from unembed.evaluation.perplexity import load_language_model
from unembed.evaluation.report import Report, evaluate
from unembed.evaluation.section import Settings
from unembed.evaluation.writing import to_json, write_report

__all__ = [
    "Bootstrap",
    "Figure",
    "Report",
    "Settings",
    "Subject",
    "draw_denoising",
    "evaluate",
    "exact_match",
    "load_language_model",
    "measure_free_running",
    "read_passes",
    "rouge_l",
    "to_json",
    "token_accuracy",
    "token_f1",
    "write_report",
]
