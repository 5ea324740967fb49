"""Fills a store shard by shard, and goes on where it was stopped. Knows no concrete encoder.

A shard covers a fixed run of source lines. Its two arrays are written first, each atomically; then the manifest that
lists it. A process killed between any two instructions leaves at most arrays that no manifest lists, and the next run
writes those again: no row is lost, none is repeated. A shard that was damaged since is made again, and only that one.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import CanvasVocabulary, count_lost, fit_to_canvas, tokenizer_hash
from unembed.encoders import Encoder, known_tokenizer
from unembed.errors import EncoderError, StoreError
from unembed.files import atomic_path, checksum, locked_folder, remove_leftovers, write_text
from unembed.store.fingerprint import Fingerprint
from unembed.store.manifest import FILE, TOKENIZER_FILE, Manifest, Shard


def embed_texts(
    lines: Callable[[], Iterator[str]],
    folder: Path,
    encoder: Encoder,
    *,
    tokenizer: Tokenizer | None = None,
    respelled_share: float | None = None,
    canvas_length: int = 32,
    shard_lines: int = 8192,
    batch_size: int = 32,
    on_shard: Callable[[Shard], None] | None = None,
) -> Manifest:
    """Embed every line into the store at ``folder``; finished shards of an earlier run are kept.

    Args:
        lines: opens the source again at each call; it must give the same lines each time.
        folder: the store, new or unfinished.
        encoder: makes the vectors.
        tokenizer: makes the token ids; the encoder's own by default.
        respelled_share: what a reduced ``tokenizer`` cost, to be recorded.
        canvas_length: texts are cut to this many tokens.
        shard_lines: source lines per shard: the unit of work, and of what a kill can cost.
        batch_size: texts per forward pass of the encoder.
        on_shard: called with each shard, also with those that were there already.
    """
    with locked_folder(folder) as free:
        if not free:
            raise StoreError(
                f"Another process is filling the store in {folder}.", "Wait for it, or give another `output`."
            )
        tokenizer = tokenizer or known_tokenizer(encoder)
        wanted = _describe(lines(), encoder, tokenizer, canvas_length, shard_lines)
        wanted = wanted.model_copy(update={"respelled_share": respelled_share})
        manifest = _begin(folder, wanted, tokenizer)
        if on_shard:
            for shard in manifest.shards:
                on_shard(shard)
        if manifest.complete and manifest.fingerprint:
            return manifest
        finished = {shard.number: shard for shard in manifest.shards}
        source = lines()
        for number in count():
            block = list(islice(source, shard_lines))
            if not block:
                break
            if number in finished:
                continue
            finished[number] = _write_shard(number, block, folder, encoder, tokenizer, manifest, batch_size)
            shards = tuple(finished[key] for key in sorted(finished))
            manifest = manifest.model_copy(update={"shards": shards})
            manifest.save(folder)
            if on_shard:
                on_shard(finished[number])
        if not manifest.rows:
            raise StoreError("No line of the source gives any token on the canvas.", "Check the source text.")
        manifest = manifest.model_copy(update={"complete": True, "fingerprint": _take_fingerprint(folder, manifest)})
        manifest.save(folder)
        return manifest


def _describe(
    lines: Iterator[str], encoder: Encoder, tokenizer: Tokenizer, canvas_length: int, shard_lines: int
) -> Manifest:
    vocabulary = CanvasVocabulary.of(tokenizer)
    return Manifest(
        encoder=encoder.description,
        tokenizer_hash=tokenizer_hash(tokenizer),
        vocabulary_size=vocabulary.size,
        special_ids=vocabulary.special,
        canvas_length=canvas_length,
        tokens_dtype="uint16" if vocabulary.total <= 1 << 16 else "uint32",
        source_hash=_hash_lines(lines),
        shard_lines=shard_lines,
    )


def _begin(folder: Path, wanted: Manifest, tokenizer: Tokenizer) -> Manifest:
    """Return the manifest to go on from: that of a new store, or what is intact of the one in ``folder``."""
    remove_leftovers(folder)
    if not (folder / FILE).is_file():
        write_text(folder / TOKENIZER_FILE, tokenizer.to_str())
        wanted.save(folder)
        return wanted
    stored = Manifest.load(folder)
    if differences := stored.differences(wanted):
        raise StoreError(
            f"The store in {folder} was started with other settings: {'; '.join(differences)}.",
            "Give another `output`, or remove the folder to start again.",
        )
    if not _holds_tokenizer(folder / TOKENIZER_FILE, stored.tokenizer_hash):
        write_text(folder / TOKENIZER_FILE, tokenizer.to_str())
    intact = tuple(shard for shard in stored.shards if _is_intact(folder, shard))
    if len(intact) < len(stored.shards):
        stored = stored.model_copy(update={"shards": intact, "complete": False, "fingerprint": None})
    return stored


def _write_shard(
    number: int,
    block: Sequence[str],
    folder: Path,
    encoder: Encoder,
    tokenizer: Tokenizer,
    manifest: Manifest,
    batch_size: int,
) -> Shard:
    ids, texts, _ = fit_to_canvas(block, tokenizer, manifest.canvas_length)
    vectors = _encode(texts, encoder, manifest, batch_size)
    tokens = np.full((len(ids), manifest.canvas_length), manifest.vocabulary.pad, dtype=manifest.tokens_dtype)
    for row, token_ids in enumerate(ids):
        tokens[row, : len(token_ids)] = token_ids
    shard = Shard(number=number, rows=len(ids), lines=len(block), tokens_checksum="", embeddings_checksum="")
    lost, total = count_lost(block, tokenizer)
    return shard.model_copy(
        update={
            "tokens": total,
            "lost_tokens": lost,
            "tokens_checksum": _save_array(folder / shard.tokens_file, tokens),
            "embeddings_checksum": _save_array(folder / shard.embeddings_file, vectors),
        }
    )


def _take_fingerprint(folder: Path, manifest: Manifest) -> Fingerprint | None:
    """Read the finished shards once more: what comes out does not depend on how often the work was interrupted."""
    files = (folder / shard.embeddings_file for shard in manifest.shards)
    return Fingerprint.of(np.load(file, mmap_mode="r", allow_pickle=False) for file in files)


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


def _save_array(path: Path, array: np.ndarray) -> str:
    with atomic_path(path) as temporary:
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        return checksum(temporary)


def _is_intact(folder: Path, shard: Shard) -> bool:
    try:
        return all(checksum(folder / name) == expected for name, expected in shard.checksums.items())
    except OSError:
        return False


def _holds_tokenizer(path: Path, expected: str) -> bool:
    try:
        return tokenizer_hash(Tokenizer.from_file(str(path))) == expected
    except Exception:  # tokenizers raises nothing narrower
        return False


def _hash_lines(lines: Iterator[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(line.encode(errors="surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()
