"""Vectors in, from files and databases, as batches that fit into memory; read only. Knows nothing of inverters."""

from unembed.connectors.files import is_vector_file, read_vectors
from unembed.connectors.lines import read_vector_lines
from unembed.connectors.source import StorageInfo, VectorBatch, VectorSource
from unembed.connectors.uri import is_vector_uri, mask_passwords, open_vectors

__all__ = [
    "StorageInfo",
    "VectorBatch",
    "VectorSource",
    "is_vector_file",
    "is_vector_uri",
    "mask_passwords",
    "open_vectors",
    "read_vector_lines",
    "read_vectors",
]
