"""Measures of an inversion, each under its own name."""

from unembed.evaluation.free_running import measure_free_running
from unembed.evaluation.metrics import exact_match, token_accuracy, token_f1

__all__ = ["exact_match", "measure_free_running", "token_accuracy", "token_f1"]
