"""The full state of a training run, saved and restored exactly. Safetensors and JSON, never pickle."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from unembed.errors import TrainingError, first_line
from unembed.files import atomic_folder, write_json

_FOLDER = "state"
_TENSORS = "state.safetensors"
_FACTS = "state.json"


def save_state(
    run: Path, model: nn.Module, average: nn.Module, optimisers: list[Optimizer], facts: dict[str, Any]
) -> None:
    """Write the state to ``run/state``; the previous one stays until the new one is whole."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in average.state_dict().items()}
    scalars: dict[str, Any] = {}
    for number, optimiser in enumerate(optimisers):
        for index, values in optimiser.state_dict()["state"].items():
            for name, value in values.items():
                key = f"optimiser.{number}.{index}.{name}"
                if isinstance(value, Tensor):
                    tensors[key] = value
                else:
                    scalars[key] = value
    # Cloned, since safetensors refuses tensors that share memory.
    with atomic_folder(run / _FOLDER) as folder:
        save_file(
            {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, folder / _TENSORS
        )
        write_json(folder / _FACTS, {"facts": facts, "scalars": scalars})


def has_state(run: Path) -> bool:
    """Whether there is something to resume."""
    return (run / _FOLDER / _FACTS).is_file()


def load_state(run: Path, model: nn.Module, average: nn.Module, optimisers: list[Optimizer]) -> dict[str, Any]:
    """Restore a state that :func:`save_state` wrote, and return its facts."""
    folder = run / _FOLDER
    try:
        tensors = load_file(folder / _TENSORS)
        saved = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        model.load_state_dict(_under(tensors, "model."))
        average.load_state_dict(_under(tensors, "average."))
        for number, optimiser in enumerate(optimisers):
            state: dict[int, dict[str, Any]] = {}
            own = _under(tensors, f"optimiser.{number}.") | _under(saved["scalars"], f"optimiser.{number}.")
            for key, value in own.items():
                index, _, name = key.partition(".")
                state.setdefault(int(index), {})[name] = value
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    except (OSError, SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise TrainingError(
            f"The state in {folder} cannot be resumed: {first_line(error)}",
            "It belongs to another recipe or is damaged. Give another training.output, or remove the folder.",
        ) from error
    facts: dict[str, Any] = saved["facts"]
    return facts


def _under(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
