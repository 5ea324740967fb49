"""One shard of a store: from lines of text to two arrays. Knows no files, and no other shard."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import count_lost, fit_to_canvas
from unembed.distribution import Values
from unembed.encoders import Encoder
from unembed.errors import EncoderError
from unembed.store.manifest import Manifest


@dataclass(frozen=True)
class ShardMaker:
    """Turns the lines of a shard into token ids and vectors."""

    encoder: Encoder
    tokenizer: Tokenizer
    manifest: Manifest
    """What the store is to hold."""
    batch_size: int

    def __call__(self, values: Values) -> Values:
        """Return the two arrays as they are stored, and what was counted on the way."""
        lines: list[str] = values["lines"]
        ids, texts, _ = fit_to_canvas(lines, self.tokenizer, self.manifest.canvas_length)
        vectors = _encode(texts, self.encoder, self.manifest, self.batch_size)
        shape = len(ids), self.manifest.canvas_length
        tokens = np.full(shape, self.manifest.vocabulary.pad, dtype=self.manifest.tokens_dtype)
        for row, token_ids in enumerate(ids):
            tokens[row, : len(token_ids)] = token_ids
        lost, total = count_lost(lines, self.tokenizer)
        facts = {"rows": len(ids), "lines": len(lines), "tokens": total, "lost_tokens": lost}
        return {"ids": tokens, "vectors": vectors} | facts


def make_worker(
    load_encoder: Callable[[], Encoder], tokenizer: Tokenizer, manifest: Manifest, batch_size: int
) -> ShardMaker:
    """Load the encoder where the work is done, and make sure that it is the one of the store."""
    encoder = load_encoder()
    if encoder.description != manifest.encoder:
        raise EncoderError(
            f"A worker has another encoder: {encoder.description}, expected {manifest.encoder}.",
            "Install the same encoder on every machine.",
        )
    return ShardMaker(encoder, tokenizer, manifest, batch_size)


def _encode(texts: list[str], encoder: Encoder, manifest: Manifest, batch_size: int) -> np.ndarray:
    """Return the vectors as they are stored, or refuse them: one bad row would spoil a training run much later."""
    expected = (len(texts), manifest.encoder.dim)
    given = np.asarray(encoder.encode(texts, batch_size=batch_size) if texts else np.empty(expected))
    if given.shape != expected:
        raise EncoderError(
            f"The encoder '{manifest.encoder.name}' gave vectors of shape {given.shape}, expected {expected}.",
            "Check the encoder: it must give one vector of its dimension for each text.",
        )
    with np.errstate(over="ignore"):
        vectors: np.ndarray = given.astype(manifest.embeddings_dtype)
    bad = np.flatnonzero(~np.isfinite(vectors).all(1))
    if len(bad):
        raise EncoderError(
            f"The encoder '{manifest.encoder.name}' gave a vector with values that are not finite, or too large for "
            f"{manifest.embeddings_dtype}, for {texts[bad[0]]!r}.",
            "Check the encoder, or leave this text out.",
        )
    return vectors
