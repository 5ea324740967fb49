"""Shards as a data source of Ray Data: one read task, a block per shard. Imported only where Ray is installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from unembed.distribution.folders import enter
from unembed.distribution.packing import pack, pack_error
from unembed.distribution.shards import ReadShards
from unembed.errors import UnembedError


class ShardSource(Datasource):  # type: ignore[misc]
    """Reads shards one after the other, as fast as they are taken."""

    def __init__(self, read: ReadShards, folder: Path) -> None:
        """Take what reads them, and the folder that its paths are relative to."""
        self._read = read
        self._folder = folder

    def get_name(self) -> str:
        """Return what the task is called in Ray's own tools."""
        return "Shards"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return nothing: how many shards there are is not known before they are read."""
        return None

    def get_read_tasks(self, parallelism: int, *_arguments: Any, **_options: Any) -> list[ReadTask]:
        """Return the one task: most stores can only be read from their beginning."""
        read, folder = self._read, self._folder

        def blocks() -> Iterator[pa.Table]:
            enter(folder)
            try:
                for number, values in read():
                    yield pa.Table.from_pylist([pack(number, values)], _SCHEMA)
            except UnembedError as error:
                yield pa.Table.from_pylist([pack_error(error)], _SCHEMA)

        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(blocks, unknown)]


_SCHEMA = pa.schema([("number", pa.int64()), ("content", pa.large_binary())])
