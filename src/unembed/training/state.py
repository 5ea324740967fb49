"""The full state of a training run, saved and restored exactly: one safetensors file, never pickle."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.optim import Optimizer

from unembed.checkpoint import rename_old_weights
from unembed.errors import TrainingError, first_line
from unembed.files import write_bytes

FILE = "state.safetensors"


def save_state(
    run: Path, model: nn.Module, average: nn.Module, optimisers: list[Optimizer], facts: dict[str, Any]
) -> None:
    """Write ``run/state.safetensors``; the previous one stays until the new one is whole."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in average.state_dict().items()}
    numbers: dict[str, Any] = {}
    for number, optimiser in enumerate(optimisers):
        for index, values in optimiser.state_dict()["state"].items():
            for name, value in values.items():
                (tensors if isinstance(value, Tensor) else numbers)[f"optimiser.{number}.{index}.{name}"] = value
    # Cloned, since safetensors refuses tensors that share memory.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_bytes(run / FILE, save(tensors, {"facts": json.dumps(facts), "numbers": json.dumps(numbers)}))


def has_state(run: Path) -> bool:
    """Whether there is something to resume."""
    return (run / FILE).is_file()


def load_state(run: Path, model: nn.Module, average: nn.Module, optimisers: list[Optimizer]) -> dict[str, Any]:
    """Restore a state that :func:`save_state` wrote, and return its facts."""
    path = run / FILE
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            metadata = {key: json.loads(value) for key, value in file.metadata().items()}
        model.load_state_dict(rename_old_weights(_under(tensors, "model.")))
        average.load_state_dict(rename_old_weights(_under(tensors, "average."), "module."))
        for number, optimiser in enumerate(optimisers):
            state: dict[int, dict[str, Any]] = {}
            for key, value in _under(tensors | metadata["numbers"], f"optimiser.{number}.").items():
                index, _, name = key.partition(".")
                state.setdefault(int(index), {})[name] = value
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    except (OSError, SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise TrainingError(
            f"The state in {path} cannot be resumed: {first_line(error)}",
            "It belongs to another recipe or is damaged. Give another training.output, or remove the file.",
        ) from error
    facts: dict[str, Any] = metadata["facts"]
    return facts


def _under(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
