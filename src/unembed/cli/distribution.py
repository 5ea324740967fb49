"""``--ray`` and ``--workers``: where a command works on its shards. Knows nothing of what they hold."""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from unembed.errors import ConfigError, require_extra

if TYPE_CHECKING:
    from unembed.distribution import MapShards

RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|ADDRESS",
        help="Work on the machines of a Ray cluster, named by HOST:PORT. auto takes the one that runs on this machine, "
        "or starts one with all of its cores.",
        show_default="in this process",
    ),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="With --ray: how many processes work.", show_default="one for each core of the cluster"
    ),
]


def check_cluster(ray: str | None, workers: int | None) -> None:
    """Raise at once if Ray is wanted and not installed, or if workers are counted without it."""
    if ray is not None:
        require_extra("ray", "ray", "pyarrow")
    elif workers is not None:
        raise ConfigError("--workers is for a Ray cluster.", "Also give --ray auto, or leave it out.")


def shards_on(ray: str | None, workers: int | None, device: str) -> "AbstractContextManager[MapShards]":
    """Return what works on shards: this process, or a Ray cluster while the context lasts."""
    from unembed.distribution import map_here, ray_cluster

    if ray is None:
        return nullcontext(map_here)
    return ray_cluster(ray, workers=workers, gpu=device.startswith("cuda"))
