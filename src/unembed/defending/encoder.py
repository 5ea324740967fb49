"""An encoder whose vectors pass through the public part of a defence: what a search attacker compares with."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from unembed.defences import Chain
from unembed.encoders import Encoder, EncoderDescription, can_substitute, quicker


class DefendedEncoder:
    """Gives each text the vector that the defended store would hold for it, as far as an attacker can know."""

    def __init__(
        self,
        encoder: Encoder,
        chain: Chain,
        description: EncoderDescription,
        to_original: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """Wrap an encoder.

        Args:
            encoder: the one that made the vectors.
            chain: what was done to them; its public part is applied.
            description: of the defended vectors.
            to_original: from defended vectors to the encoder's own space, for its gradient.
        """
        self._encoder = encoder
        self._chain = chain
        self.description = description
        self._to_original = to_original

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The encoder's own."""
        return self._encoder.tokenizer

    @property
    def supports_substitutions(self) -> bool:
        """Whether the encoder has a gradient."""
        return can_substitute(self._encoder)

    def quicker(self) -> "DefendedEncoder":
        """Return the same for the quicker form of the encoder."""
        quick = quicker(self._encoder)
        if quick is self._encoder:
            return self
        return DefendedEncoder(quick, self._chain, self.description, self._to_original)

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one defended row per sentence."""
        return self._chain.known_part(
            self._encoder.encode(sentences, batch_size=batch_size, show_progress_bar=show_progress_bar)
        )

    def substitutions(self, sentences: Sequence[str], targets: np.ndarray, top: int, **options: Any) -> Any:
        """Ask the encoder for its gradient towards where the targets probably were before the defence."""
        assert can_substitute(self._encoder)
        return self._encoder.substitutions(sentences, self._to_original(targets), top, **options)
