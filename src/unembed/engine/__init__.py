"""What runs the denoiser: torch itself, or an exported graph. Decoding knows only the protocol."""

from unembed.engine.base import Condition, Engine

__all__ = ["Condition", "Engine"]
