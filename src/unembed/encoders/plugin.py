"""Encoders that other packages bring: the entry points ``unembed.encoders``. Knows none of them."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unembed.encoders.base import Encoder, EncoderDescription
from unembed.errors import ConfigError, EncoderError
from unembed.plugins import ENCODERS, load_plugin


@dataclass(frozen=True)
class EncoderPlugin:
    """What an entry point of the group ``unembed.encoders`` names."""

    load: Callable[..., Encoder]
    """Called with the encoder's whole name, and by keyword with what the user gave of ``device``, ``prompt``,
    ``revision``, ``task`` and ``truncate_dim``. An option that it has no parameter for is refused."""
    sends_texts: bool = True
    """Whether texts leave this machine. Then it runs only if the user names it, and never because a checkpoint does."""

    def load_encoder(self, name: str, options: dict[str, Any], device: str) -> Encoder:
        """Load an encoder with the options that were given."""
        given = {option: value for option, value in options.items() if value is not None}
        if device != "auto":
            given["device"] = device
        signature = inspect.signature(self.load)
        for option in given:
            try:
                signature.bind_partial(name, **{option: given[option]})
            except TypeError as error:
                raise ConfigError(
                    f"The encoder '{name}' does not support {option}.", f"Leave out `{option}`."
                ) from error
        encoder = self.load(name, **given)
        if not isinstance(getattr(encoder, "description", None), EncoderDescription):
            raise EncoderError(
                f"The plugin for '{name}' does not return an encoder.", "Update or uninstall its package."
            )
        return encoder


def find_plugin(name: str) -> EncoderPlugin | None:
    """Return the plugin for ``plugin`` or ``plugin:model``, None if no installed package has one."""
    key = name.partition(":")[0]
    plugin = load_plugin(ENCODERS, key) if key else None
    if plugin is not None and not isinstance(plugin, EncoderPlugin):
        raise EncoderError(
            f"The plugin '{key}' is not an unembed.encoders.EncoderPlugin.", "Update or uninstall its package."
        )
    return plugin
