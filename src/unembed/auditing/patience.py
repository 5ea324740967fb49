"""What a guided attacker with ten times the budget would get, by the curve of the search on the sample.

The search finds less with every further call. So the last tenfold of the budget, from a tenth of it to all of it, adds
at least as much as the next tenfold would: adding that gain once more gives a figure that is rather too high than low.
"""

from collections.abc import Sequence

import numpy as np

from unembed.auditing.recover import EARLY, GUIDED
from unembed.auditing.result import PatientAttacker, Row
from unembed.evaluation import Bootstrap, Figure

EXTENDED = ("readable", "passage_recall", "exact_match")
"""The measures that are extended."""


def extend_budget(rows: Sequence[Row], bootstrap: Bootstrap) -> PatientAttacker | None:
    """Extend the measures of a guided attack; None if the rows have no early texts, or the texts are not known."""
    known = [row for row in rows if row.early is not None]
    if not known:
        return None
    return PatientAttacker(
        calls=10 * GUIDED.guided.call_limit,
        early_calls=EARLY,
        figures={name: _extend(known, name, bootstrap) for name in EXTENDED},
    )


def _extend(rows: Sequence[Row], name: str, bootstrap: Bootstrap) -> Figure:
    late = np.array([row.values[name] for row in rows])
    early = np.array([(row.early or {})[name] for row in rows])
    figure = bootstrap.mean(late + (late - early))
    value, low, high = (min(1.0, max(float(late.mean()), each)) for each in (figure.value, figure.low, figure.high))
    return Figure(value, low, high, figure.n)
