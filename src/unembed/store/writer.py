"""Fills a store shard by shard, and goes on where it was stopped. Knows no concrete encoder.

A shard covers a fixed run of source lines. Its two arrays are written first, each atomically; then the manifest that
lists it. A process killed between any two instructions leaves at most arrays that no manifest lists, and the next run
writes those again: no row is lost, none is repeated.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from unembed.encoders import Encoder
from unembed.errors import EncoderError, StoreError
from unembed.files import atomic_path, checksum, remove_leftovers, write_text
from unembed.store.canvas import CanvasVocabulary, fit_to_canvas, tokenizer_hash
from unembed.store.manifest import TOKENIZER_FILE, Manifest, Shard


def embed_texts(
    lines: Callable[[], Iterator[str]],
    folder: Path,
    encoder: Encoder,
    *,
    canvas_length: int = 32,
    shard_lines: int = 8192,
    batch_size: int = 32,
    on_shard: Callable[[Shard], None] | None = None,
) -> Manifest:
    """Embed every line into the store at ``folder``; finished shards of an earlier run are kept.

    Args:
        lines: opens the source anew at each call; it must give the same lines each time.
        folder: the store, new or unfinished.
        encoder: makes the vectors.
        canvas_length: texts are cut to this many tokens.
        shard_lines: source lines per shard: the unit of work, and of what a kill can cost.
        batch_size: texts per forward pass of the encoder.
        on_shard: called with each shard, also with those that were there already.
    """
    manifest = _begin(lines, folder, encoder, canvas_length, shard_lines)
    for shard in manifest.shards:
        if on_shard:
            on_shard(shard)
    if manifest.complete:
        return manifest
    source = islice(lines(), manifest.lines, None)
    while block := list(islice(source, shard_lines)):
        shard = _write_shard(len(manifest.shards), block, folder, encoder, manifest, batch_size)
        manifest = manifest.model_copy(update={"shards": (*manifest.shards, shard)})
        manifest.save(folder)
        if on_shard:
            on_shard(shard)
    if not manifest.rows:
        raise StoreError("No line of the source left a single token on the canvas.", "Check the source text.")
    manifest = manifest.model_copy(update={"complete": True})
    manifest.save(folder)
    return manifest


def _begin(
    lines: Callable[[], Iterator[str]], folder: Path, encoder: Encoder, canvas_length: int, shard_lines: int
) -> Manifest:
    tokenizer = encoder.tokenizer
    vocabulary = CanvasVocabulary.of(tokenizer)
    wanted = Manifest(
        encoder=encoder.description,
        tokenizer_hash=tokenizer_hash(tokenizer),
        vocabulary_size=vocabulary.size,
        special_ids=vocabulary.special,
        canvas_length=canvas_length,
        tokens_dtype="uint16" if vocabulary.total <= 1 << 16 else "uint32",
        source_hash=_hash_lines(lines()),
        shard_lines=shard_lines,
    )
    if not (folder / "manifest.json").is_file():
        write_text(folder / TOKENIZER_FILE, tokenizer.to_str())
        wanted.save(folder)
        return wanted
    found = Manifest.load(folder)
    differing = [key for key, value in wanted.identity().items() if found.identity()[key] != value]
    if differing:
        raise StoreError(
            f"{folder} was begun with another {', '.join(differing).replace('_', ' ')}.",
            "Give another --output, or remove the folder to begin anew.",
        )
    remove_leftovers(folder)
    intact = [shard for shard in found.shards if _is_intact(folder, shard)]
    # Shards are numbered without gaps: what follows a damaged one is made again with it.
    kept = tuple(shard for number, shard in enumerate(intact) if shard.number == number)
    if len(kept) < len(found.shards):
        found = found.model_copy(update={"shards": kept, "complete": False})
    return found


def _write_shard(
    number: int, block: Sequence[str], folder: Path, encoder: Encoder, manifest: Manifest, batch_size: int
) -> Shard:
    ids, texts, _ = fit_to_canvas(block, encoder.tokenizer, manifest.canvas_length)
    vectors = encoder.encode(texts, batch_size=batch_size) if texts else np.empty((0, manifest.encoder.dim), np.float32)
    if vectors.shape != (len(texts), manifest.encoder.dim) or not np.isfinite(vectors).all():
        raise EncoderError(
            f"The encoder '{manifest.encoder.name}' gave vectors of shape {vectors.shape} or values that are not finite"
            f" for {len(texts)} texts.",
            f"Expected ({len(texts)}, {manifest.encoder.dim}) finite numbers; check the encoder.",
        )
    tokens = np.full((len(ids), manifest.canvas_length), manifest.vocabulary.pad, dtype=manifest.tokens_dtype)
    for row, token_ids in enumerate(ids):
        tokens[row, : len(token_ids)] = token_ids
    shard = Shard(number=number, rows=len(ids), lines=len(block), tokens_checksum="", embeddings_checksum="")
    return shard.model_copy(
        update={
            "tokens_checksum": _save_array(folder / shard.tokens_file, tokens),
            "embeddings_checksum": _save_array(
                folder / shard.embeddings_file, vectors.astype(manifest.embeddings_dtype)
            ),
        }
    )


def _save_array(path: Path, array: np.ndarray) -> str:
    with atomic_path(path) as temporary:
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        return checksum(temporary)


def _is_intact(folder: Path, shard: Shard) -> bool:
    pairs = [(shard.tokens_file, shard.tokens_checksum), (shard.embeddings_file, shard.embeddings_checksum)]
    return all((folder / name).is_file() and checksum(folder / name) == expected for name, expected in pairs)


def _hash_lines(lines: Iterator[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()
