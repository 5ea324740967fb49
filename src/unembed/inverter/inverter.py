"""The inverter: vectors in, texts out. Joins a checkpoint with a decoder; the face of the library."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from unembed.canvas import RoundTrip, fit_text
from unembed.config import BATCHES_AT_ONCE, SEARCHES, ZERO, AnyStrategy, DecodingConfig, parse
from unembed.decoding import SearchRounds, Step, SurrogateEncoder, TextOracle, ZeroTools, decode, decode_zero
from unembed.encoders import Encoder
from unembed.errors import ConfigError
from unembed.filling import GivenCandidates, Template, choose_candidates
from unembed.filling.filler import CALLS, Filler, Filling
from unembed.filling.ranking import FillingTools
from unembed.inverter.adapting import AdaptableInverter
from unembed.inverter.vectors import Embeddings, check_lengths, check_vectors, check_vectors_of
from unembed.inverter.zero import load_tools, word_priors
from unembed.text import well_formed

logger = logging.getLogger(__name__)


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


class Inverter(AdaptableInverter):
    """Reads text out of the vectors of one encoder."""

    _warned = False
    _oracle: TextOracle | None = None
    _zero: tuple[Encoder, str | None, ZeroTools] | None = None

    def to(self, device: str) -> Self:
        """Move the weights; ``auto`` takes a GPU where there is one."""
        super().to(device)
        # Both hold a copy of the surrogate, on the device of before.
        self.__dict__.pop("surrogate", None)
        self._oracle = self._zero = None
        return self

    def invert(
        self,
        embeddings: Embeddings,
        options: DecodingConfig | None = None,
        *,
        lengths: Sequence[int] | None = None,
        encoder: Encoder | None = None,
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
        batches: Iterable[np.ndarray],
        options: DecodingConfig | None = None,
        *,
        lengths: Sequence[int] | None = None,
        encoder: Encoder | None = None,
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
        embeddings: Embeddings,
        options: DecodingConfig | None = None,
        *,
        lengths: Sequence[int] | None = None,
        encoder: Encoder | None = None,
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
        embeddings: Embeddings,
        options: DecodingConfig | None = None,
        *,
        encoder: Encoder | None = None,
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
        self, embeddings: Embeddings, lengths: Sequence[int] | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Check vectors and lengths, and return them as the decoder takes them."""
        vectors = check_vectors(embeddings, self.info)
        self._log_warnings(vectors)
        known = None if lengths is None else torch.tensor(check_lengths(lengths, len(vectors), self.info))
        return torch.from_numpy(vectors).to(self.device), known

    def _check_vectors(
        self,
        embeddings: Embeddings,
        options: DecodingConfig | None,
        encoder: Encoder | None,
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
        return check_vectors_of(embeddings, encoder.description, first_row=first_row)

    def _decode_zero(
        self,
        vectors: np.ndarray,
        options: DecodingConfig,
        encoder: Encoder | None,
        lengths: Sequence[int] | None,
        interrupted: Callable[[], bool],
    ) -> Iterator[Step]:
        """Search without training; with the readout if this inverter reads the encoder's vectors."""
        assert encoder is not None
        if lengths is not None:
            raise ConfigError("The strategy 'zero' finds the length itself.", "Leave out the `length`.")
        tools = self.prepare_zero(encoder, options.zero.language_model)
        priors = word_priors(self, encoder, vectors, tools.bank.ids)
        return decode_zero(tools, vectors, options.zero, priors, interrupted=interrupted)

    def prepare_zero(self, encoder: Encoder, language_model: str | None = None) -> ZeroTools:
        """Load what a search without training works with, once: the language model, the local encoder and the words.

        The first search does it, if nobody has. The first time on a machine it takes a minute.
        """
        if self._zero is None or self._zero[0] is not encoder or self._zero[1] != language_model:
            self._zero = encoder, language_model, load_tools(self, encoder, language_model)
        return self._zero[2]

    @cached_property
    def surrogate(self) -> SurrogateEncoder:
        """The stand-in for the encoder that the model brings along, if it has one."""
        back = self.adaptation.back if self.adaptation else None
        return SurrogateEncoder(self.model, self.tokenizer, self.info.encoder, back)

    @property
    def searches_alone(self) -> bool:
        """Whether a search without the encoder finds more than it started from.

        It needs the stand-in. With mapped vectors it finds less: it takes the map's errors for words.
        """
        return self.model.surrogate is not None and self.adaptation is None

    @property
    def strategy_for_many(self) -> AnyStrategy:
        """The strategy that reads most of many vectors in reasonable time, without the encoder."""
        return "writer" if self.model.writes and self.adaptation is None else "confidence"

    def _make_oracle(self, options: DecodingConfig, encoder: Encoder | None) -> TextOracle | None:
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
        return self._oracle_for(encoder)

    def _oracle_for(self, encoder: Encoder) -> TextOracle:
        """Return what embeds texts with an encoder; the last one is kept."""
        self.check_encoder(encoder)
        if self._oracle is None or self._oracle.encoder is not encoder:  # it takes a while to make
            drafting = self.model.surrogate is not None and encoder is not self.surrogate
            self._oracle = TextOracle(
                encoder,
                self.tokenizer,
                self.info.vocabulary,
                self.info.model.canvas_length,
                self.surrogate.encode_ids if drafting else None,
                self.ngrams,
            )
        return self._oracle

    def fill(
        self,
        template: str,
        embeddings: Embeddings,
        candidates: GivenCandidates | None = None,
        *,
        encoder: Encoder | None = None,
        calls: int = CALLS,
        top: int = 10,
        seed: int = 0,
    ) -> list[Filling]:
        """Find out what stands in the slots of a text that is known otherwise, for each vector.

        Args:
            template: the text, with slots: ``Dear {name}, your PIN is {pin:digits:4}``. ``{{`` stands for a brace.
            embeddings: (n, d), or one vector (d,).
            candidates: for slots, by name: a kind (``"cities"``, ``"digits:4"``, ``"free:2"``) or a list of texts. A
                slot without any has the kind that its name says, or else what the denoiser writes.
            encoder: the encoder that made the vectors. Without it, candidates are compared by the denoiser's
                likelihood and the inverter's stand-in for the encoder, which is less certain.
            calls: texts that the encoder embeds per vector, at most.
            top: answers per vector.
            seed: of the candidates that are tried at random.
        """
        vectors = check_vectors(embeddings, self.info)
        self._log_warnings(vectors)
        filler = self.prepare_filling(template, candidates, encoder=encoder, calls=calls, top=top, seed=seed)
        return [filler.fill(vector) for vector in vectors]

    def prepare_filling(
        self,
        template: str,
        candidates: GivenCandidates | None = None,
        *,
        encoder: Encoder | None = None,
        **options: Any,
    ) -> Filler:
        """Return what fills a template for one vector after another. Arguments as of :meth:`fill`."""
        parsed = Template.parse(template)
        tools = FillingTools(
            engine=self.engine,
            noise=self.noise,
            tokenizer=self.tokenizer,
            table=self.model.denoiser.token_embedding.weight.detach().float().cpu().numpy(),
            oracle=None if encoder is None else self._oracle_for(encoder),
            surrogate=None if self.model.surrogate is None else self.surrogate,
            device=self.device,
        )
        return Filler(tools, parsed, choose_candidates(parsed, candidates or {}), **options)

    @torch.no_grad()
    def words(self, embeddings: Embeddings, *, top: int = 20) -> list[list[tuple[str, float]]]:
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
        self, texts: Sequence[str], encoder: Encoder, options: DecodingConfig | None = None, **changes: Any
    ) -> list[Inversion]:
        """Embed texts and read them back: what their vectors give away. Longer texts than a canvas holds are cut."""
        options = make_options(options, changes)
        _, vectors = self.round_trip(texts, encoder, strategy=options.strategy)
        return self.invert(vectors, options, encoder=encoder)

    def round_trip(
        self, texts: Sequence[str], encoder: Encoder, *, strategy: AnyStrategy = "confidence"
    ) -> tuple[list[RoundTrip], np.ndarray]:
        """Embed texts in order to read them back: what of each fits a canvas, and the vectors (n, d) of that part."""
        if strategy != ZERO:
            self.check_encoder(encoder)
        longest = self.info.model.canvas_length
        trips = [fit_text(well_formed(text), self.tokenizer, longest) for text in texts]
        return trips, encoder.encode([trip.embedded for trip in trips])

    def _log_warnings(self, vectors: np.ndarray) -> None:
        """Log warnings about vectors, or else notices about their texts, once per inverter."""
        if not self._warned:
            for warning in self.warnings(vectors) or self.notices(vectors):
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
