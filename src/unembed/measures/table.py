"""The table of measures. A new measure is a function and an entry here; all that shows measures reads this table.

All of these compare a free-running inversion with its reference. Teacher-forced accuracy is measured elsewhere and
called ``masked_accuracy``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unembed.measures.bleu import bleu_counts, bleu_of_counts, sentence_bleu
from unembed.measures.content import content_precision, content_recall, passage_recall, readable
from unembed.measures.tokens import exact_match, token_accuracy, token_f1
from unembed.measures.vectors import cosine
from unembed.measures.words import rouge_l, word_set_f1

Format = Literal["share", "cosine", "number"]
"""``share``: 0 to 1, shown to people as a percentage. ``cosine``: -1 to 1. ``number``: anything, such as 0 to 100."""


@dataclass(frozen=True)
class Measure:
    """What a figure is called, how it is computed, what it means and how it is written."""

    name: str
    """In files, tables and Python."""
    label: str
    """For people who know the field."""
    plain: str
    """For people who do not: the reader of an audit."""
    meaning: str
    """In a sentence."""
    compares: Literal["ids", "texts", "vectors"] | None = None
    """What of a text it compares; None: it compares nothing, and is computed elsewhere."""
    of_pair: Callable[[Any, Any], Any] | None = None
    """Of a recovered text and its reference: a value, or the numbers that are summed up for ``of_sums``."""
    of_sums: Callable[[np.ndarray], np.ndarray] | None = None
    """From sums over texts (r, k) to figures (r,). None: the figure is the mean of the values."""
    format: Format = "share"
    hit: bool = False
    """Whether a single text has it or not, so that the mean is the share of texts that have it."""
    everyday: bool = False
    """Whether it is shown for every single text too: by ``unembed invert``, the server and the training log."""

    def show(self, value: float) -> str:
        """Write a value for people."""
        return percent(value) if self.format == "share" else self.show_plainly(value)

    def say(self, value: float) -> str:
        """Write the value of a single text with its label, as part of a sentence."""
        shown = ("yes" if value else "no") if self.hit else self.show(value)
        return f"{self.label[0].lower()}{self.label[1:]} {shown}"

    def show_plainly(self, value: float) -> str:
        """Write a value for a table of figures."""
        return f"{value:.1f}" if self.format == "number" else f"{value:.3f}"


MEASURES = (
    Measure(
        "token_accuracy",
        "Token accuracy",
        "Words in their position",
        "Share of the original's tokens that the recovered text has at exactly the same position.",
        "ids",
        token_accuracy,
        everyday=True,
    ),
    Measure(
        "token_f1",
        "Token F1",
        "Words recovered",
        "F1 of the tokens that the two texts share, in any order.",
        "ids",
        token_f1,
        everyday=True,
    ),
    Measure(
        "exact_match",
        "Exact match",
        "Word-for-word recovery",
        "Share of texts recovered without a single difference.",
        "ids",
        exact_match,
        hit=True,
        everyday=True,
    ),
    Measure(
        "rouge_l",
        "ROUGE-L",
        "Words in order",
        "ROUGE-L: the longest run of words that both texts have in the same order, as F1.",
        "texts",
        rouge_l,
    ),
    Measure(
        "bleu",
        "BLEU",
        "BLEU",
        "Corpus BLEU by sacrebleu, 0 to 100: runs of one to four words that both texts have.",
        "texts",
        bleu_counts,
        of_sums=bleu_of_counts,
        format="number",
    ),
    Measure(
        "sentence_bleu",
        "Sentence BLEU",
        "BLEU, mean over texts",
        "Mean of the BLEU of each text, 0 to 100, as vec2text reports it. A text of fewer than four words has 0.",
        "texts",
        sentence_bleu,
        format="number",
    ),
    Measure(
        "word_set_f1",
        "Word set F1",
        "Different words recovered",
        "F1 of the two sets of words, as vec2text reports it: case counts, repetition does not.",
        "texts",
        word_set_f1,
    ),
    Measure(
        "cosine",
        "Cosine",
        "Nearness of meaning",
        "Cosine between the given vector and the recovered text's own vector; 1 is the same.",
        "vectors",
        cosine,
        format="cosine",
        everyday=True,
    ),
)
"""What compares a recovered text with its reference, in the order of the columns."""
READABLE = Measure(
    "readable",
    "Readable texts",
    "Texts read back in substance",
    "Share of texts of which a passage came back with at least half of its content words. A passage is the whole text, "
    "or 24 words of it in a row. Content words are compared by their stems.",
    "texts",
    readable,
    hit=True,
)
"""The measure that decides the verdict of an audit."""
CONTENT_MEASURES = (
    Measure(
        "passage_recall",
        "Passage recall",
        "Content words of the best passage",
        "Share of its content words that came back from the passage that came back best.",
        "texts",
        passage_recall,
    ),
    Measure(
        "content_recall",
        "Content word recall",
        "Content words of the whole text",
        "Share of the text's different content words that the recovered text has. A long text cannot come back whole.",
        "texts",
        content_recall,
    ),
    Measure(
        "content_precision",
        "Content word precision",
        "Recovered words that are true",
        "Share of the recovered text's content words that the original has too.",
        "texts",
        content_precision,
    ),
)
"""What of a text's substance came back."""
PERPLEXITY = Measure(
    "perplexity",
    "Perplexity",
    "Perplexity",
    "How surprised a small language model is by each token of the recovered text.",
    format="number",
)
BY_NAME = {measure.name: measure for measure in (READABLE, *CONTENT_MEASURES, *MEASURES, PERPLEXITY)}


@dataclass(frozen=True)
class Forms:
    """Some texts in the forms that measures compare; None: that form is not known."""

    ids: Sequence[Sequence[int]] | None = None
    texts: Sequence[str] | None = None
    vectors: np.ndarray | None = None


def compare(recovered: Forms, references: Forms, measures: Sequence[Measure] = MEASURES) -> dict[str, np.ndarray]:
    """Compare texts by every measure whose form is known on both sides.

    Returns:
        By name: one value per text (n,), or the numbers that are summed up (n, k) for a measure with ``of_sums``.
    """
    values_by_name = {}
    for measure in measures:
        if measure.compares is None or measure.of_pair is None:
            continue
        ours, theirs = getattr(recovered, measure.compares), getattr(references, measure.compares)
        if ours is not None and theirs is not None:
            values = [measure.of_pair(*pair) for pair in zip(ours, theirs, strict=True)]
            values_by_name[measure.name] = np.array(values, dtype=np.float64)
    return values_by_name


def compare_one(recovered: Forms, reference: Forms) -> dict[str, float]:
    """Compare one text by the everyday measures."""
    everyday = [measure for measure in MEASURES if measure.everyday]
    return {name: float(values[0]) for name, values in compare(recovered, reference, everyday).items()}


def percent(value: float) -> str:
    """Write a share as people do: no decimals but where they are all there is."""
    return f"{value:.1%}" if 0 < value < 0.0995 else f"{value:.0%}"
