"""The inverter: vectors in, texts out. Joins a checkpoint with a decoder; the face of the library."""

import logging
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from tokenizers import Tokenizer

from unembed.adaptation import OwnTexts, Pairs, adapt_checkpoint, adapt_unpaired, embed_own, embed_pairs
from unembed.canvas import RoundTrip, fit_text
from unembed.checkpoint import (
    DEFAULT,
    Adaptation,
    Checkpoint,
    CheckpointInfo,
    WeightPrecision,
    checksum_of,
    fetch_checkpoint,
    installed_inverters,
    open_checkpoint,
    push_checkpoint,
    save_adaptation,
    save_checkpoint,
)
from unembed.config import BATCHES_AT_ONCE, SEARCHES, ZERO, AnyStrategy, DecodingConfig, parse
from unembed.decoding import (
    SearchRounds,
    Step,
    SurrogateEncoder,
    TextOracle,
    WordBank,
    ZeroTools,
    decode,
    decode_zero,
    load_language_model,
)
from unembed.encoders import EncoderDescription
from unembed.engine import Engine, EngineName, MappedEngine, load_engine
from unembed.errors import ConfigError, EncoderError, VectorError
from unembed.measures.vectors import find_faults
from unembed.model import ConditionalMDLM, NoiseSchedule
from unembed.model.packing import TABLES
from unembed.progress import OnProgress
from unembed.store.fingerprint import describe_scale, doubtful_lengths
from unembed.text import well_formed

if TYPE_CHECKING:
    from unembed.encoders import Encoder

logger = logging.getLogger(__name__)

# What of an encoder's description decides which vectors it makes; another revision may make the same ones.
_DECISIVE = ("name", "prompt", "task", "dim")


@dataclass(frozen=True)
class Inversion:
    """What was read out of one vector."""

    text: str
    ids: list[int]
    """The text's tokens, as the inverter's tokenizer numbers them."""
    tokens: list[str]
    """The same tokens by name."""
    confidences: list[float]
    """Probability of each token when it was revealed."""
    strategy: str
    passes: int
    """Passes of the denoiser over canvases of this text."""
    score: float
    """The model's own score of the text; if texts were embedded, the cosine of its vector with the one given."""
    encoder_calls: int = 0
    """Texts that the encoder embedded on the way; 0 when it was not asked."""
    surrogate_calls: int = 0
    """Texts that its surrogate embedded on the way."""

    @property
    def confidence(self) -> float:
        """Mean confidence over the tokens."""
        return sum(self.confidences) / max(1, len(self.confidences))


class Inverter:
    """Reads text out of the vectors of one encoder."""

    def __init__(
        self,
        model: ConditionalMDLM,
        tokenizer: Tokenizer,
        info: CheckpointInfo,
        engine: Engine | None = None,
        adaptation: Adaptation | None = None,
        known_words: Sequence[str] = (),
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.info = info
        self.adaptation = adaptation
        """What makes it read the vectors of another encoder than the model was trained for."""
        self.known_words = tuple(known_words)
        """Words of the training texts, the commonest first; empty where they are not known."""
        self.name: str | None = None
        """What it was loaded from: the name of an installed inverter, or a folder."""
        self.noise = NoiseSchedule(info.noise)
        own: Engine = engine or self.model.lay_out_for_decoding()
        self.engine: Engine = MappedEngine(own, adaptation.there) if adaptation else own
        """What runs the denoiser: the model itself, or an exported graph of it."""
        self._warned = False
        self._oracle: TextOracle | None = None
        self._zero: tuple[Encoder, str | None, ZeroTools] | None = None

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
        checkpoint = Checkpoint(self.model, self.tokenizer, self.info, known_words=self.known_words)
        save_checkpoint(Path(folder), checkpoint, precision, in_8_bits)

    def push_to_hub(
        self, name: str, *, private: bool = False, token: str | None = None, message: str = "Upload an inverter"
    ) -> str:
        """Upload the inverter to a hub repository; return the address of the commit."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "inverter"
            self.save_pretrained(folder)
            return push_checkpoint(folder, name, private=private, token=token, message=message)

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
        # Both hold a copy of the surrogate, on the device of before.
        self.__dict__.pop("surrogate", None)
        self._oracle = self._zero = None
        return self

    def invert(
        self,
        embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]",
        options: DecodingConfig | None = None,
        *,
        lengths: Sequence[int] | None = None,
        encoder: "Encoder | None" = None,
        batch_size: int = 64,
        **changes: Any,
    ) -> list[Inversion]:
        """Read the text out of each vector.

        Args:
            embeddings: (n, d), or one vector (d,). Any norm: they are scaled to the sphere.
            options: how to decode.
            lengths: how many tokens each text has, where that is known; else the model's own guess.
            encoder: the encoder that made the vectors, for ``strategy="guided"``, ``"zero"`` and ``rerank`` only;
                ``strategy="surrogate"`` does with the inverter's own stand-in for it. For ``"zero"`` it may be any
                encoder: the inverter gives its own encoder and, if it reads vectors of this one, its readout.
            batch_size: hypotheses decoded together.
            **changes: keys of :class:`~unembed.config.DecodingConfig`, for example ``strategy="adaptive", steps=4``.
        """
        vectors = self._check_vectors(embeddings, options, encoder, changes)
        return list(self.stream([vectors], options, lengths=lengths, encoder=encoder, batch_size=batch_size, **changes))

    def stream(
        self,
        batches: "Iterable[np.ndarray]",
        options: DecodingConfig | None = None,
        *,
        lengths: Sequence[int] | None = None,
        encoder: "Encoder | None" = None,
        batch_size: int = 64,
        **changes: Any,
    ) -> Iterator[Inversion]:
        """Invert batches of vectors as they come, in order and in bounded memory. Arguments as of :meth:`invert`."""
        options = make_options(options, changes)
        done = 0
        for batch in batches:
            vectors = self._check_vectors(batch, options, encoder, {}, first_row=done)
            for start in range(0, len(vectors), BATCHES_AT_ONCE * batch_size):
                window = vectors[start : start + BATCHES_AT_ONCE * batch_size]
                wanted = None if lengths is None else lengths[done : done + len(window)]
                inversions: dict[int, Inversion] = {}
                for step in self.decode(window, options, lengths=wanted, encoder=encoder, batch_size=batch_size):
                    inversions |= self.read(step, options)
                yield from (inversions[row] for row in range(len(window)))
                done += len(window)
        if lengths is not None and len(lengths) != done:
            raise ConfigError(f"There are {done} vectors, but {len(lengths)} lengths.", "Give one length per vector.")

    def decode(
        self,
        embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]",
        options: DecodingConfig | None = None,
        *,
        lengths: Sequence[int] | None = None,
        encoder: "Encoder | None" = None,
        batch_size: int = 64,
        interrupted: Callable[[], bool] = lambda: False,
        **changes: Any,
    ) -> Iterator[Step]:
        """Decode vectors and yield every pass. Arguments as of :meth:`invert` and ``unembed.decoding.decode``."""
        options = make_options(options, changes)
        if options.strategy == ZERO:
            given = self._check_vectors(embeddings, options, encoder, {})
            return self._decode_zero(given, options, encoder, lengths, interrupted)
        vectors, known = self._prepare(embeddings, lengths)
        return decode(
            self.engine,
            self.noise,
            vectors,
            options,
            lengths=known,
            batch_size=batch_size,
            oracle=self._make_oracle(options, encoder),
            interrupted=interrupted,
        )

    def search_rounds(
        self,
        embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]",
        options: DecodingConfig | None = None,
        *,
        encoder: "Encoder | None" = None,
        lengths: Sequence[int] | None = None,
        batch_size: int = 64,
        **changes: Any,
    ) -> SearchRounds:
        """Search round by round, for a caller who does other work between rounds, or stops before the end.

        Each item is the list of steps of a round. After ``stop()`` the next round is the last and gives the best texts.
        Arguments as of :meth:`invert`; all vectors are searched together, so give a few.
        """
        options = make_options(options, {"strategy": "guided"} | changes if options is None else changes)
        oracle = self._make_oracle(options, encoder) if options.strategy in SEARCHES else None
        if oracle is None:
            raise ConfigError(f"The strategy '{options.strategy}' does not search.", f"Take {' or '.join(SEARCHES)}.")
        vectors, known = self._prepare(embeddings, lengths)
        return SearchRounds(
            self.engine,
            self.noise,
            vectors,
            options,
            oracle=oracle,
            lengths=known,
            batch_size=batch_size,
        )

    def _prepare(
        self, embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]", lengths: Sequence[int] | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Check vectors and lengths, and return them as the decoder takes them."""
        vectors = check_vectors(embeddings, self.info)
        self._log_warnings(vectors)
        known = None if lengths is None else torch.tensor(check_lengths(lengths, len(vectors), self.info))
        return torch.from_numpy(vectors).to(self.device), known

    def _check_vectors(
        self,
        embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]",
        options: DecodingConfig | None,
        encoder: "Encoder | None",
        changes: dict[str, Any],
        *,
        first_row: int = 0,
    ) -> np.ndarray:
        """Return vectors as float32 (n, d), if this inverter or, in a search without training, the encoder has them."""
        if make_options(options, changes).strategy != ZERO:
            return check_vectors(embeddings, self.info, first_row=first_row)
        if encoder is None:
            raise ConfigError(
                "The strategy 'zero' asks the encoder that made the vectors.",
                "Give it: `encoder=bge-small-en-v1.5`, for example; in Python encoder=load_encoder(name).",
            )
        vectors = as_vectors(embeddings, encoder.description.dim)
        if vectors.ndim != 2 or vectors.shape[1] != encoder.description.dim:
            raise VectorError(
                f"The vectors have the shape {vectors.shape}; {encoder.description.name} gives "
                f"{encoder.description.dim} numbers each.",
                "Give the encoder that made the vectors; `unembed identify` finds out which known one it was.",
            )
        return refuse_faulty(vectors, first_row=first_row)

    def _decode_zero(
        self,
        vectors: np.ndarray,
        options: DecodingConfig,
        encoder: "Encoder | None",
        lengths: Sequence[int] | None,
        interrupted: Callable[[], bool],
    ) -> Iterator[Step]:
        """Search without training; with the readout if this inverter reads the encoder's vectors."""
        assert encoder is not None
        if lengths is not None:
            raise ConfigError("The strategy 'zero' finds the length itself.", "Leave out the `length`.")
        tools = self.prepare_zero(encoder, options.zero.language_model)
        priors = self._word_priors(vectors, tools.bank.ids) if self._reads(encoder) else None
        return decode_zero(tools, vectors, options.zero, priors, interrupted=interrupted)

    def prepare_zero(self, encoder: "Encoder", language_model: str | None = None) -> ZeroTools:
        """Load what a search without training works with, once: the language model, the local encoder and the words.

        The first search does it, if nobody has. The first time on a machine it takes a minute.
        """
        from unembed.encoders import load_described_encoder, quicker

        if self._zero is None or self._zero[0] is not encoder or self._zero[1] != language_model:
            language = load_language_model(language_model, device=str(self.device))
            own = self.info.encoder
            if self.adaptation:
                own = open_checkpoint(fetch_checkpoint(self.adaptation.info.base)).info.encoder
            same = own.name == encoder.description.name
            local = quicker(encoder if same else load_described_encoder(own, device=str(self.device)))
            bank = WordBank.of(self.tokenizer, local)
            longest = self.info.model.canvas_length
            tools = ZeroTools(encoder, local, language, self.tokenizer, bank, longest)
            self._zero = encoder, language_model, tools
        return self._zero[2]

    def _reads(self, encoder: "Encoder") -> bool:
        """Whether this inverter has a readout for an encoder's vectors."""
        known, given = self.info.encoder, encoder.description
        return self.model.readout.gives_prior and all(getattr(known, key) == getattr(given, key) for key in _DECISIVE)

    @torch.no_grad()
    def _word_priors(self, vectors: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return how much likelier than usual each vector makes each word, in nats: (n, words)."""
        readout = self.model.readout
        given = self.map_vectors(torch.from_numpy(vectors).to(self.device))
        priors: np.ndarray = (readout.word_log_probabilities(given) - readout.base)[:, words].cpu().numpy()
        return priors

    @cached_property
    def surrogate(self) -> SurrogateEncoder:
        """The stand-in for the encoder that the model brings along, if it has one."""
        back = self.adaptation.back if self.adaptation else None
        return SurrogateEncoder(self.model, self.tokenizer, self.info.encoder, back)

    def _make_oracle(self, options: DecodingConfig, encoder: "Encoder | None") -> TextOracle | None:
        """Return what embeds hypotheses; None if nothing needs to."""
        if options.strategy == "surrogate":
            encoder = self.surrogate
        elif not options.needs_encoder:
            return None
        elif encoder is None:
            raise ConfigError(
                "Guided decoding and reranking need the encoder that made the vectors.",
                "Pass encoder=inverter.load_encoder(), or choose a blind strategy.",
            )
        self.check_encoder(encoder)
        if self._oracle is None or self._oracle.encoder is not encoder:  # it takes a while to make
            drafting = self.model.surrogate is not None and encoder is not self.surrogate
            self._oracle = TextOracle(
                encoder,
                self.tokenizer,
                self.info.vocabulary,
                self.info.model.canvas_length,
                self.surrogate.encode_ids if drafting else None,
            )
        return self._oracle

    def map_vectors(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return vectors (n, d) as the model reads them: in an adapted inverter, mapped to its base's encoder."""
        return self.adaptation.there(vectors) if self.adaptation else vectors

    @torch.no_grad()
    def words(
        self, embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]", *, top: int = 20
    ) -> list[list[tuple[str, float]]]:
        """Name the likeliest tokens of each text with their probabilities, by the readout alone: no order, no passes.

        Takes one product per vector, so a million vectors are read in minutes.
        """
        vectors = torch.from_numpy(check_vectors(embeddings, self.info)).to(self.device)
        scores = self.model.readout.word_log_probabilities(self.map_vectors(vectors))
        scores[:, list(self.info.special_ids)] = -torch.inf
        best = scores.topk(min(top, scores.shape[1]))
        return [
            [(self.tokenizer.id_to_token(token) or "", probability) for token, probability in zip(*row, strict=True)]
            for row in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        ]

    def invert_text(
        self, texts: Sequence[str], encoder: "Encoder", options: DecodingConfig | None = None, **changes: Any
    ) -> list[Inversion]:
        """Embed texts and read them back: what their vectors give away. Longer texts than a canvas holds are cut."""
        options = make_options(options, changes)
        _, vectors = self.round_trip(texts, encoder, strategy=options.strategy)
        return self.invert(vectors, options, encoder=encoder)

    def round_trip(
        self, texts: Sequence[str], encoder: "Encoder", *, strategy: AnyStrategy = "confidence"
    ) -> tuple[list[RoundTrip], np.ndarray]:
        """Embed texts in order to read them back: what of each fits a canvas, and the vectors (n, d) of that part."""
        if strategy != ZERO:
            self.check_encoder(encoder)
        longest = self.info.model.canvas_length
        trips = [fit_text(well_formed(text), self.tokenizer, longest) for text in texts]
        return trips, encoder.encode([trip.embedded for trip in trips])

    def adapt(
        self,
        encoder: "Encoder",
        texts: Sequence[str],
        *,
        own_encoder: "Encoder | None" = None,
        origin: str = "given by the user",
        seed: int = 0,
        on_progress: OnProgress = lambda label, more, total: None,
    ) -> Self:
        """Return an inverter for the vectors of another encoder, in minutes.

        Args:
            encoder: the other encoder.
            texts: from 50 to about 10,000; texts like those that will be read back are best.
            own_encoder: the encoder of this inverter; by default it is loaded.
            origin: where the texts come from, for the record.
            seed: of folds and tuning.
            on_progress: called with what is being done, how many more are done, and of how many.
        """
        with tempfile.TemporaryDirectory() as temporary:
            pairs = embed_pairs(
                texts,
                encoder,
                own_encoder or self.load_encoder(),
                Path(temporary),
                tokenizer=self.tokenizer,
                canvas_length=self.info.model.canvas_length,
                origin=origin,
                on_progress=on_progress,
            )
        return self.adapt_to(pairs, seed=seed, on_progress=on_progress)

    def adapt_to(
        self, pairs: Pairs, *, seed: int = 0, on_progress: OnProgress = lambda label, more, total: None
    ) -> Self:
        """Return an inverter for another encoder, given texts with their vectors by both."""
        return self._adapted(adapt_checkpoint(*self._base(), pairs, seed=seed, on_progress=on_progress))

    def adapt_unpaired(
        self,
        vectors: np.ndarray,
        texts: Sequence[str],
        *,
        encoder: str = "unknown",
        own_encoder: "Encoder | None" = None,
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
        base = Checkpoint(self.model, self.tokenizer, self.info, known_words=self.known_words)
        return base, self.name, checksum_of(fetch_checkpoint(self.name))

    def _adapted(self, checkpoint: Checkpoint) -> Self:
        return type(self)(
            checkpoint.model,
            checkpoint.tokenizer,
            checkpoint.info,
            adaptation=checkpoint.adaptation,
            known_words=checkpoint.known_words,
        )

    def load_encoder(self, location: str | None = None, *, device: str = "auto") -> "Encoder":
        """Load the encoder whose vectors this inverter reads, with its prompt, task, dimension and revision.

        Args:
            location: where it is, if not where its name says: a folder, a hub id, an address. Texts are sent to an
                address only if it is given here: the address in a checkpoint may be anybody's.
            device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        """
        from unembed.encoders import load_described_encoder

        encoder = load_described_encoder(self.info.encoder, location=location, device=device)
        self.check_encoder(encoder)
        return encoder

    def check_encoder(self, encoder: "Encoder") -> None:
        """Refuse an encoder that makes other vectors than this inverter reads."""
        expected, given = self.info.encoder, encoder.description
        differing = [key for key in _DECISIVE if getattr(expected, key) != getattr(given, key)]
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

    def warnings(self, vectors: np.ndarray) -> list[str]:
        """Return reasons not to trust the texts of vectors (n, d); empty in most cases.

        Vectors that do not look like the encoder's give fluent texts that mean nothing.
        """
        if not len(vectors):
            return []
        if self.info.fingerprint:
            doubts = self.info.fingerprint.doubts(vectors)
        else:
            doubts = doubtful_lengths(vectors, 1.0) if self.info.encoder.normalised else []
        if not doubts:
            return []
        verb = "vector does" if len(vectors) == 1 else "vectors do"
        return [
            f"The {verb} not look like those of {self.info.encoder.name}, which this inverter was trained on: "
            f"{'; '.join(doubts)}. If another encoder made such a vector, or it was changed, its text means nothing."
        ]

    def describe_scale(self, vectors: np.ndarray) -> str | None:
        """Say by what factor vectors (n, d) were multiplied for storage; None if they were not."""
        known = self.info.fingerprint
        if vectors.shape[1:] != (self.info.encoder.dim,) or not (known or self.info.encoder.normalised):
            return None
        return describe_scale(vectors, known.norm if known else 1.0, known.norm_spread if known else 0.0)

    def _log_warnings(self, vectors: np.ndarray) -> None:
        """Log warnings about vectors, once per inverter."""
        if not self._warned:
            for warning in self.warnings(vectors):
                self._warned = True
                logger.warning(warning)

    def read(self, step: Step, options: DecodingConfig) -> dict[int, Inversion]:
        """Return the inversions of the vectors that a step finishes, by row."""
        return {
            text.row: Inversion(
                text=self.tokenizer.decode(text.ids),
                ids=text.ids,
                tokens=[self.tokenizer.id_to_token(token) or "" for token in text.ids],
                confidences=text.confidences,
                strategy=options.strategy,
                passes=text.passes,
                score=text.score,
                encoder_calls=text.texts_embedded if options.needs_encoder else 0,
                surrogate_calls=0 if options.needs_encoder else text.texts_embedded,
            )
            for text in step.finished(self.info.vocabulary)
        }


def make_options(options: DecodingConfig | None, changes: dict[str, Any]) -> DecodingConfig:
    """Return options with some keys changed, all checked."""
    values = {} if options is None else options.model_dump()
    return parse(DecodingConfig, values | changes, "The decoding configuration")


def check_vectors(
    embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]", info: CheckpointInfo, *, first_row: int = 0
) -> np.ndarray:
    """Return vectors as float32 (n, d), or say what is wrong with them; rows are counted from ``first_row``."""
    vectors = as_vectors(embeddings, info.encoder.dim)
    if vectors.ndim != 2 or vectors.shape[1] != info.encoder.dim:
        raise VectorError(
            f"The vectors have the shape {vectors.shape}; this inverter reads {info.encoder.dim} numbers each.",
            f"It was trained for {info.encoder.name}. Use an inverter for the encoder that made your vectors.",
        )
    return refuse_faulty(vectors, first_row=first_row)


def as_vectors(embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]", dim: int) -> np.ndarray:
    """Return vectors as float32; a single one, or none, in rows."""
    try:
        vectors = np.asarray(
            embeddings.detach().cpu().float() if isinstance(embeddings, torch.Tensor) else embeddings, dtype=np.float32
        )
    except (TypeError, ValueError) as error:
        raise VectorError(
            "The vectors are not numbers in rows of one length.", "Give an array of shape (n, d)."
        ) from error
    if vectors.shape == (0,):
        return np.empty((0, dim), dtype=np.float32)
    return vectors[None] if vectors.ndim == 1 else vectors


def refuse_faulty(vectors: np.ndarray, *, first_row: int = 0) -> np.ndarray:
    """Return vectors (n, d), if they can be an encoder's; rows are counted from ``first_row``."""
    for what, bad in find_faults(vectors).items():
        if bad.any():
            rows = first_row + np.flatnonzero(bad)
            shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
            raise VectorError(
                f"{len(rows)} of {len(vectors)} vectors are {what} (rows {shown}).", "Remove these rows and run again."
            )
    return vectors


def check_lengths(lengths: Sequence[int], count: int, info: CheckpointInfo) -> Sequence[int]:
    """Refuse lengths that do not fit the vectors or the canvas."""
    if info.model.canvas == "fixed":
        raise ConfigError("This inverter finds the length itself: it has a fixed canvas.", "Leave out the lengths.")
    longest = info.model.canvas_length
    if len(lengths) != count or not all(1 <= length <= longest for length in lengths):
        raise ConfigError(
            f"Expected {count} lengths from 1 to {longest}, got {len(lengths)}: {list(lengths[:5])}.",
            "Give one length per vector.",
        )
    return lengths
