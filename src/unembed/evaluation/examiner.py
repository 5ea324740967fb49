"""Compares recovered texts with their references under every measure. Knows no inverter."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from tokenizers import Tokenizer

from unembed.encoders import Encoder
from unembed.evaluation.bootstrap import Bootstrap, Figure
from unembed.evaluation.figures import to_figures
from unembed.evaluation.perplexity import LanguageModel, perplexity_of_sums
from unembed.evaluation.texts import ReferenceTexts
from unembed.measures import MEASURES, Forms, Measure, compare

PERPLEXITY_TEXTS = 100
"""The language model scores at most this many texts of a row: it is larger than the inverters it judges."""


@dataclass(frozen=True)
class Scores:
    """How close some recovered texts came to their references."""

    texts: list[str]
    """The recovered ones."""
    per_text: dict[str, np.ndarray]
    """One value per text, of the measures that have one."""
    figures: dict[str, Figure]
    """Every measure but perplexity, under its name."""


class Examiner:
    """The references of one protocol, their vectors, and the measures."""

    def __init__(
        self,
        references: ReferenceTexts,
        tokenizer: Tokenizer,
        encoder: Encoder,
        bootstrap: Bootstrap,
        language_model: LanguageModel | None = None,
    ) -> None:
        self.references = references
        self.tokenizer = tokenizer
        self.encoder = encoder
        self.bootstrap = bootstrap
        self.language_model = language_model

    @cached_property
    def vectors(self) -> np.ndarray:
        """The references' vectors (n, d): what is inverted."""
        return self.encoder.encode(self.references.texts)

    def score(self, recovered: Sequence[Sequence[int]]) -> Scores:
        """Measure texts recovered from the first ``len(recovered)`` vectors."""
        compared = self.compare(recovered, range(len(recovered)))
        per_text = {name: values for name, values in compared.items() if values.ndim == 1}
        return Scores(self.texts(recovered), per_text, to_figures(compared, self.bootstrap))

    def compare(
        self, recovered: Sequence[Sequence[int]], rows: Sequence[int], measures: Sequence[Measure] = MEASURES
    ) -> dict[str, np.ndarray]:
        """Compare token ids, the texts that they say and the vectors of these with the references of some rows."""
        texts = self.texts(recovered)
        references = Forms(
            [self.references.ids[row] for row in rows],
            [self.references.texts[row] for row in rows],
            self.vectors[list(rows)],
        )
        return compare(Forms(recovered, texts, self.encoder.encode(texts)), references, measures)

    def texts(self, recovered: Sequence[Sequence[int]]) -> list[str]:
        """Write token ids as text."""
        return list(self.tokenizer.decode_batch([list(ids) for ids in recovered]))

    def perplexity(self, texts: Sequence[str]) -> dict[str, Figure]:
        """Return the perplexity of the first texts; nothing without a language model or without a word."""
        if self.language_model is None:
            return {}
        sums = self.language_model.score(texts[:PERPLEXITY_TEXTS])
        return {"perplexity": self.bootstrap.of_sums(sums, perplexity_of_sums)} if sums[:, 1].any() else {}
