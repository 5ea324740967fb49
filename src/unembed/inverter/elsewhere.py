"""The same inverter in another process, perhaps on another machine. Knows nothing of what it is used for."""

from unembed.checkpoint import CheckpointInfo
from unembed.engine.loading import EngineName
from unembed.errors import CheckpointError
from unembed.inverter.inverter import Inverter


def load_inverter(model: str, device: str, info: CheckpointInfo, *, engine: EngineName = "torch") -> Inverter:
    """Load an inverter by its name, and make sure that it is the one that ``info`` describes."""
    inverter = Inverter.from_pretrained(model, device=device, engine=engine)
    if inverter.info != info:
        raise CheckpointError(
            f"A worker finds another inverter under the name {model} than the command.",
            "Copy the same one to every machine.",
        )
    return inverter
