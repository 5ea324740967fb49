"""Vectors in, from wherever they lie, as batches that fit into memory; read only. Knows nothing of inverters."""

from unembed.connectors.files import is_vector_file, read_vectors
from unembed.connectors.lines import read_vector_lines
from unembed.connectors.source import Batch, Keeping, VectorSource
from unembed.connectors.uri import is_store_uri, open_vectors

__all__ = [
    "Batch",
    "Keeping",
    "VectorSource",
    "is_store_uri",
    "is_vector_file",
    "open_vectors",
    "read_vector_lines",
    "read_vectors",
]
