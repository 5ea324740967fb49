"""A smaller vocabulary: the pieces of a tokenizer that a corpus uses most. Knows tokenizers, not models.

With a vocabulary of 150,000 pieces the output head is most of an inverter's parameters, and most pieces never occur.
The tokenizer that is left reads any text: what was written with a piece that is gone is spelled with smaller ones. A
text all of whose pieces are kept reads as before. Only characters that no kept piece has are lost.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from tokenizers import Tokenizer, pre_tokenizers

from unembed.canvas.vocabulary import CanvasVocabulary
from unembed.errors import ConfigError
from unembed.text import well_formed

_AT_ONCE = 1024


def count_pieces(texts: Iterable[str], tokenizer: Tokenizer) -> np.ndarray:
    """Return how often each id of a tokenizer occurs in texts."""
    counts = np.zeros(CanvasVocabulary.of(tokenizer).size, dtype=np.int64)
    source = iter(texts)
    while block := [well_formed(text) for text in islice(source, _AT_ONCE)]:
        for encoding in tokenizer.encode_batch(block, add_special_tokens=False):
            np.add.at(counts, encoding.ids, 1)
    return counts


def reduce_vocabulary(tokenizer: Tokenizer, counts: np.ndarray, size: int) -> Tokenizer:
    """Return a tokenizer of at most ``size`` pieces: single characters, and what occurs most often.

    Special tokens go, but the one for unknown characters: nothing on a canvas may say them.
    """
    state = json.loads(tokenizer.to_str())
    model = state["model"]
    if model["type"] not in ("BPE", "Unigram", "WordPiece"):
        raise ConfigError(f"A tokenizer of type {model['type']} cannot be reduced.", "Leave out `vocabulary`.")
    pieces = _pieces(model)
    kept = _indispensable(model, pieces, counts)
    if len(kept) > size:
        raise ConfigError(
            f"A vocabulary of {size:,} does not even hold the {len(kept):,} single characters.",
            "Give a larger `vocabulary`.",
        )
    parents = _parents(model)
    special = set(CanvasVocabulary.of(tokenizer).special)
    for token in np.argsort(-counts, kind="stable").tolist():
        if not counts[token]:
            break
        if token < len(pieces) and pieces[token] and token not in special:
            needed = set(_derivation(pieces[token], parents)) - kept
            if len(kept) + len(needed) <= size:
                kept |= needed
    _keep(model, kept)
    return Tokenizer.from_str(json.dumps(state | {"added_tokens": [], "post_processor": None}))


def respelled_share(before: Tokenizer, after: Tokenizer, counts: np.ndarray) -> float:
    """Return the share of a corpus's tokens, as ``before`` counted them, that ``after`` has no piece for."""
    there = after.get_vocab(with_added_tokens=True)
    gone = [token for piece, token in before.get_vocab(with_added_tokens=True).items() if piece not in there]
    return float(counts[gone].sum() / max(1, counts.sum()))


def _pieces(model: dict[str, Any]) -> list[str]:
    """Return the pieces by id; an empty string where an id has none."""
    if model["type"] == "Unigram":
        return [piece for piece, _ in model["vocab"]]
    pieces = [""] * (max(model["vocab"].values()) + 1)
    for piece, token in model["vocab"].items():
        pieces[token] = piece
    return pieces


def _indispensable(model: dict[str, Any], pieces: list[str], counts: np.ndarray) -> set[str]:
    """Return what every vocabulary needs: the unknown token, bytes, and the corpus's characters one by one."""
    seen = {character for token, piece in enumerate(pieces) if counts[token] for character in piece}
    alphabet = seen | set(pre_tokenizers.ByteLevel.alphabet())
    prefix = model.get("continuing_subword_prefix") or ""
    unknown = pieces[model["unk_id"]] if model.get("unk_id") is not None else model.get("unk_token")
    kept = {
        piece
        for piece in pieces
        if piece.removeprefix(prefix) in alphabet
        or (model.get("byte_fallback") and len(piece) == 6 and piece.startswith("<0x"))
    }
    return kept | ({unknown} if unknown else set())


def _parents(model: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return which two pieces BPE merges into which."""
    prefix = model.get("continuing_subword_prefix") or ""
    parents: dict[str, tuple[str, str]] = {}
    for left, right in map(_pair, model.get("merges", ())):
        parents.setdefault(left + right.removeprefix(prefix), (left, right))
    return parents


def _derivation(piece: str, parents: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield a piece and all that it is merged from."""
    yield piece
    for parent in parents.get(piece, ()):
        yield from _derivation(parent, parents)


def _pair(merge: Any) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _keep(model: dict[str, Any], kept: set[str]) -> None:
    """Cut a serialised model down to the pieces that are kept, in their old order."""
    if model["type"] == "Unigram":
        unknown = None if model["unk_id"] is None else model["vocab"][model["unk_id"]]
        model["vocab"] = [entry for entry in model["vocab"] if entry[0] in kept]
        model["unk_id"] = None if unknown is None else model["vocab"].index(unknown)
        return
    order = sorted((token, piece) for piece, token in model["vocab"].items() if piece in kept)
    model["vocab"] = {piece: token for token, (_, piece) in enumerate(order)}
    if model["type"] == "BPE":
        parents = _parents(model)
        possible = {pair for piece, pair in parents.items() if {piece, *pair} <= kept}
        model["merges"] = [merge for merge in model["merges"] if _pair(merge) in possible]
