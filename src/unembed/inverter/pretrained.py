"""What an inverter is made of, where it is loaded from, and whose vectors it reads. Knows nothing of decoding."""

import logging
import tempfile
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from tokenizers import Tokenizer

from unembed.checkpoint import (
    DEFAULT,
    Adaptation,
    Checkpoint,
    CheckpointInfo,
    WeightPrecision,
    fetch_checkpoint,
    installed_inverters,
    open_checkpoint,
    push_checkpoint,
    save_adaptation,
    save_checkpoint,
)
from unembed.encoders import Encoder, load_described_encoder
from unembed.engine import Engine, EngineName, MappedEngine, load_engine
from unembed.errors import CheckpointError, ConfigError, EncoderError
from unembed.inverter.vectors import (
    LENGTH_QUANTILES,
    Embeddings,
    check_vectors,
    describe_long_texts,
    describe_scale,
    find_doubts,
)
from unembed.model import ConditionalMDLM, NGrams, NoiseSchedule
from unembed.model.packing import TABLES

logger = logging.getLogger(__name__)

# What of an encoder's description decides which vectors it makes; another revision may make the same ones.
_DECISIVE = ("name", "prompt", "task", "dim")


class PretrainedInverter:
    """A model for the vectors of one encoder, with all that belongs to it."""

    def __init__(
        self,
        model: ConditionalMDLM,
        tokenizer: Tokenizer,
        info: CheckpointInfo,
        engine: Engine | None = None,
        adaptation: Adaptation | None = None,
        known_words: Sequence[str] = (),
        ngrams: bytes = b"",
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.info = info
        self.adaptation = adaptation
        """What makes it read the vectors of another encoder than the model was trained for."""
        self.known_words = tuple(known_words)
        """Words of the training texts, the commonest first; empty where they are not known."""
        self._ngrams = ngrams
        self.name: str | None = None
        """What it was loaded from: the name of an installed inverter, or a folder."""
        self.noise = NoiseSchedule(info.noise)
        own: Engine = engine or self.model.lay_out_for_decoding()
        self.engine: Engine = MappedEngine(own, adaptation.there) if adaptation else own
        """What runs the denoiser: the model itself, or an exported graph of it."""

    @classmethod
    def default(cls, *, device: str = "auto") -> Self:
        """Load the inverter that comes with the package: for all-MiniLM-L6-v2, without a download."""
        return cls.from_pretrained(DEFAULT, device=device)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        device: str = "auto",
        engine: EngineName = "torch",
        revision: str | None = None,
        token: str | None = None,
        cache_dir: Path | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Load an inverter by its name, from a folder or from the hub.

        Args:
            name: one that ``unembed inverters`` lists, such as ``default``; a folder; or a hub id.
            device: ``auto`` takes a GPU where there is one.
            engine: what runs the denoiser. ``onnx`` needs a folder that ``unembed export`` wrote, and runs on the CPU.
            revision: of the hub repository; so are the others.
            token: for private repositories.
            cache_dir: where downloads are kept.
            local_files_only: whether to use the local copy only.
        """
        folder = fetch_checkpoint(
            str(name), revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only
        )
        checkpoint = open_checkpoint(folder)
        if engine != "torch" and checkpoint.adaptation:
            raise ConfigError(f"{folder} is an adapted inverter, which runs in torch only.", "Leave out the engine.")
        runner = load_engine(engine, folder, checkpoint.model)
        if engine == "onnx":
            if device not in ("auto", "cpu"):
                raise ConfigError(f"The onnx engine runs on the CPU, not on '{device}'.", "Leave out the device.")
            device = "cpu"
        inverter = cls(
            checkpoint.model,
            checkpoint.tokenizer,
            checkpoint.info,
            runner,
            checkpoint.adaptation,
            checkpoint.known_words,
            checkpoint.ngrams,
        )
        inverter.name = str(name) if str(name) in installed_inverters() else str(folder.resolve())
        return inverter.to(device)

    def save_pretrained(
        self, folder: str | Path, precision: WeightPrecision = "float32", in_8_bits: Collection[str] = TABLES
    ) -> None:
        """Write ``config.json``, ``model.safetensors``, ``tokenizer.json`` and a model card.

        ``precision="compact"`` stores float16, and in 8 bits the matrices that ``in_8_bits`` names: by default the
        tables with a row per token, ``("*",)`` for all matrices. Loading gives float32. Of an adapted inverter only
        the adaptation is written: it names its base.
        """
        if self.adaptation:
            save_adaptation(Path(folder), self.adaptation)
            return
        save_checkpoint(Path(folder), self._checkpoint(), precision, in_8_bits)

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.model, self.tokenizer, self.info, known_words=self.known_words, ngrams=self._ngrams)

    def push_to_hub(
        self, name: str, *, private: bool = False, token: str | None = None, message: str = "Upload an inverter"
    ) -> str:
        """Upload the inverter to a hub repository; return the address of the commit."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "inverter"
            self.save_pretrained(folder)
            return push_checkpoint(folder, name, private=private, token=token, message=message)

    @cached_property
    def ngrams(self) -> NGrams | None:
        """Which tokens follow which in the training texts; None where that is not known."""
        if not self._ngrams:
            return None
        ngrams = NGrams.from_bytes(self._ngrams)
        if ngrams.vocabulary != self.info.vocabulary.size:
            raise CheckpointError(
                "The inverter's n-grams are those of another vocabulary.", "Copy or download the whole folder again."
            )
        return ngrams

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.denoiser.output_bias.device

    def to(self, device: str) -> Self:
        """Move the weights; ``auto`` takes a GPU where there is one."""
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        try:
            self.model.to(device)
            if self.adaptation:
                self.adaptation.there.to(device)
                self.adaptation.back.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"The device '{device}' cannot be used: {error}", 'Try `device="cpu"`.') from error
        return self

    def map_vectors(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return vectors (n, d) as the model reads them: in an adapted inverter, mapped to its base's encoder."""
        return self.adaptation.there(vectors) if self.adaptation else vectors

    def load_encoder(self, location: str | None = None, *, device: str = "auto") -> Encoder:
        """Load the encoder whose vectors this inverter reads, with its prompt, task, dimension and revision.

        Args:
            location: where it is, if not where its name says: a folder, a hub id, an address. Texts are sent to an
                address only if it is given here: the address in a checkpoint may be anybody's.
            device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        """
        encoder = load_described_encoder(self.info.encoder, location=location, device=device)
        self.check_encoder(encoder)
        return encoder

    def check_encoder(self, encoder: Encoder) -> None:
        """Refuse an encoder that makes other vectors than this inverter reads."""
        expected, given = self.info.encoder, encoder.description
        differing = self._differences(encoder)
        if differing:
            wanted, got = (
                f"'{side.name}' ({', '.join(f'{key}: {getattr(side, key)!r}' for key in differing if key != 'name')})"
                for side in (expected, given)
            )
            raise EncoderError(
                f"This inverter reads vectors of {wanted}, not of {got}.".replace(" ()", ""),
                f"Use load_encoder({expected.name!r}, prompt={expected.prompt!r}, revision={expected.revision!r}, "
                f"truncate_dim={expected.truncate_dim!r}, task={expected.task!r}).",
            )
        if expected.revision != given.revision:
            logger.warning("The inverter was trained for revision %s, not %s.", expected.revision, given.revision)

    def reads(self, encoder: Encoder) -> bool:
        """Whether the vectors of an encoder are those that this inverter reads."""
        return not self._differences(encoder)

    def _differences(self, encoder: Encoder) -> list[str]:
        expected, given = self.info.encoder, encoder.description
        return [key for key in _DECISIVE if getattr(expected, key) != getattr(given, key)]

    def warnings(self, vectors: np.ndarray) -> list[str]:
        """Return reasons not to trust the texts of vectors (n, d); empty in most cases.

        Vectors that do not look like the encoder's give fluent texts that mean nothing.
        """
        doubts = find_doubts(vectors, self.info)
        if not doubts:
            return []
        verb = "vector does" if len(vectors) == 1 else "vectors do"
        return [
            f"The {verb} not look like those of {self.info.encoder.name}, which this inverter was trained on: "
            f"{'; '.join(doubts)}. If another encoder made such a vector, or it was changed, its text means nothing."
        ]

    def notices(self, vectors: np.ndarray) -> list[str]:
        """Return what to know about the texts of vectors (n, d): that they are longer than this inverter writes."""
        return describe_long_texts(self.text_lengths(vectors), self.info.model.canvas_length)

    def text_lengths(self, embeddings: Embeddings) -> np.ndarray | None:
        """Estimate how many tokens each text has, also where that is more than the inverter writes.

        Returns:
            (n, 3): the least, the middle and the most, between which 80 % of such texts lie; None if it cannot tell.
        """
        vectors = torch.from_numpy(check_vectors(embeddings, self.info)).to(self.device)
        lengths = self.model.text_lengths(self.map_vectors(vectors), LENGTH_QUANTILES)
        return None if lengths is None else lengths.cpu().numpy()

    def describe_scale(self, vectors: np.ndarray) -> str | None:
        """Say by what factor vectors (n, d) were multiplied for storage; None if they were not."""
        return describe_scale(vectors, self.info)
