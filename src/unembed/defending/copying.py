"""A defended copy of a collection, and the way back with the key. The original is only read.

Beside the copy lies a note that says which chain was applied, so that nobody takes the copy for the original. It holds
nothing secret. The key file holds what the owner needs to defend queries and further vectors, and to undo a rotation.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors import VectorSource
from unembed.connectors.source import Id
from unembed.defences import Chain, ChainStep, count_different, refuse_useless, write_chain
from unembed.defences.key import identity_of, read_chain_facts
from unembed.defences.rounding import Integers
from unembed.defending.writing import Records, Target, refuse_existing, require_texts
from unembed.errors import ConfigError, VectorError
from unembed.files import write_json
from unembed.measures.vectors import cosine
from unembed.progress import OnProgress
from unembed.store import Fingerprint

NOTE = ".defence.json"
KEY = ".key"
# Cosine of a vector that was turned back with what it was: a wrong key gives about 0, the right one more than this.
_UNDONE = 0.4
_CHECKED = 2000


@dataclass(frozen=True)
class DefendedCopy:
    """What was written."""

    chain: Chain
    rows: int
    different: int
    """Different directions among the vectors that were written."""
    path: Path
    key: Path | None
    """The key file; None if the chain has nothing to keep."""
    not_undone: float = 0.0
    """Share of the vectors that the key would not turn back to what they were, from a sample."""


@dataclass(frozen=True)
class Collection:
    """All rows of a source, in memory."""

    ids: list[Id]
    vectors: np.ndarray
    texts: list[str | None] | None


def read_all(source: VectorSource, on_progress: OnProgress = lambda label, more, total: None) -> Collection:
    """Read a source to its end; raise at a vector that cannot be."""
    ids: list[Id] = []
    parts: list[np.ndarray] = []
    texts: list[str | None] = []
    for batch in source.checked:
        ids += batch.ids
        parts.append(batch.vectors)
        texts += batch.texts or [None] * len(batch)
        on_progress("Reading the vectors", len(batch), source.rows or 0)
    if not parts:
        raise VectorError(f"{source.name} holds no vectors.", "Check the address.")
    return Collection(ids, np.concatenate(parts), texts if any(text is not None for text in texts) else None)


def note_beside(address: str) -> dict[str, Any] | None:
    """Return the note of a defended copy, given its address; None if it has none."""
    scheme, colon, location = address.partition(":")
    place = location if colon and len(scheme) > 1 else address
    path = Path(place.partition("#")[0])
    try:
        note = json.loads(path.with_name(path.name + NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and "chain" in note else None


def refuse_defended(address: str) -> None:
    """Raise if a source is a defended copy: what it is asked for needs the original."""
    if note := note_beside(address):
        raise ConfigError(
            f"These vectors were defended already, with '{note['chain']}' (see the note {NOTE} beside them).",
            "Give the original vectors, and the whole chain at once.",
        )


def apply_chain(
    source: VectorSource,
    output: str,
    *,
    steps: list[ChainStep] | None = None,
    key: Path | None = None,
    new_key: Path | None = None,
    seed: int | None = None,
    keep_texts: bool = False,
    on_progress: OnProgress = lambda label, more, total: None,
) -> DefendedCopy:
    """Write a defended copy of a source.

    Args:
        source: is only read.
        output: a new file or database.
        steps: the chain; a key is drawn for it.
        key: instead of ``steps``, the key file of an earlier copy: its chain is applied again.
        new_key: where the key file is written; by default beside the output.
        seed: for repeatable experiments only. Whoever knows it knows the key.
        keep_texts: whether the copy holds the texts, too.
        on_progress: called while the vectors are read.
    """
    target = Target.parse(output)
    key_path = new_key or target.beside(KEY)
    if steps is not None:
        refuse_existing(key_path)
    given = read_all(source, on_progress)
    texts = require_texts(given.texts, source.name) if keep_texts else None
    if steps is None:
        if key is None:
            raise ConfigError("There is no chain of defences to apply.", "Give one: `with_chain=truncate:256,int8`.")
        # Noise that was used before would cancel in the difference of two vectors.
        chain = read_chain_facts(key)[0].forget_fresh_noise()
    else:
        chain = Chain.fit(steps, given.vectors, seed=seed)
    defended = chain.apply(given.vectors)
    refuse_useless(chain, given.vectors, defended)
    keeps = steps is not None and any(transform.state for transform in chain.transforms)
    note = {"chain": str(chain), "dim": chain.dim, "vectors": len(defended)}
    if chain.keyed:
        note["key"] = identity_of(chain)
    # Key and note come first: no copy is ever without them. If it cannot be written, they go again.
    written = []
    try:
        if keeps:
            write_chain(key_path, chain.forget_fresh_noise(), {"fingerprint": _describe(defended)})
            written.append(key_path)
        write_json(target.beside(NOTE), note)
        written.append(target.beside(NOTE))
        target.write(Records(given.ids, _stored(chain, defended), texts))
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return DefendedCopy(
        chain,
        len(defended),
        count_different(defended),
        target.path,
        key_path if keeps else None,
        _share_not_undone(chain, given.vectors, defended),
    )


def undo_chain(
    source: VectorSource,
    address: str,
    key: Path,
    output: str,
    *,
    keep_texts: bool = False,
    on_progress: OnProgress = lambda label, more, total: None,
) -> DefendedCopy:
    """Write the vectors of a defended copy as they were before its key was applied.

    Args:
        source: the defended copy, which is only read.
        address: its address, beside which the note is looked for.
        key: the key file.
        output: a new file or database.
        keep_texts: whether the result holds the texts, too.
        on_progress: called while the vectors are read.

    Raises:
        ConfigError: there is nothing to undo, or it is another key.
    """
    target = Target.parse(output)
    chain, facts = read_chain_facts(key)
    if not chain.keyed:
        raise ConfigError(
            f"The chain '{chain}' has no secret rotation: nothing can be undone with a key.",
            "What noise, rounding or truncation took away is gone; use the original vectors.",
        )
    note = note_beside(address)
    if note and note.get("key") != identity_of(chain):
        raise _wrong_key(key, source.name, f"they were defended with '{note['chain']}' and another key")
    given = read_all(source, on_progress)
    width = chain.apply(np.zeros((1, chain.dim))).shape[1]
    if given.vectors.shape[1] != width:
        raise _wrong_key(key, source.name, f"they have {given.vectors.shape[1]} numbers, and '{chain}' gives {width}")
    known = Fingerprint.model_validate_json(facts["fingerprint"]) if facts.get("fingerprint") else None
    if known and (doubts := known.doubts(given.vectors)):
        raise _wrong_key(key, source.name, "; ".join(doubts))
    texts = require_texts(given.texts, source.name) if keep_texts else None
    restored = chain.undo(given.vectors)
    target.write(Records(given.ids, restored, texts))
    return DefendedCopy(chain, len(restored), count_different(restored), target.path, None)


def _stored(chain: Chain, vectors: np.ndarray) -> np.ndarray:
    """Return vectors as they are stored: whole numbers where the last transform gives such."""
    last = chain.transforms[-1]
    return last.codes(vectors) if isinstance(last, Integers) else vectors


def _share_not_undone(chain: Chain, vectors: np.ndarray, defended: np.ndarray) -> float:
    """Return the share that would be turned back with the key of another cell: noise may hide which is theirs."""
    if not chain.keyed:
        return 0.0
    rows = np.unique(np.linspace(0, len(vectors) - 1, _CHECKED).round().astype(int))
    before = chain.before_key().apply(vectors)[rows]
    return float((cosine(chain.undo(defended[rows]), before) < _UNDONE).mean())


def _describe(vectors: np.ndarray) -> str:
    fingerprint = Fingerprint.of([vectors])
    return fingerprint.model_dump_json() if fingerprint else ""


def _wrong_key(key: Path, name: str, why: str) -> ConfigError:
    return ConfigError(f"{key} is not the key of {name}: {why}.", "Give the key file that was written with them.")
