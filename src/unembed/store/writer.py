"""Fills a store shard by shard, and goes on where it was stopped. Knows no concrete encoder.

A shard covers a fixed run of source lines. Its two arrays are written first, each atomically; then the manifest that
lists it. A process killed between any two instructions leaves at most arrays that no manifest lists, and the next run
writes those again: no row is lost, none is repeated. A shard that was damaged since is made again, and only that one.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import CanvasVocabulary, tokenizer_hash
from unembed.distribution import MapShards, Values, map_here
from unembed.distribution import Shard as Numbered
from unembed.encoders import Encoder, known_tokenizer
from unembed.errors import StoreError
from unembed.files import atomic_path, checksum, locked_folder, remove_leftovers, write_text
from unembed.store.fingerprint import Fingerprint
from unembed.store.making import make_worker
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
    map_shards: MapShards = map_here,
    load_encoder: Callable[[], Encoder] | None = None,
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
        map_shards: works on the missing shards, in this process or in others; whatever it is, the store is the same.
        load_encoder: loads the same encoder in another process; without it, ``encoder`` itself works.
    """
    with locked_folder(folder) as free:
        if not free:
            raise StoreError(
                f"Another process is filling the store in {folder}.", "Wait for it, or give another `output`."
            )
        tokenizer = tokenizer or known_tokenizer(encoder)
        wanted = describe_store(lines(), encoder, tokenizer, canvas_length, shard_lines)
        wanted = wanted.model_copy(update={"respelled_share": respelled_share})
        manifest = _begin(folder, wanted, tokenizer)
        if on_shard:
            for shard in manifest.shards:
                on_shard(shard)
        if manifest.complete and manifest.fingerprint:
            return manifest
        finished = {shard.number: shard for shard in manifest.shards}
        worker = partial(make_worker, load_encoder or (lambda: encoder), tokenizer, wanted, batch_size)
        for number, made in map_shards(partial(_missing, lines, shard_lines, frozenset(finished)), worker):
            finished[number] = _save(number, made, folder)
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


def describe_store(
    lines: Iterator[str], encoder: Encoder, tokenizer: Tokenizer, canvas_length: int, shard_lines: int
) -> Manifest:
    """Return the manifest of a store that has no shard yet."""
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


def _missing(lines: Callable[[], Iterator[str]], shard_lines: int, finished: Collection[int]) -> Iterator[Numbered]:
    """Yield the source lines of every shard that is not finished."""
    source = lines()
    for number in count():
        block = list(islice(source, shard_lines))
        if not block:
            return
        if number not in finished:
            yield number, {"lines": block}


def _save(number: int, made: Values, folder: Path) -> Shard:
    """Write the arrays of a shard; it is part of the store once the manifest lists it."""
    facts = {name: made[name] for name in ("rows", "lines", "tokens", "lost_tokens")}
    shard = Shard(number=number, tokens_checksum="", embeddings_checksum="", **facts)
    return shard.model_copy(
        update={
            "tokens_checksum": _save_array(folder / shard.tokens_file, made["ids"]),
            "embeddings_checksum": _save_array(folder / shard.embeddings_file, made["vectors"]),
        }
    )


def _take_fingerprint(folder: Path, manifest: Manifest) -> Fingerprint | None:
    """Read the finished shards once more: what comes out does not depend on how often the work was interrupted."""
    files = (folder / shard.embeddings_file for shard in manifest.shards)
    return Fingerprint.of(np.load(file, mmap_mode="r", allow_pickle=False) for file in files)


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
