"""A fitted chain in a file: its keys, seeds and tables. Safetensors, readable by its owner only; never pickle."""

import json
from hashlib import blake2b
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from unembed.defences.chain import Chain, parse_chain
from unembed.errors import ConfigError, first_line
from unembed.files import atomic_path

_FORMAT = "unembed-defence-1"


def write_chain(path: Path, chain: Chain, more: dict[str, str] | None = None) -> None:
    """Write a chain to a file that its owner alone can read, with ``more`` facts about it."""
    facts = {"format": _FORMAT, "chain": str(chain), "dim": str(chain.dim)} | (more or {})
    # JSON, because safetensors stores texts only.
    with atomic_path(path, private=True) as temporary:
        temporary.write_bytes(save(_arrays(chain), {"unembed": json.dumps(facts)}))


def read_chain(path: Path) -> Chain:
    """Read a chain that :func:`write_chain` wrote."""
    return read_chain_facts(path)[0]


def read_chain_facts(path: Path) -> tuple[Chain, dict[str, str]]:
    """Read a chain that :func:`write_chain` wrote, and the facts about it.

    Raises:
        ConfigError: there is no such file, or it is something else.
    """
    if not path.is_file():
        raise ConfigError(f"There is no key file {path}.", "Check the path.")
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})["unembed"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if facts["format"] != _FORMAT:
            raise KeyError(facts["format"])
        steps, dim = parse_chain(facts["chain"]), int(facts["dim"])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a key file of unembed defend: {first_line(error)}.", "Give the file that it wrote."
        ) from error
    transforms = []
    for number, step in enumerate(steps):
        state = {name.split(".", 1)[1]: each for name, each in arrays.items() if name.startswith(f"{number}.")}
        transforms.append(step.kind(step.value, state))
    return Chain(tuple(transforms), dim), facts


def identity_of(chain: Chain) -> str:
    """Return a short name for a chain with its keys. Nothing of a key can be learnt from it.

    The seeds of fresh noise do not count: they differ from release to release.
    """
    digest = blake2b(f"{chain} {chain.dim}".encode(), digest_size=8)
    for name, array in sorted(_arrays(chain).items()):
        if chain.transforms[int(name.split(".", 1)[0])].fresh:
            continue
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def _arrays(chain: Chain) -> dict[str, np.ndarray]:
    return {
        f"{number}.{name}": np.ascontiguousarray(array)
        for number, transform in enumerate(chain.transforms)
        for name, array in transform.state.items()
    }
