"""How a tokenizer marks where words begin. The only place that knows the signs.

WordPiece marks the pieces that continue a word (``in ##vo ##ice``). Byte-level BPE (``Ġ``) and SentencePiece (``▁``)
mark those that begin one after a space. Byte-level BPE also writes each byte as a character of its own.
"""

from dataclasses import dataclass

from tokenizers import Tokenizer, decoders

_BYTE_LEVEL, _METASPACE = "Ġ", "▁"
_BYTES = decoders.ByteLevel()


@dataclass(frozen=True)
class SubwordMarks:
    """The marks of one tokenizer. An empty string: it has no such mark."""

    continuation: str = ""
    """Before a piece that continues a word."""
    start: str = ""
    """Before a piece that begins a word."""
    first_word_marked: bool = True
    """Whether the first word of a text has the mark of a start too."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SubwordMarks":
        """Find the marks of a tokenizer."""
        # Either the pre-tokenizer or the normaliser writes the mark: see what they make of a space.
        tokens = tokenizer.encode("a a", add_special_tokens=False).tokens
        start = next((sign for sign in (_BYTE_LEVEL, _METASPACE) if any(sign in token for token in tokens)), "")
        prefix = getattr(tokenizer.model, "continuing_subword_prefix", None) or ""
        return cls(prefix, start, first_word_marked=bool(tokens) and tokens[0].startswith(start))

    def continues(self, piece: str) -> bool:
        """Say whether a piece inside a text continues the word before it."""
        if self.start:
            return not piece.startswith(self.start)
        return bool(self.continuation) and piece.startswith(self.continuation) and piece != self.continuation

    def bare(self, piece: str) -> str:
        """Return what a piece says, without its mark."""
        if self.start == _BYTE_LEVEL:
            piece = str(_BYTES.decode([piece])).removeprefix(" ")
        return piece.removeprefix(self.start) if self.start else piece.removeprefix(self.continuation)

    def inside_text(self, word: str) -> str:
        """Return a word such that the tokenizer reads it as it does in the middle of a text."""
        return word if self.first_word_marked else f" {word}"
