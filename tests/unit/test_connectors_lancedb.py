"""Vectors of LanceDB tables."""

import json

from stores import TEXTS, VECTORS
from unembed.connectors import open_vectors


def test_lancedb_names_the_encoder_of_its_own_registry(tmp_path):
    import lancedb
    import pyarrow

    functions = [
        {
            "name": "sentence-transformers",
            "model": {"name": "all-mpnet-base-v2"},
            "source_column": "text",
            "vector_column": "vector",
        }
    ]
    fields = [pyarrow.field("text", pyarrow.string()), pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), 8))]
    schema = pyarrow.schema(fields, metadata={"embedding_functions": json.dumps(functions)})
    table = pyarrow.table({"text": TEXTS, "vector": pyarrow.array(VECTORS.tolist(), fields[1].type)}, schema=schema)
    lancedb.connect(tmp_path / "store").create_table("docs", table)
    assert open_vectors(f"lancedb:{tmp_path / 'store'}").storage.encoder == "all-mpnet-base-v2"
