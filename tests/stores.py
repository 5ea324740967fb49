"""Builds real stores on disk, one per kind, and a private PostgreSQL: what connectors and audits are tested on."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

Build = Callable[[Path, np.ndarray, Sequence[str]], str]

VECTORS = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
TEXTS = [f"text number {row}" for row in range(40)]
EXPECTED = np.argsort(VECTORS[:, 0])
"""The order in which ``read`` returns the rows."""


def read(uri: str, **options: Any) -> tuple[Any, np.ndarray, list, list]:
    """All of a store, in the order of the first numbers of its vectors: source, vectors, ids, texts."""
    from unembed.connectors import open_vectors

    source = open_vectors(uri, batch_rows=16, **options)
    batches = list(source.usable(Counter()))
    vectors = np.concatenate([batch.vectors for batch in batches])
    ids = [identifier for batch in batches for identifier in batch.ids]
    texts = [text for batch in batches for text in batch.texts or [None] * len(batch)]
    order = np.argsort(vectors[:, 0])
    return source, vectors[order], [ids[row] for row in order], [texts[row] for row in order]


def chroma(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    """A collection with Chroma's default embedding function; another one beside it."""
    import chromadb

    client = chromadb.PersistentClient(str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("docs")
    collection.add(ids=[f"id-{row}" for row in range(len(texts))], embeddings=vectors, documents=list(texts))
    client.create_collection("empty")
    client.close()
    return f"chroma:{folder}#docs"


def qdrant(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    parameters = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("docs", vectors_config=parameters)
    client.create_collection("empty", vectors_config=parameters)
    points = [
        models.PointStruct(id=row, vector=vector.tolist(), payload={"text": text, "nested": {"list": [1, None]}})
        for row, (vector, text) in enumerate(zip(vectors, texts, strict=True))
    ]
    client.upsert("docs", points)
    client.close()
    return f"qdrant:{folder}#docs"


def lancedb(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    import lancedb

    rows = [
        {"id": f"id-{row}", "text": text, "vector": vector}
        for row, (vector, text) in enumerate(zip(vectors, texts, strict=True))
    ]
    database = lancedb.connect(folder)
    table = database.create_table("docs", data=rows[:2])
    table.add(rows[2:])
    return f"lancedb:{folder}#docs"


def faiss(folder: Path, vectors: np.ndarray, texts: Sequence[str], kind: str = "Flat") -> str:
    import faiss

    folder.mkdir()
    index = faiss.index_factory(vectors.shape[1], kind)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(folder / "index.faiss"))
    return f"faiss:{folder / 'index.faiss'}"


def npy(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    folder.mkdir()
    np.save(folder / "vectors.npy", vectors)
    return f"npy:{folder / 'vectors.npy'}"


def parquet(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    import pandas

    folder.mkdir()
    pandas.DataFrame({"text": texts, "embedding": list(vectors)}).to_parquet(folder / "vectors.parquet")
    return f"parquet:{folder / 'vectors.parquet'}"


def jsonl(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    import pandas

    folder.mkdir()
    frame = pandas.DataFrame({"text": texts, "embedding": vectors.tolist()})
    frame.to_json(folder / "vectors.jsonl", orient="records", lines=True, double_precision=15)
    return f"jsonl:{folder / 'vectors.jsonl'}"


ON_DISK: dict[str, Build] = {
    "chroma": chroma,
    "qdrant": qdrant,
    "lancedb": lancedb,
    "faiss": faiss,
    "npy": npy,
    "parquet": parquet,
    "jsonl": jsonl,
}
WITHOUT_TEXTS = ("faiss", "npy")


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file of a folder, when it last changed and what it holds."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def to_postgres(address: str, table: str, kind: str, vectors: np.ndarray, texts: Sequence[str]) -> str:
    """Fill a table with a column of ``kind``; return its URI."""
    import psycopg

    with psycopg.connect(address) as connection:
        if kind == "vector":
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, content text, embedding {kind})")
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} VALUES (%s, %s, %s::real[]::{kind})",
                [
                    (f"id-{row}", text, vector.tolist())
                    for row, (vector, text) in enumerate(zip(vectors, texts, strict=True))
                ],
            )
    return f"pgvector:{address}#{table}.embedding"


@contextmanager
def running_postgres():
    """Start a PostgreSQL of one's own, with pgvector, on a free port; yield its address.

    It does not run as root. Root's folders may be closed to others, so then it runs from a copy that is not.
    """
    from pgserver._commands import POSTGRES_BIN_PATH

    binaries, as_user = Path(POSTGRES_BIN_PATH), []
    with tempfile.TemporaryDirectory(prefix="unembed-postgres-") as temporary:
        folder = Path(temporary)
        (folder / "password").write_text("secret #1")
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            as_user = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
            package = binaries.parents[1]  # with its libraries in a folder beside it
            for part in (package.name, f"{package.name}.libs"):
                shutil.copytree(package.parent / part, folder / part, symlinks=True)
            binaries = folder / binaries.relative_to(package.parent)
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            os.chown(folder / "password", nobody.pw_uid, nobody.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        def run(program: str, *options: object) -> None:
            command = [*as_user, str(binaries / program), "-D", str(folder / "data"), *map(str, options)]
            with (folder / "output").open("ab") as output:  # a pipe would stay open as long as the server runs
                subprocess.run(command, check=True, stdout=output, stderr=output, cwd="/")

        run("initdb", "-U", "auditor", f"--pwfile={folder / 'password'}", "-A", "scram-sha-256", "--no-sync")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        run("pg_ctl", "-o", settings, "-w", "start")
        try:
            yield f"postgresql://auditor:secret%20%231@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
