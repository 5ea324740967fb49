"""Compares recovered texts with their references under every measure. Knows no inverter."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from tokenizers import Tokenizer

from unembed.encoders import Encoder
from unembed.evaluation.bleu import bleu_counts, bleu_of_counts
from unembed.evaluation.bootstrap import Bootstrap, Figure
from unembed.evaluation.perplexity import LanguageModel, perplexity_of_sums
from unembed.evaluation.texts import References
from unembed.measures import exact_match, rouge_l, token_accuracy, token_f1

PERPLEXITY_TEXTS = 100
"""So many texts of a row are scored by the language model at most, for it is larger than the inverters it judges."""


@dataclass(frozen=True)
class Scores:
    """How near some recovered texts came to their references."""

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
        references: References,
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
        texts = self.texts(recovered)
        references = self.references.texts[: len(texts)]
        per_text = self.token_measures(recovered) | {
            "rouge_l": np.array([rouge_l(*pair) for pair in zip(texts, references, strict=True)]),
            "cosine": self.cosines(texts, range(len(texts))),
        }
        figures = {name: self.bootstrap.mean(values) for name, values in per_text.items()}
        figures["bleu"] = self.bootstrap.of_sums(bleu_counts(texts, references), bleu_of_counts)
        return Scores(texts, per_text, figures)

    def token_measures(
        self, recovered: Sequence[Sequence[int]], rows: Sequence[int] | None = None
    ) -> dict[str, np.ndarray]:
        """Measure token ids against the references of some rows, by default the first ones."""
        wanted = [self.references.ids[row] for row in (range(len(recovered)) if rows is None else rows)]
        measures = {"token_accuracy": token_accuracy, "token_f1": token_f1, "exact_match": exact_match}
        return {
            name: np.array([measure(*pair) for pair in zip(recovered, wanted, strict=True)])
            for name, measure in measures.items()
        }

    def cosines(self, texts: Sequence[str], rows: Sequence[int]) -> np.ndarray:
        """Embed texts, and compare them with the vectors of some rows."""
        ours, theirs = self.encoder.encode(list(texts)), self.vectors[list(rows)]
        norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        cosines: np.ndarray = (ours * theirs).sum(1) / np.maximum(norms, 1e-12)
        return cosines

    def texts(self, recovered: Sequence[Sequence[int]]) -> list[str]:
        """Write token ids as text."""
        return list(self.tokenizer.decode_batch([list(ids) for ids in recovered]))

    def perplexity(self, texts: Sequence[str]) -> dict[str, Figure]:
        """Return the perplexity of the first texts; nothing without a language model or without a word."""
        if self.language_model is None:
            return {}
        sums = self.language_model.score(texts[:PERPLEXITY_TEXTS])
        return {"perplexity": self.bootstrap.of_sums(sums, perplexity_of_sums)} if sums[:, 1].any() else {}
