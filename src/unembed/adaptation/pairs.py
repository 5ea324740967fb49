"""Texts with their vectors by the encoder of an inverter, and, as pairs, by the encoder to adapt it to as well."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import CanvasVocabulary
from unembed.encoders import Encoder, EncoderDescription
from unembed.errors import EncoderError, VectorError
from unembed.measures.vectors import cosine
from unembed.progress import OnProgress
from unembed.store import Store, embed_texts
from unembed.text import well_formed

# Texts that are embedded between two saves: what an endpoint that fails may cost.
_SHARD = 256
# Texts that are embedded once more, and how near their vectors must be to the first ones.
_REPEATED, _SAME = 4, 0.99


@dataclass(frozen=True)
class Pairs:
    """Texts, with their vectors by the encoder to adapt to and by the encoder of the inverter."""

    encoder: EncoderDescription
    """The encoder to adapt to."""
    ids: Sequence[Sequence[int]]
    """Each text's tokens, as the inverter's tokenizer numbers them."""
    theirs: np.ndarray
    """(n, d) by the encoder to adapt to."""
    ours: np.ndarray
    """(n, k) by the inverter's own."""
    origin: str
    """Where the texts came from, in words."""


@dataclass(frozen=True)
class OwnTexts:
    """Texts with their vectors by the encoder of the inverter alone."""

    ids: Sequence[Sequence[int]]
    """Each text's tokens, as the inverter's tokenizer numbers them."""
    vectors: np.ndarray
    """(n, k)"""
    origin: str
    """Where the texts came from, in words."""


def embed_pairs(
    texts: Sequence[str],
    theirs: Encoder,
    ours: Encoder,
    folder: Path,
    *,
    tokenizer: Tokenizer,
    canvas_length: int,
    origin: str,
    batch_size: int = 32,
    on_progress: OnProgress = lambda label, more, total: None,
) -> Pairs:
    """Embed texts with both encoders, each text once and cut to what a canvas holds.

    The vectors are kept in ``folder``: if the work is interrupted, or an endpoint fails, the next call goes on there.
    """
    different = _different(texts)
    stores = [
        _embed(different, encoder, folder / name, tokenizer, canvas_length, batch_size, on_progress)
        for name, encoder in (("theirs", theirs), ("ours", ours))
    ]
    (ids, known), (_, own) = map(_contents, stores)
    pairs = Pairs(theirs.description, ids, known, own, origin)
    _check_repeats(theirs, tokenizer.decode_batch(ids[:_REPEATED]), pairs.theirs[:_REPEATED])
    return pairs


def embed_own(
    texts: Sequence[str],
    encoder: Encoder,
    folder: Path,
    *,
    tokenizer: Tokenizer,
    canvas_length: int,
    origin: str,
    batch_size: int = 32,
    on_progress: OnProgress = lambda label, more, total: None,
) -> OwnTexts:
    """Embed texts with the inverter's own encoder, each once and cut to what a canvas holds; kept in ``folder``."""
    store = _embed(_different(texts), encoder, folder, tokenizer, canvas_length, batch_size, on_progress)
    return OwnTexts(*_contents(store), origin)


def pair_known(
    texts: Sequence[str],
    vectors: np.ndarray,
    encoder: EncoderDescription,
    ours: Encoder,
    *,
    tokenizer: Tokenizer,
    origin: str,
) -> Pairs:
    """Pair texts with vectors that are known, each text once. No text is cut: its vector is that of the whole."""
    if len(vectors) != len(texts):
        raise VectorError(f"There are {len(texts):,} texts, but {len(vectors):,} vectors.", "Give one for each.")
    special = set(CanvasVocabulary.of(tokenizer).special)
    known: dict[str, tuple[int, list[int]]] = {}
    for row, text in enumerate(map(well_formed, texts)):
        ids = tokenizer.encode(text.strip(), add_special_tokens=False).ids
        if kept := [token for token in ids if token not in special]:
            known.setdefault(text, (row, kept))
    rows = [row for row, _ in known.values()]
    return Pairs(encoder, [ids for _, ids in known.values()], vectors[rows], ours.encode(list(known)), origin)


def _different(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(text for text in map(well_formed, texts) if text.strip()))


def _embed(
    texts: list[str],
    encoder: Encoder,
    folder: Path,
    tokenizer: Tokenizer,
    canvas_length: int,
    batch_size: int,
    on_progress: OnProgress,
) -> Store:
    """Embed texts into a store, or go on with one that is there."""
    label = f"Embedding with {encoder.description.name}"
    embed_texts(
        lambda: iter(texts),
        folder,
        encoder,
        tokenizer=tokenizer,
        canvas_length=canvas_length,
        shard_lines=_SHARD,
        batch_size=batch_size,
        on_shard=lambda shard: on_progress(label, shard.lines, len(texts)),
    )
    return Store(folder)


def _contents(store: Store) -> tuple[list[list[int]], np.ndarray]:
    """Return the ids of each text of a store, and their vectors."""
    rows = np.arange(len(store))
    ids = [row[:length].tolist() for row, length in zip(store.tokens(rows), store.lengths, strict=True)]
    return ids, store.embeddings(rows)


def _check_repeats(encoder: Encoder, texts: Sequence[str], vectors: np.ndarray) -> None:
    """Refuse an encoder that gives a text another vector than before: no map can follow it."""
    least = float(cosine(encoder.encode(texts), vectors).min()) if len(texts) else 1.0
    if least < _SAME:
        raise EncoderError(
            f"The encoder '{encoder.description.name}' gives a text another vector than a moment ago (cosine "
            f"{least:.3f}).",
            "Check that it is one model, with one prompt and without noise; then start with another `output`.",
        )
