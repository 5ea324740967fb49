"""What every table and every curve of a report is made of. Knows no measure by name."""

from dataclasses import dataclass, field
from typing import Literal

from unembed.evaluation.bootstrap import Figure

RowMode = Literal["blind", "surrogate", "reranked", "guided", "baseline", "teacher-forced"]
"""``blind``: from the vector alone. ``surrogate``: by a search with the inverter's stand-in for the encoder.
``reranked``: the encoder chooses among blind texts. ``guided``: it is asked on the way. ``baseline``: no inversion at
all."""
Fact = str | int | float


@dataclass(frozen=True)
class Row:
    """Figures of something that was measured, and facts about it."""

    name: str
    mode: RowMode
    n: int
    """Texts."""
    figures: dict[str, Figure] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows that can be compared."""

    key: str
    title: str
    note: str
    rows: list[Row]
    what: str = ""
    """What the names of the rows are: the head of their column, the label of their axis."""
