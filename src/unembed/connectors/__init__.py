"""Vectors in, from wherever they lie, as batches that fit into memory. Knows nothing of inverters."""

from unembed.connectors.files import is_vector_file, read_vectors
from unembed.connectors.lines import read_vector_lines
from unembed.connectors.source import VectorSource

__all__ = ["VectorSource", "is_vector_file", "read_vector_lines", "read_vectors"]
