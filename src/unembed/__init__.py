"""Read the text back out of an embedding vector.

>>> from unembed import Inverter, load_encoder
>>> inverter = Inverter.default()
>>> inverter.invert_text(["Embeddings are not anonymous."], encoder=load_encoder())
"""

from typing import TYPE_CHECKING, Any

from unembed._version import __version__

if TYPE_CHECKING:
    from unembed.auditing import Audit, audit
    from unembed.encoders import Encoder, load_encoder
    from unembed.inverter import Inversion, Inverter

__all__ = ["Audit", "Encoder", "Inversion", "Inverter", "__version__", "audit", "load_encoder"]

_HOMES = {
    "Audit": "unembed.auditing",
    "Encoder": "unembed.encoders",
    "Inversion": "unembed.inverter",
    "Inverter": "unembed.inverter",
    "audit": "unembed.auditing",
    "load_encoder": "unembed.encoders",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: torch takes seconds, ``unembed --version`` must not."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'unembed' has no attribute '{name}'")
