"""The inverters that a server has, each with its encoder where there is one. Knows nothing of queues or HTTP."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from tokenizers import Tokenizer

from unembed.auditing import WordReader
from unembed.auditing.calibration import identity_of
from unembed.auditing.language import is_in, language_of, languages_of_inverter
from unembed.canvas import RoundTrip, fit_text
from unembed.canvas.marks import SubwordMarks
from unembed.config import STRATEGIES, DecodingConfig
from unembed.decoding import decode
from unembed.encoders import Encoder, EncoderDescription, can_substitute, quicker
from unembed.errors import ConfigError, did_you_mean
from unembed.evaluation.baselines import Unconditional
from unembed.inverter import Inverter
from unembed.server.problems import Refusal
from unembed.server.reliability import Judge
from unembed.server.schemas import ModelDescription

_WORDS = 12
_GUESS = DecodingConfig(candidates=1)


class SharedEncoder:
    """An encoder that several threads may use. They take turns: its gradient needs hooks in the one model."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._turn = threading.Lock()

    @property
    def description(self) -> EncoderDescription:
        """Name, revision, dimension, prompt, pooling and normalisation."""
        return self._encoder.description

    @property
    def tokenizer(self) -> Tokenizer | None:
        """A copy of the encoder's tokenizer, if it is known."""
        return self._encoder.tokenizer

    @property
    def supports_substitutions(self) -> bool:
        """Whether the encoder gives its gradient."""
        return can_substitute(self._encoder)

    def quicker(self) -> "SharedEncoder":
        """Return an encoder for any thread that gives practically the same vectors in less time, if there is one."""
        other = quicker(self._encoder)
        return self if other is self._encoder else SharedEncoder(other)

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence."""
        with self._turn:
            return self._encoder.encode(sentences, batch_size=batch_size, show_progress_bar=show_progress_bar)

    def substitutions(
        self, sentences: Sequence[str], targets: np.ndarray, top: int, *, forbidden: Sequence[int] = ()
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Ask the encoder for its gradient, if it has one."""
        if not can_substitute(self._encoder):
            return [None] * len(sentences)
        with self._turn:
            return self._encoder.substitutions(sentences, targets, top, forbidden=forbidden)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """An inverter under the name that requests know it by."""

    name: str
    inverter: Inverter
    encoder: Encoder | None = None
    shared_encoder: SharedEncoder | None = field(init=False)
    """The encoder, for any thread. There is one, made before any thread asks: it holds the lock."""

    _guesses: dict[int, str] = field(init=False, default_factory=dict)
    """What the model writes without a vector, by the number of tokens."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shared_encoder", None if self.encoder is None else SharedEncoder(self.encoder))

    @cached_property
    def marks(self) -> SubwordMarks:
        """How the tokenizer marks the pieces of words."""
        return SubwordMarks.of(self.inverter.tokenizer)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that it writes, as far as they are known."""
        return languages_of_inverter(self.inverter)

    @cached_property
    def judge(self) -> Judge:
        """What says how far a text can be trusted."""
        return Judge(self.inverter)

    @cached_property
    def _reader(self) -> WordReader | None:
        return WordReader(self.inverter, top=_WORDS) if self.inverter.model.readout.gives_prior else None

    def words(self, vectors: np.ndarray) -> list[list[str]]:
        """Return the words that vectors (n, d) give away, the surest first; none if the model has no readout."""
        if self._reader is None:
            return [[] for _ in vectors]
        words = self._reader.read(vectors)
        return [words.names_of(row) for row in range(len(vectors))]

    def guess_without_vector(self, length: int) -> str:
        """Return what the model writes when it sees no vector: its favourite text of so many tokens."""
        if length not in self._guesses:
            blank = torch.ones(1, self.inverter.info.encoder.dim, device=self.inverter.device)
            engine = Unconditional(self.inverter.engine)
            for step in decode(engine, self.inverter.noise, blank, _GUESS, lengths=torch.tensor([length])):
                for inversion in self.inverter.read(step, _GUESS).values():
                    self._guesses[length] = inversion.text
        return self._guesses[length]

    def notices(self, trip: RoundTrip) -> list[str]:
        """Say what about a text this inverter cannot read."""
        notices = []
        if trip.cut:
            notices.append(
                f"The text has {trip.tokens_in_all} tokens. This model reads up to {self.canvas_length}; the rest was "
                "left out."
            )
        language = language_of(trip.original)
        if language and self.languages and not is_in(language, self.languages):
            notices.append(f"This looks like {language}. This model writes {', '.join(self.languages)} only.")
        return notices

    @property
    def canvas_length(self) -> int:
        """Tokens that a text can have at most."""
        return self.inverter.info.model.canvas_length

    def needed_encoder(self, purpose: str, remedy: str = "Expected a vector and a blind strategy.") -> SharedEncoder:
        """Return the encoder, or say that there is none."""
        if self.shared_encoder is None:
            raise ConfigError(
                f"{purpose} needs the encoder '{self.inverter.info.encoder.name}', which this server does not have.",
                remedy,
            )
        return self.shared_encoder

    def fit(self, text: str, longest: int | None = None) -> RoundTrip:
        """Cut a text to so many tokens; by default to what the canvas holds."""
        return fit_text(text, self.inverter.tokenizer, longest or self.canvas_length)

    def likeliest_lengths(self, vectors: np.ndarray) -> list[int | None]:
        """Return how many tokens each text will probably have: texts of one length can be decoded together."""
        if self.inverter.info.model.canvas == "fixed":
            return [self.canvas_length] * len(vectors)
        with torch.no_grad():
            scores = self.inverter.engine.length_logits(torch.from_numpy(vectors).to(self.inverter.device))
        return [*(scores.argmax(-1) + 1).tolist()]

    def token_names(self, ids: Sequence[int]) -> list[str]:
        """Name tokens as the tokenizer does; a mask has no name."""
        vocabulary = self.inverter.info.vocabulary
        names = {vocabulary.eos: "[EOS]", vocabulary.pad: "[PAD]", vocabulary.mask: ""}
        return [names[token] if token in names else self.inverter.tokenizer.id_to_token(token) or "" for token in ids]

    def _offers(self, strategy: str) -> bool:
        possible = {
            "guided": self.encoder is not None,
            "surrogate": self.inverter.searches_alone,
            "writer": self.inverter.model.writes,
        }
        return possible.get(strategy, True)

    def describe(self, *, default: bool) -> ModelDescription:
        """Return what a client needs to know."""
        info = self.inverter.info
        numbers = {name: value for name, value in info.metrics.items() if isinstance(value, int | float)}
        return ModelDescription.model_validate(
            {
                "name": self.name,
                "identity": identity_of(info),
                "languages": list(self.languages),
                "lower_case": _lower_case(self.inverter.tokenizer),
                "encoder": info.encoder.name,
                "dimension": info.encoder.dim,
                "canvas_length": self.canvas_length,
                "strategies": [name for name in STRATEGIES if self._offers(name)],
                "guided": self.encoder is not None,
                "parameters": sum(part.numel() for part in self.inverter.model.parameters()),
                "default": default,
                "metrics": {name: float(value) for name, value in numbers.items() if np.isfinite(value)},
            }
        )


def _lower_case(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer makes small letters of capitals."""
    return tokenizer.decode(tokenizer.encode("A", add_special_tokens=False).ids).strip() == "a"


class Models:
    """All inverters of a server; the first is the default."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        if not models:
            raise ConfigError("A server needs at least one inverter.", "Name one with `model`.")
        self._by_name = {model.name: model for model in models}
        if len(self._by_name) < len(models):
            raise ConfigError("Two inverters have the same name.", "Give them different names: `model=NAME=FOLDER`.")

    @property
    def names(self) -> list[str]:
        """All names, the default first."""
        return list(self._by_name)

    def find(self, name: str | None) -> ServedModel:
        """Return a model by its name; the first when none is named."""
        name = self.names[0] if name is None else name
        if name not in self._by_name:
            raise Refusal(422, f"There is no model '{name}': {did_you_mean(name, self._by_name)}", "See /api/models.")
        return self._by_name[name]

    def describe(self) -> list[ModelDescription]:
        """Describe all models."""
        return [model.describe(default=index == 0) for index, model in enumerate(self._by_name.values())]
