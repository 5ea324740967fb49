"""Work on numbered shards, in this process or on the machines of a Ray cluster. Knows nothing of what a shard holds."""

from unembed.distribution.cluster import ray_cluster
from unembed.distribution.shards import MakeWorker, MapShards, ReadShards, Shard, Values, Worker, in_order, map_here

__all__ = [
    "MakeWorker",
    "MapShards",
    "ReadShards",
    "Shard",
    "Values",
    "Worker",
    "in_order",
    "map_here",
    "ray_cluster",
]
