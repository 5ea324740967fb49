"""Static encoders in model2vec's format: a vector is the mean of its tokens' rows of a table. Needs numpy only.

Texts are read as model2vec reads them: no special tokens, unknown ones left out, long texts cut. The order of tokens
leaves no trace in a vector.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from unembed.encoders.base import EncoderDescription, as_texts
from unembed.errors import EncoderError, first_line
from unembed.progress import track

_LONGEST = 512  # tokens
_AT_ONCE = 1024
_TINY = 1e-32


class StaticEncoder:
    """An :class:`~unembed.encoders.Encoder` around a folder of model2vec."""

    supports_substitutions = True

    def __init__(self, folder: Path, *, name: str, revision: str) -> None:
        try:
            self._table = _read_table(folder)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # neither safetensors nor tokenizers raises anything narrower
            raise EncoderError(
                f"{folder} is not a static encoder of model2vec: {first_line(error)}", "Reinstall its package."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        vocabulary = self._tokenizer.get_vocab()
        # model2vec cuts a long text before it reads it, to so many characters.
        self._characters = _LONGEST * int(np.median([len(token) for token in vocabulary]))
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        if unknown in vocabulary:
            self._table[vocabulary[unknown]] = 0.0
        self._squares = np.square(self._table).sum(1)
        self._description = EncoderDescription(
            name=name, revision=revision, dim=self._table.shape[1], prompt=None, pooling="mean", normalised=True
        )

    @property
    def description(self) -> EncoderDescription:
        """Name, revision, dimension, prompt, pooling and normalisation."""
        return self._description

    @property
    def tokenizer(self) -> Tokenizer:
        """A copy of the encoder's tokenizer."""
        return Tokenizer.from_str(self._tokenizer.to_str())

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence; a text without a known token gets zeros. Batches do not matter."""
        texts = as_texts(sentences)
        vectors = np.empty((len(texts), self.description.dim), dtype=np.float32)

        def batches() -> Iterator[int]:
            for start in range(0, len(texts), _AT_ONCE):
                for row, ids in enumerate(self._ids(texts[start : start + _AT_ONCE]), start):
                    # Vectors have length one, so the sum gives the same as the mean.
                    total = self._table[ids].sum(0)
                    vectors[row] = total / (np.linalg.norm(total) + _TINY)
                yield len(texts[start : start + _AT_ONCE])

        for _ in track(batches(), total=len(texts), label="Embedding", disable=not show_progress_bar):
            pass
        return vectors

    def substitutions(
        self, sentences: Sequence[str], targets: np.ndarray, top: int, *, forbidden: Sequence[int] = ()
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Return what each substitution of one token adds to the cosine with a target (n, d); exact, no estimate."""
        rows = zip(self._ids(as_texts(sentences)), targets, strict=True)
        return [self._best(ids, target, top, forbidden) if ids else None for ids, target in rows]

    def _best(
        self, ids: list[int], target: np.ndarray, top: int, forbidden: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        wanted = np.asarray(target, dtype=np.float32) / (np.linalg.norm(target) + _TINY)
        own = self._table[ids]
        total = own.sum(0)
        others = total - own  # (T, d): the sum without each token
        products = (others @ wanted)[:, None] + self._table @ wanted
        squares = np.square(others).sum(1)[:, None] + 2 * others @ self._table.T + self._squares
        gains = products / np.sqrt(np.maximum(squares, _TINY)) - total @ wanted / (np.linalg.norm(total) + _TINY)
        gains[:, list(forbidden)] = -np.inf
        gains[np.arange(len(ids)), ids] = -np.inf
        best = np.argpartition(-gains, top - 1, axis=1)[:, :top]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(gains, best, 1), axis=1), 1)
        return best, np.take_along_axis(gains, best, 1)

    def _ids(self, texts: list[str]) -> list[list[int]]:
        cut = [text[: self._characters] for text in texts]
        encodings = self._tokenizer.encode_batch(cut, add_special_tokens=False)
        return [encoding.ids[:_LONGEST] for encoding in encodings]


def _read_table(folder: Path) -> np.ndarray:
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if not config["normalize"]:
        raise ValueError("its vectors are not of length one")
    tensors = load_file(folder / "model.safetensors")
    if set(tensors) != {"embeddings"}:
        raise ValueError("it has more than one table")
    return tensors["embeddings"].astype(np.float32)
