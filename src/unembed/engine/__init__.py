"""What runs the denoiser: torch itself, or an exported graph. Decoding knows only the protocol."""

from unembed.engine.base import Condition, Engine
from unembed.engine.loading import ENGINES, EngineName, load_engine
from unembed.engine.wrapped import MappedEngine, WrappedEngine

__all__ = ["ENGINES", "Condition", "Engine", "EngineName", "MappedEngine", "WrappedEngine", "load_engine"]
