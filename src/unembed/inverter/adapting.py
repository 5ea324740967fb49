"""From an inverter for one encoder to one for another. Knows nothing of decoding."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from unembed.adaptation import OwnTexts, Pairs, adapt_checkpoint, adapt_unpaired, embed_own, embed_pairs
from unembed.checkpoint import Checkpoint, checksum_of, fetch_checkpoint
from unembed.encoders import Encoder, EncoderDescription
from unembed.errors import ConfigError
from unembed.inverter.pretrained import PretrainedInverter
from unembed.progress import OnProgress


class AdaptableInverter(PretrainedInverter):
    """An inverter that can be turned into one for another encoder."""

    def adapt(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        *,
        others: Sequence[str] = (),
        own_encoder: Encoder | None = None,
        origin: str = "given by the user",
        seed: int = 0,
        on_progress: OnProgress = lambda label, more, total: None,
    ) -> Self:
        """Return an inverter for the vectors of another encoder, in minutes.

        Args:
            encoder: the other encoder.
            texts: from 50 to about 10,000; texts like those that will be read back are best.
            others: more such texts, which the other encoder is not asked for. They help where ``texts`` are few.
            own_encoder: the encoder of this inverter; by default it is loaded.
            origin: where the texts come from, for the record.
            seed: of folds and tuning.
            on_progress: called with what is being done, how many more are done, and of how many.
        """
        own_encoder = own_encoder or self.load_encoder()
        with tempfile.TemporaryDirectory() as temporary:
            pairs = embed_pairs(
                texts,
                encoder,
                own_encoder,
                Path(temporary) / "pairs",
                tokenizer=self.tokenizer,
                canvas_length=self.info.model.canvas_length,
                origin=origin,
                on_progress=on_progress,
            )
            own = None
            if others:
                own = embed_own(
                    others,
                    own_encoder,
                    Path(temporary) / "others",
                    tokenizer=self.tokenizer,
                    canvas_length=self.info.model.canvas_length,
                    origin=origin,
                    on_progress=on_progress,
                )
        return self.adapt_to(pairs, others=own, seed=seed, on_progress=on_progress)

    def adapt_to(
        self,
        pairs: Pairs,
        *,
        others: OwnTexts | None = None,
        quick: bool = False,
        seed: int = 0,
        on_progress: OnProgress = lambda label, more, total: None,
    ) -> Self:
        """Return an inverter for another encoder, given texts with vectors by both, and others with ours alone.

        ``quick`` takes a third of the time, and gives a slightly weaker inverter.
        """
        checkpoint = adapt_checkpoint(
            *self._base(), pairs, others=others, quick=quick, seed=seed, on_progress=on_progress
        )
        return self._adapted(checkpoint)

    def adapt_unpaired(
        self,
        vectors: np.ndarray,
        texts: Sequence[str],
        *,
        encoder: str = "unknown",
        own_encoder: Encoder | None = None,
        origin: str = "given by the user",
        seed: int = 0,
        on_progress: OnProgress = lambda label, more, total: None,
    ) -> Self:
        """Return an inverter for an encoder of which only vectors are at hand, without a text for any of them.

        Args:
            vectors: (n, d), at least 2,000 that differ; 10,000 or more are better.
            texts: other texts of the same kind as those that the vectors were made of; as many.
            encoder: what to call the encoder.
            own_encoder: the encoder of this inverter; by default it is loaded.
            origin: where the texts come from, for the record.
            seed: the same seed, vectors and texts give the same inverter.
            on_progress: called with what is being done, how many more are done, and of how many.

        Raises:
            AlignmentError: no map was found that deserves trust.
        """
        with tempfile.TemporaryDirectory() as temporary:
            own = embed_own(
                texts,
                own_encoder or self.load_encoder(),
                Path(temporary),
                tokenizer=self.tokenizer,
                canvas_length=self.info.model.canvas_length,
                origin=origin,
                on_progress=on_progress,
            )
        described = EncoderDescription.of_vectors(encoder, vectors)
        return self.adapt_unpaired_to(vectors, described, own, seed=seed, on_progress=on_progress)

    def adapt_unpaired_to(
        self,
        vectors: np.ndarray,
        encoder: EncoderDescription,
        own: OwnTexts,
        *,
        seed: int = 0,
        on_progress: OnProgress = lambda label, more, total: None,
    ) -> Self:
        """Return an inverter for another encoder, given its vectors, and other texts with our vectors."""
        return self._adapted(adapt_unpaired(*self._base(), vectors, encoder, own, seed=seed, on_progress=on_progress))

    def _base(self) -> tuple[Checkpoint, str, str]:
        """Return what an adapted inverter builds on: this one, its name and the checksum of its weights."""
        if self.adaptation or self.name is None:
            what = "is adapted itself" if self.adaptation else "has not been saved"
            raise ConfigError(f"This inverter {what}.", "Adapt one that was loaded with from_pretrained.")
        base = self._checkpoint()
        return base, self.name, checksum_of(fetch_checkpoint(self.name))

    def _adapted(self, checkpoint: Checkpoint) -> Self:
        return type(self)(
            checkpoint.model,
            checkpoint.tokenizer,
            checkpoint.info,
            adaptation=checkpoint.adaptation,
            known_words=checkpoint.known_words,
            ngrams=checkpoint.ngrams,
        )
