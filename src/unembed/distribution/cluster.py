"""Shards on the workers of a Ray cluster, through Ray Data. Knows nothing of what is read or worked out.

One reader, on the machine where the command runs, opens the input and yields a shard per block. Workers with a core
each take the next shard as soon as they are free. Ray Data holds back the reader while the workers are busy, starts a
worker again that has died, and gives its shards to a worker once more. Results go back to the command, which alone
writes: machines need no common disk, and there is no file with two writers.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from unembed._version import __version__
from unembed.distribution.folders import enter
from unembed.distribution.packing import pack, pack_error, unpack
from unembed.distribution.shards import MakeWorker, MapShards, ReadShards, Shard, Values, Worker
from unembed.errors import ClusterError, UnembedError, first_line, require_extra

AUTO = "auto"
"""The address of the cluster that runs on this machine; if there is none, one is started for as long as it is used."""
_CONNECT_SECONDS = 5.0
# The reader may be ahead of the workers by so much.
_BYTES_AHEAD, _BYTES_AHEAD_OF_EACH = 256 << 20, 64 << 20
# The next shard is already there when a worker has finished one.
_SHARDS_PER_WORKER = 2


@contextmanager
def ray_cluster(address: str, *, workers: int | None = None, gpu: bool = False) -> Iterator[MapShards]:
    """Connect to a Ray cluster, and yield what works on shards there.

    Args:
        address: ``HOST:PORT``, or ``auto``.
        workers: how many processes work; by default one for each core of the cluster.
        gpu: give each worker a GPU; then there is one for each GPU by default.

    Raises:
        ClusterError: there is no cluster at this address.
        MissingExtraError: Ray is not installed.
    """
    require_extra("ray", "ray", "pyarrow")
    import ray

    ours = not ray.is_initialized()
    if ours:
        _connect(address)
    try:
        resources = ray.cluster_resources()
        available = int(resources.get("GPU" if gpu else "CPU", 0))
        if not available:
            raise ClusterError(
                f"The cluster has no {'GPU' if gpu else 'core'} for a worker.", "Add a machine to it: ray start"
            )
        yield partial(_map, workers or available, gpu)
    finally:
        if ours:
            ray.shutdown()


def _connect(address: str) -> None:
    import ray

    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == AUTO:
        try:
            ray.init(address=AUTO, **quiet)
        except ConnectionError:
            ray.init(address="local", include_dashboard=False, **quiet)
        return
    _check_port(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise ClusterError(f"Cannot join the Ray cluster at {address}: {first_line(error)}", _REMEDY) from error


def _check_port(address: str) -> None:
    """Raise unless something listens there: Ray itself would try for a minute, and then end the process."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "//" in host:
        raise ClusterError(f"'{address}' is not the address of a Ray cluster.", _REMEDY)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"There is no Ray cluster at {address}: {first_line(error)}", _REMEDY) from error


def _map(workers: int, gpu: bool, read: ReadShards, make_worker: MakeWorker) -> Iterator[Shard]:
    import ray
    from ray.data import ActorPoolStrategy, DataContext, ExecutionResources, read_datasource
    from ray.exceptions import RayError, RayTaskError

    from unembed.distribution.reading import ShardSource

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current().copy()
    context.target_max_block_size = 1  # a shard is a block of its own, whatever its size
    context.enable_progress_bars = context.print_on_execution_start = False
    ahead = max(_BYTES_AHEAD, workers * _BYTES_AHEAD_OF_EACH)
    context.execution_options.resource_limits = ExecutionResources(object_store_memory=ahead)
    here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
    with DataContext.current(context):
        shards = read_datasource(ShardSource(read, Path.cwd()), override_num_blocks=1, num_cpus=0, label_selector=here)
        results = shards.map(
            _RemoteWorker,
            fn_constructor_args=(make_worker, __version__, Path.cwd()),
            compute=ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=_SHARDS_PER_WORKER),
            num_cpus=1,
            num_gpus=1 if gpu else 0,
        )
        blocks = iter(results.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"))
        while True:
            try:
                block = next(blocks, None)
            except RayTaskError:  # our own code failed there
                raise
            except RayError as error:
                raise ClusterError(
                    f"The Ray cluster failed: {first_line(error)}",
                    "What is finished is kept. Run the same command again to continue.",
                ) from error
            if block is None:
                return
            yield from map(unpack, block.to_pylist())


class _RemoteWorker:
    """A worker in a process of Ray. A user's mistake comes back as a result; anything else is raised there."""

    def __init__(self, make_worker: MakeWorker, version: str, folder: Path) -> None:
        enter(folder)
        try:
            if version != __version__:
                raise ClusterError(
                    f"A machine of the cluster has unembed {__version__}, and this one has {version}.",
                    "Install the same version everywhere.",
                )
            self._work: Worker = make_worker()
        except UnembedError as error:
            self._work = partial(_fail, error)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Work on a shard."""
        try:
            number, values = unpack(row)
            return pack(number, self._work(values))
        except UnembedError as error:
            return pack_error(error)


def _fail(error: UnembedError, _values: Values) -> Values:
    raise error


_REMEDY = (
    "Type `unembed ... --ray HOST:PORT`, with the address that ray start --head prints, or `--ray auto`, which finds "
    "or starts a cluster on this machine."
)
