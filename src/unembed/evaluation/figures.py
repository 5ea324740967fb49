"""From what measures give for each text to figures with their intervals. Used by the evaluation and by the audit."""

from collections.abc import Mapping

import numpy as np

from unembed.evaluation.bootstrap import Bootstrap, Figure
from unembed.measures import BY_NAME


def to_figures(compared: Mapping[str, np.ndarray], bootstrap: Bootstrap) -> dict[str, Figure]:
    """Return the figure of each measure, from what :func:`unembed.measures.compare` gives for each text."""
    figures = {}
    for name, per_text in compared.items():
        of_sums = BY_NAME[name].of_sums
        figures[name] = bootstrap.mean(per_text) if of_sums is None else bootstrap.of_sums(per_text, of_sums)
    return figures
