"""From a name to an engine. Nothing but what the name asks for is imported."""

from pathlib import Path
from typing import Literal, get_args

from unembed.engine.base import Engine
from unembed.errors import ConfigError, did_you_mean
from unembed.model import ConditionalMDLM

EngineName = Literal["torch", "onnx"]
ENGINES: tuple[str, ...] = get_args(EngineName)


def load_engine(name: EngineName, folder: Path, model: ConditionalMDLM) -> Engine:
    """Return what runs a model that was loaded from ``folder``: the model itself, or graphs that lie there."""
    if name not in ENGINES:
        raise ConfigError(
            f"There is no engine '{name}': {did_you_mean(name, ENGINES)}", "Choose torch, which runs everywhere."
        )
    if name == "torch":
        return model.lay_out_for_decoding()
    from unembed.engine.onnx import OnnxEngine

    return OnnxEngine.load(folder, model)
