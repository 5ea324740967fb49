"""Writes vectors to a new file or database. Whatever exists is left alone. Knows nothing of defences."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unembed.connectors.source import Id
from unembed.errors import ConfigError, VectorError, first_line, from_os_error, require_extra
from unembed.files import atomic_path

_BATCH = 1000
_FILES = (".npy", ".jsonl", ".parquet", ".faiss")
_FOLDERS = ("chroma", "lancedb")
_COLLECTION = "defended"


@dataclass(frozen=True)
class Records:
    """Rows to be written."""

    ids: Sequence[Id]
    vectors: np.ndarray
    """(n, d), float32 or int8."""
    texts: Sequence[str | None] | None


@dataclass(frozen=True)
class Target:
    """A file or folder that is to be made."""

    kind: str
    """The ending of a file, or the name of a database."""
    path: Path
    collection: str = _COLLECTION

    @classmethod
    def parse(cls, address: str) -> "Target":
        """Read ``FILE.npy``, ``FILE.jsonl``, ``FILE.parquet``, ``FILE.faiss``, ``chroma:FOLDER#name`` and the like.

        Raises:
            ConfigError: it cannot be written, or is there already.
        """
        scheme, colon, location = address.partition(":")
        if colon and scheme in _FOLDERS:
            folder, _, name = location.partition("#")
            target = cls(scheme, Path(folder), name or _COLLECTION)
        else:
            path = Path(location if colon and f".{scheme}" in _FILES else address)
            target = cls(path.suffix, path)
        if target.kind not in (*_FILES, *_FOLDERS):
            endings = ", ".join(f"FILE{ending}" for ending in _FILES)
            folders = ", ".join(f"{scheme}:FOLDER#name" for scheme in _FOLDERS)
            raise ConfigError(f"{address} is nothing that can be written.", f"Write to {endings}, {folders}.")
        refuse_existing(target.path)
        return target

    def beside(self, ending: str) -> Path:
        """Return the path of a small file that belongs to it."""
        return self.path.with_name(self.path.name + ending)

    def write(self, records: Records) -> None:
        """Write all records, or nothing."""
        refuse_existing(self.path)
        if self.kind in _FOLDERS and (twice := len(records.ids) - len(set(map(str, records.ids)))):
            raise VectorError(
                f"{twice:,} vectors have an id that another one has already; a database takes each id once.",
                "Write to a file, or choose another column for the ids: `id_column`.",
            )
        _WRITERS[self.kind](self, records)


def refuse_existing(path: Path) -> None:
    """Raise if there is something already: nothing is ever overwritten."""
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path} exists already, and nothing is overwritten.", "Choose another name.")


def _write_npy(target: Target, records: Records) -> None:
    with atomic_path(target.path) as temporary, temporary.open("wb") as file:
        np.save(file, records.vectors, allow_pickle=False)


def _write_jsonl(target: Target, records: Records) -> None:
    with atomic_path(target.path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row, (identifier, vector) in enumerate(zip(records.ids, records.vectors, strict=True)):
            record: dict[str, object] = {"id": identifier, "embedding": vector.tolist()}
            if records.texts is not None:
                record["text"] = records.texts[row]
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_parquet(target: Target, records: Records) -> None:
    require_extra("train", "pyarrow")
    import pyarrow
    from pyarrow import parquet

    with atomic_path(target.path) as temporary:
        parquet.write_table(pyarrow.table(_columns(records, "embedding")), temporary)


def _write_faiss(target: Target, records: Records) -> None:
    require_extra("faiss", "faiss")
    import faiss

    index = faiss.IndexFlatIP(records.vectors.shape[1])
    index.add(np.ascontiguousarray(records.vectors, dtype=np.float32))
    with atomic_path(target.path) as temporary:
        faiss.write_index(index, str(temporary))


def _write_chroma(target: Target, records: Records) -> None:
    require_extra("chroma", "chromadb")
    import chromadb

    def fill(folder: Path) -> None:
        client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
        collection = client.create_collection(target.collection, metadata={"hnsw:space": "cosine"})
        for start in range(0, len(records.ids), _BATCH):
            rows = slice(start, start + _BATCH)
            collection.add(
                ids=list(map(str, records.ids[rows])),
                embeddings=np.asarray(records.vectors[rows], dtype=np.float32),
                documents=None if records.texts is None else [text or "" for text in records.texts[rows]],
            )
        client.close()

    _fill_folder(target, fill)


def _write_lancedb(target: Target, records: Records) -> None:
    require_extra("lancedb", "lancedb")
    import lancedb
    import pyarrow

    def fill(folder: Path) -> None:
        vectors = pyarrow.FixedSizeListArray.from_arrays(
            np.asarray(records.vectors, dtype=np.float32).ravel(), records.vectors.shape[1]
        )
        table = pyarrow.table(_columns(records, "vector") | {"vector": vectors})
        lancedb.connect(folder).create_table(target.collection, data=table)

    _fill_folder(target, fill)


def _columns(records: Records, name: str) -> dict[str, object]:
    columns: dict[str, object] = {"id": list(map(str, records.ids)), name: list(records.vectors)}
    return columns if records.texts is None else columns | {"text": list(records.texts)}


def _fill_folder(target: Target, fill: Callable[[Path], None]) -> None:
    """Make a folder under another name, and give it its own when it is complete."""
    path = target.path
    temporary = path.with_name(f".{path.name}.unfinished")
    try:
        temporary.mkdir(parents=True)
    except FileExistsError as error:
        raise ConfigError(
            f"{temporary} is left from a run that was stopped, or another run is writing there.", "Remove it."
        ) from error
    except OSError as error:
        raise from_os_error(error, f"making the folder {temporary}") from error
    try:
        fill(temporary)
        temporary.rename(path)
    except OSError as error:
        raise from_os_error(error, f"writing {path}") from error
    except Exception as error:  # each database has errors of its own: a name that it does not allow, and the like
        raise ConfigError(
            f"{target.kind} does not write {path}, collection '{target.collection}': {first_line(error)}",
            f"Choose another name ({target.kind}:FOLDER#name), or write to a file.",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


_WRITERS: dict[str, Callable[[Target, Records], None]] = {
    ".npy": _write_npy,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
    ".faiss": _write_faiss,
    "chroma": _write_chroma,
    "lancedb": _write_lancedb,
}


def require_texts(texts: Sequence[str | None] | None, name: str) -> Sequence[str | None]:
    """Return the texts of a source, or say that it has none."""
    if texts is None:
        raise VectorError(f"{name} holds no texts.", "Leave out `keep_texts`.")
    return texts
