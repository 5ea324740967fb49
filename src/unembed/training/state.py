"""The state of a training run or of one of its stages, saved and restored exactly: safetensors, never pickle."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from unembed.checkpoint import rename_old_weights
from unembed.errors import TrainingError, first_line
from unembed.files import write_bytes

RUN_FILE = "state.safetensors"
STAGE_FILES = "*-state.safetensors"
"""Of the stages before the steps and after them; gone once the run's own state has their result."""


def save_state(
    path: Path, modules: Mapping[str, nn.Module], optimisers: Sequence[Optimizer], facts: dict[str, Any]
) -> None:
    """Write modules, optimisers and facts to one file; the previous one stays until the new one is whole."""
    tensors = {
        f"{prefix}.{name}": tensor for prefix, module in modules.items() for name, tensor in module.state_dict().items()
    }
    numbers: dict[str, Any] = {}
    for number, optimiser in enumerate(optimisers):
        for index, values in optimiser.state_dict()["state"].items():
            for name, value in values.items():
                (tensors if isinstance(value, Tensor) else numbers)[f"optimiser.{number}.{index}.{name}"] = value
    # Cloned, since safetensors refuses tensors that share memory.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_bytes(path, save(tensors, {"facts": json.dumps(facts), "numbers": json.dumps(numbers)}))


def has_state(run: Path) -> bool:
    """Whether there is something to resume: steps, or part of a stage before them."""
    return (run / RUN_FILE).is_file() or any(run.glob(STAGE_FILES))


def load_state(path: Path, modules: Mapping[str, nn.Module], optimisers: Sequence[Optimizer]) -> dict[str, Any]:
    """Restore a state that :func:`save_state` wrote, and return its facts."""
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            metadata = {key: json.loads(value) for key, value in file.metadata().items()}
        for prefix, module in modules.items():
            wrapped = "module." if isinstance(module, AveragedModel) else ""
            module.load_state_dict(rename_old_weights(_under(tensors, f"{prefix}."), wrapped))
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
