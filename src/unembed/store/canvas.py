"""From text to the token ids on a canvas, and which ids a canvas may hold. Knows nothing of vectors or files."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from unembed.encoders.base import well_formed

# A text that still changes after this many rounds of "read, write, read again" is left out.
_ROUNDS = 3


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
        unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "")
        if unknown is not None:
            special.add(unknown)
        # Not the number of tokens: some vocabularies have holes, and their last ids lie beyond it.
        size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        return cls(size=size, special=tuple(sorted(special)))


def fit_to_canvas(
    texts: Sequence[str], tokenizer: Tokenizer, length: int
) -> tuple[list[list[int]], list[str], list[int]]:
    """Cut texts to ``length`` tokens, such that reading the cut text again gives those very tokens.

    A vector must be the vector of exactly what its tokens say. So the ids are decoded back to text, and that text is
    what will be embedded; reading it must give the same ids. Most texts agree at once, a few after another round.
    Special tokens, unknown characters among them, are dropped first: no text says them.

    Returns:
        The ids, the texts that they say, and which inputs they come from. Inputs that are empty on the canvas or do
        not settle are left out.
    """
    special = set(CanvasVocabulary.of(tokenizer).special)
    pending = list(range(len(texts)))
    reading = [well_formed(text).strip() for text in texts]
    settled: dict[int, tuple[list[int], str]] = {}
    previous: dict[int, list[int]] = {}
    for _ in range(_ROUNDS):
        encodings = tokenizer.encode_batch(reading, add_special_tokens=False)
        cut = [[i for i in encoding.ids if i not in special][:length] for encoding in encodings]
        # A cut through the bytes of one character leaves U+FFFD behind.
        said = [text.rstrip("\ufffd").strip() for text in tokenizer.decode_batch(cut)]
        again = []
        for row, encoding, ids, read, text in zip(pending, encodings, cut, reading, said, strict=True):
            if previous.get(row) == encoding.ids:
                settled[row] = (ids, read)
            elif text:
                previous[row] = ids
                again.append((row, text))
        pending = [row for row, _ in again]
        reading = [text for _, text in again]
        if not pending:
            break
    rows = sorted(settled)
    return [settled[row][0] for row in rows], [settled[row][1] for row in rows], rows


def count_lost(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[int, int]:
    """Return how many of the texts' tokens no canvas can say (unknown and special ones), and how many there are."""
    special = set(CanvasVocabulary.of(tokenizer).special)
    encodings = tokenizer.encode_batch([well_formed(text).strip() for text in texts], add_special_tokens=False)
    tokens = [token for encoding in encodings for token in encoding.ids]
    return sum(token in special for token in tokens), len(tokens)


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """Identify a tokenizer by what it does: its serialised form without padding and truncation."""
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.no_padding()
    plain.no_truncation()
    return hashlib.sha256(plain.to_str().encode()).hexdigest()[:16]
