"""Which ids a canvas may hold. Knows tokenizers, nothing of vectors or files."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer, models


@dataclass(frozen=True)
class CanvasVocabulary:
    """The encoder's token ids, and three ids of our own behind them.

    The encoder's own [MASK], [PAD] or end token may be a real token of somebody's text, so ours collide with none.
    [MASK] comes last: a head that scores ``size + 2`` ids or fewer cannot give it.
    """

    size: int
    special: tuple[int, ...] = ()
    """Ids of the encoder's own special tokens: never stored, never emitted."""

    @property
    def eos(self) -> int:
        """Ends a text on the fixed canvas."""
        return self.size

    @property
    def pad(self) -> int:
        """Fills the rest of a canvas."""
        return self.size + 1

    @property
    def mask(self) -> int:
        """A position not revealed yet."""
        return self.size + 2

    @property
    def total(self) -> int:
        """How many ids there are in all."""
        return self.size + 3

    def text_ids(self, canvas: Sequence[int]) -> list[int]:
        """Return the ids that a canvas says: those before its first [EOS] that are the encoder's."""
        end = canvas.index(self.eos) if self.eos in canvas else len(canvas)
        return [token for token in canvas[:end] if token < self.size]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "CanvasVocabulary":
        """Read the size and the special ids off an encoder's tokenizer."""
        special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        if (unknown := _unknown_id(tokenizer)) is not None:
            special.add(unknown)
        # Not the number of tokens: some vocabularies have holes, and their last ids lie beyond it.
        size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        return cls(size=size, special=tuple(sorted(special)))


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id that stands for characters which the tokenizer does not know; None if it has none."""
    if isinstance(tokenizer.model, models.Unigram):  # only its serialised form tells
        unknown: int | None = json.loads(tokenizer.to_str())["model"].get("unk_id")
        return unknown
    found: int | None = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "")
    return found


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """Identify a tokenizer by what it does: its serialised form without padding and truncation."""
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.no_padding()
    plain.no_truncation()
    return hashlib.sha256(plain.to_str().encode()).hexdigest()[:16]
