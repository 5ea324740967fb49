"""One form of address for every source of vectors: ``chroma:./db#collection``. Knows which connector opens which."""

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

from unembed.connectors.chroma import DATABASE
from unembed.connectors.files import read_vectors
from unembed.connectors.source import Columns, VectorSource
from unembed.errors import VectorError, did_you_mean
from unembed.plugins import CONNECTORS, load_plugin, plugin_names

Opener = Callable[[str, str | None, Columns, int], VectorSource]
"""What a connector is: takes the location, the part behind ``#``, the columns, and how many rows a batch has."""
PluginOpener = Callable[[str, str | None, str | None, int], VectorSource]
"""A plugin's connector takes the column of vectors alone."""

# Imported when they are used: each needs a library of its own.
_OPENERS = {
    "chroma": "unembed.connectors.chroma:read_chroma",
    "qdrant": "unembed.connectors.qdrant:read_qdrant",
    "faiss": "unembed.connectors.faiss:read_faiss",
    "lancedb": "unembed.connectors.lancedb:read_lancedb",
    "pgvector": "unembed.connectors.postgres:read_postgres",
    "sqlite": "unembed.connectors.sqlite:read_sqlite",
    "duckdb": "unembed.connectors.duckdb:read_duckdb",
    "hnswlib": "unembed.connectors.hnswlib:read_hnswlib",
    "usearch": "unembed.connectors.usearch:read_usearch",
    "annoy": "unembed.connectors.annoy:read_annoy",
    "dataset": "unembed.connectors.dataset:read_dataset",
    "milvus": "unembed.connectors.milvus:read_milvus",
    "redis": "unembed.connectors.redis:read_redis",
    "weaviate": "unembed.connectors.weaviate:read_weaviate",
    "elasticsearch": "unembed.connectors.elasticsearch:read_elasticsearch",
    "opensearch": "unembed.connectors.elasticsearch:read_elasticsearch",
    "pinecone": "unembed.connectors.pinecone:read_pinecone",
}
_FILES = ("npy", "npz", "parquet", "feather", "arrow", "csv", "tsv", "jsonl", "json")
# Files of databases that are known by their ending.
_ENDINGS = {
    ".faiss": "faiss",
    ".index": "faiss",
    ".duckdb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".usearch": "usearch",
    ".hnsw": "hnswlib",
    ".ann": "annoy",
}
# Folders of databases that are known by a file in them.
_FOLDERS = {DATABASE: "chroma", "meta.json": "qdrant", "dataset_dict.json": "dataset", "state.json": "dataset"}
# Addresses that databases themselves use.
_OWN_SCHEMES = {"postgresql": "pgvector", "postgres": "pgvector", "redis": "redis", "rediss": "redis"}
_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):(?P<location>\S.*)", re.DOTALL)
# What is meant as an address, whether or not there is such a database: no sentence looks like this.
_ADDRESS = re.compile(
    r"[a-z]{2,}:(?!//)\S+#\S+|(?!https?:|ftp:)[a-z][a-z0-9+.-]+://\S+|[a-z][a-z0-9+.-]+://[^\s/@]*:\S*@\S+"
)

_MASK = "***"
_SECRET = re.compile(r"pass(?!file)|pwd|secret|token|credential|api.?key", re.IGNORECASE)
_URL = re.compile(r"([\w+.-]+:){1,2}//")
# Up to the last @: a password may hold one, too.
_USERINFO = re.compile(r"(?P<before>://[^:@/?#\s]*:).*(?=@)", re.DOTALL)
# Over HTTP, a user name alone is a token.
_TOKEN = re.compile(r"(?P<before>https?://)[^:@/?#\s]+(?=@)")
_PARAMETER = re.compile(r"(?<=[?&])(?P<key>[^=&#]+)(?P<equals>=)[^&#]*")
_SETTING = re.compile(
    r"""(?<![?&\w%])(?P<key>\w+)(?P<equals>\s*=\s*)('(?:\\.|''|[^'\\])*'?|(?:\\.|[^\s\\#])*)""", re.DOTALL
)


def is_vector_uri(name: str) -> bool:
    """Whether a name is meant as the address of vectors; the source need not exist."""
    return _split(name) is not None or bool(_ADDRESS.fullmatch(name))


def mask_passwords(address: str) -> str:
    """Return an address with stars for every password, token and key in it.

    Knows ``user:password@host``, ``?password=...`` (also with an encoded name), and ``password='...'`` among settings.
    """

    def mask(match: re.Match[str]) -> str:
        is_secret = _SECRET.search(unquote(match["key"]))
        return f"{match['key']}{match['equals']}{_MASK}" if is_secret else match[0]

    if _URL.match(address):
        for secret in (_USERINFO, _TOKEN):
            address = secret.sub(rf"\g<before>{_MASK}", address)
        address = _PARAMETER.sub(mask, address)
    return _SETTING.sub(mask, address)


def open_vectors(
    uri: str,
    *,
    column: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    batch_rows: int = 1024,
) -> VectorSource:
    """Open a source of vectors for reading; nothing is ever written to it.

    Args:
        uri: ``chroma:FOLDER#collection``, ``qdrant:FOLDER#collection``, ``qdrant:http://HOST:6333#collection``,
            ``faiss:FILE``, ``sqlite:FILE#table.column``, ``postgresql://...#table.column``, ``npy:FILE`` and so on
            (``docs/stores.md`` lists them), the path of a file of vectors, or what the connector of a plugin takes.
            Where there is only one collection or table, it need not be named.
        column: the field, column or named vector that holds the vectors, where there are several.
        id_column: the field that names each row, if it is not the database's own id.
        text_column: the field that holds the texts, if it is not called ``text`` or the like.
        batch_rows: vectors per batch.

    Raises:
        VectorError: the source cannot be read, with what to do about it.
        MissingExtraError: the library that reads such a source is not installed.
    """
    columns = Columns(column, id_column, text_column)
    split = _split(uri)
    if split is None:
        return _open_path(uri, columns, batch_rows)
    scheme, location = split
    if scheme in _FILES:
        return _read_file(location, columns, batch_rows)
    location, _, part = location.partition("#")
    source = _opener(scheme)(location, part or None, columns, batch_rows)
    return replace(source, name=mask_passwords(source.name))  # it becomes the title of a report


def _split(uri: str) -> tuple[str, str] | None:
    """Return the scheme and the location of an address; None where no connector has such a scheme."""
    match = _SCHEME.fullmatch(uri)
    if match is None:
        return None
    scheme = match["scheme"]
    if scheme in _OWN_SCHEMES and match["location"].startswith("//"):
        return _OWN_SCHEMES[scheme], uri
    known = scheme in _OPENERS or scheme in _FILES or scheme in plugin_names(CONNECTORS)
    return (scheme, match["location"]) if known else None


def _opener(scheme: str) -> Opener:
    if scheme in _OPENERS:  # first: no plugin can take the name of a connector that is built in
        module, name = _OPENERS[scheme].split(":")
        opener: Opener = getattr(import_module(module), name)
        return opener
    plugin: PluginOpener = load_plugin(CONNECTORS, scheme)
    if not callable(plugin):
        raise VectorError(f"The plugin '{scheme}' is not a connector.", "Update or uninstall its package.")

    def open_with_plugin(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
        replace(columns, vectors=None).refuse(f"The plugin '{scheme}' chooses ids and texts itself.")
        return plugin(location, part, columns.vectors, batch_rows)

    return open_with_plugin


def _read_file(path: str | Path, columns: Columns, batch_rows: int) -> VectorSource:
    return read_vectors(
        path, column=columns.vectors, id_column=columns.ids, text_column=columns.texts, batch_rows=batch_rows
    )


def _open_path(name: str, columns: Columns, batch_rows: int) -> VectorSource:
    path = Path(name)
    scheme = name.partition(":")[0]
    if ":" in name and len(scheme) > 1 and not path.exists():  # one letter is a drive of Windows
        schemes = [*_OPENERS, *_FILES, *plugin_names(CONNECTORS)]
        raise VectorError(
            f"There is no file {mask_passwords(name)}, and no kind of vector database '{scheme}': "
            f"{did_you_mean(scheme, schemes)}",
            "Check the address.",
        )
    if path.is_dir():
        known = next((scheme for file, scheme in _FOLDERS.items() if (path / file).is_file()), None)
        raise VectorError(
            f"{name} is a folder.",
            f"It looks like a vector database: {known}:{name}#COLLECTION"
            if known
            else f"Say what it is: {', '.join(f'{scheme}:' for scheme in _OPENERS)} before the path.",
        )
    if path.suffix in _ENDINGS:
        return _opener(_ENDINGS[path.suffix])(name, None, columns, batch_rows)
    return _read_file(path, columns, batch_rows)
