"""A text that is embedded in order to be read back: what of it fits a canvas. Knows tokens, no vectors."""

from dataclasses import dataclass

from tokenizers import Tokenizer

from unembed.canvas.fitting import fit_to_canvas
from unembed.errors import CorpusError


@dataclass(frozen=True)
class RoundTrip:
    """A text, and the part of it that is embedded."""

    original: str
    embedded: str
    ids: list[int]
    """The embedded text's tokens."""
    tokens_in_all: int

    @property
    def cut(self) -> bool:
        """Whether the text was longer than a canvas."""
        return self.tokens_in_all > len(self.ids)


def fit_text(text: str, tokenizer: Tokenizer, longest: int) -> RoundTrip:
    """Cut a text to what a canvas holds; a text that fits is embedded as it was typed."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if 0 < len(ids) <= longest:
        return RoundTrip(text, text, ids, len(ids))
    cut_ids, cut_texts, _ = fit_to_canvas([text], tokenizer, longest)
    if not cut_ids:
        raise CorpusError(f"The text {text[:40]!r} has no tokens that can be embedded.", "Give another text.")
    return RoundTrip(text, cut_texts[0], cut_ids[0], len(ids))
