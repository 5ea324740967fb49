"""How vectors are turned into text: the strategies and their options. Knows nothing of recipes."""

from typing import Annotated, ClassVar, Literal, NamedTuple, Self, get_args

from pydantic import Field, model_validator

from unembed.config.base import Count, Positive, Section, Share

BlindStrategy = Literal["sequential", "euler", "euler-remask", "two-stage", "confidence", "adaptive", "writer"]
SearchStrategy = Literal["surrogate", "guided"]
Strategy = Literal[BlindStrategy, SearchStrategy]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
"""How a canvas can be filled. All but ``guided`` work without the encoder; ``surrogate`` needs an inverter that has a
stand-in for it, and ``writer`` one that has a writer."""
SEARCHES: tuple[str, ...] = get_args(SearchStrategy)
"""Those that change texts and compare their vectors with the one given."""
SAMPLING = ("euler", "euler-remask", "two-stage")
"""Those that draw tokens at random: their hypotheses of one length differ."""


# Likeliest lengths that are decoded where the user does not say how many (docs/experiments.md).
_LENGTHS = 5

AnyStrategy = Literal[Strategy, "zero"]
ZERO = "zero"
"""It needs no inverter for the vectors' encoder, so it is offered only where vectors are inverted one by one."""

BATCHES_AT_ONCE = 8
"""Batches of vectors that are planned together: enough to put hypotheses of one length into one batch."""


class _EffortLimits(NamedTuple):
    """When a search ends that has not reached its target."""

    calls: int
    patience: int


Effort = Literal["quick", "normal", "thorough"]


class _SearchLimits(Section):
    """How long a search goes on for a text that is not recovered exactly."""

    _limits: ClassVar[dict[Effort, _EffortLimits]]

    effort: Effort = "normal"
    """How long to search for a text that is not recovered exactly: decides ``calls`` and ``patience``."""
    calls: Positive | None = None
    """Texts embedded per vector after which the search ends; None: by the effort."""
    patience: Positive | None = None
    """Rounds without a better text after which a vector is finished; None: by the effort."""
    rounds: Count | None = None
    """Largest number of rounds; None: no limit of its own."""

    @property
    def call_limit(self) -> int:
        """Texts embedded per vector after which the search ends."""
        return self._limits[self.effort].calls if self.calls is None else self.calls

    @property
    def round_patience(self) -> int:
        """Rounds without a better text after which a vector is finished."""
        return self._limits[self.effort].patience if self.patience is None else self.patience


class GuidedConfig(_SearchLimits):
    """The search with the encoder: how it begins, what it tries, and when it ends."""

    _limits: ClassVar[dict[Effort, _EffortLimits]] = {
        "quick": _EffortLimits(calls=300, patience=16),
        "normal": _EffortLimits(calls=2_000, patience=100),
        "thorough": _EffortLimits(calls=10_000, patience=400),
    }

    seconds: Annotated[float, Field(gt=0.0)] | None = None
    """Time budget per batch of vectors. With one, the result depends on the machine."""
    target_cosine: Annotated[float, Field(gt=0.0)] = 0.99998
    """A vector whose best hypothesis reaches this is finished. Texts that differ in one small word may reach 0.9999."""
    start: BlindStrategy | None = None
    """The blind strategy that makes the first hypotheses; None: ``writer`` where the inverter has one, else
    ``confidence``."""
    candidates: Positive = 6
    """First hypotheses per vector: the likeliest lengths that differ enough."""
    beam: Positive = 1
    """Hypotheses that single changes are proposed for."""
    parents: Positive = 4
    """Hypotheses whose known changes are combined."""
    proposals: Positive = 16
    """Changed hypotheses that a round embeds, per vector."""
    combinations: Count = 6
    """How many of these may be combinations of changes that were tried or drafted before."""
    gradient: bool = True
    """Whether the encoder's gradient proposes substitutions too, where the encoder gives one."""
    fluency: Annotated[float, Field(ge=0.0)] = 0.0005
    """Weight of the denoiser's log-likelihood (nats per text) relative to the cosine, when hypotheses are ranked."""
    ngrams: bool = True
    """Whether the inverter's n-grams, if it has them, say too how natural a text is. The weight then falls as the best
    text comes nearer."""
    free_tokens: bool = True
    """Whether a token as likely as usual costs nothing until the text is as long as the vector lets expect."""

    @property
    def round_limit(self) -> int:
        """Largest number of rounds: also that after which the encoder calls must be used up."""
        rounds = -(-self.call_limit // self.proposals) + self.round_patience
        return rounds if self.rounds is None else min(self.rounds, rounds)


class SurrogateSearchConfig(GuidedConfig):
    """The search with the surrogate. Its calls cost little, and it cannot get as near as the encoder's search does."""

    _limits: ClassVar[dict[Effort, _EffortLimits]] = {
        "quick": _EffortLimits(calls=300, patience=8),
        "normal": _EffortLimits(calls=800, patience=20),
        "thorough": _EffortLimits(calls=3_000, patience=80),
    }
    proposals: Positive = 32
    combinations: Count = 16
    free_tokens: bool = False


class ZeroConfig(_SearchLimits):
    """The search without training: a language model proposes, a local encoder ranks, the encoder attacked judges."""

    _limits: ClassVar[dict[Effort, _EffortLimits]] = {
        "quick": _EffortLimits(calls=250, patience=4),
        "normal": _EffortLimits(calls=400, patience=6),
        "thorough": _EffortLimits(calls=1_500, patience=24),
    }

    candidates: Positive = 4
    """Texts that are changed in each round."""
    pairs: Positive = 48
    """Everyday texts that the first map between the encoders is fitted on; embedded once for all vectors. They count
    among the ``calls``."""
    language_model: str | None = None
    """A causal language model: a folder or a hub id; None: SmolLM2-135M-Instruct from its package."""
    fluency: Annotated[float, Field(ge=0.0)] = 0.003
    """Weight of the language model's log-probability (nats per text) relative to the cosine."""
    free_nats: Annotated[float, Field(ge=0.0)] = 2.0
    """Words that are on average as likely as this cost nothing, so that longer texts are not worse."""
    prior: Annotated[float, Field(ge=0.0)] = 0.02
    """Weight of a readout's log-odds for a word relative to the cosine, where an inverter for the encoder is given."""

    @property
    def round_limit(self) -> int:
        """Largest number of rounds in which texts are changed; each asks one text at least."""
        return self.call_limit if self.rounds is None else self.rounds

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.call_limit <= self.pairs:
            raise ValueError(
                f"calls is {self.call_limit}, but {self.pairs} are needed for the first map; expected more"
            )
        return self


class DecodingConfig(Section):
    """How vectors are turned into text."""

    strategy: AnyStrategy = "confidence"
    steps: Positive = 8
    """Largest number of passes. ``sequential`` takes one per token, ``two-stage`` one per token and ``steps`` more."""
    candidates: Count = 0
    """Hypotheses per vector, of which the best is kept: its likeliest lengths, and several draws where it samples. 0
    stands for five lengths, or for a single draw."""
    rerank: Count = 0
    """Blind hypotheses per vector that the encoder embeds once; the nearest is kept. 0 does without the encoder."""
    beams: Positive = 16
    """Texts of each length that ``writer`` goes on with at once; of these, the nearest by the surrogate is kept."""
    guidance: Annotated[float, Field(ge=0.0)] = 0.0
    """Strength of classifier-free guidance. Above 0, every pass is run twice."""
    repetition_damping: Annotated[float, Field(ge=0.0)] = 2.5
    """How strongly a token is held back once it stands on the canvas, relative to what training found best. Training
    sees true texts; the decoder's own words come twice more often."""
    temperature: Annotated[float, Field(ge=0.0)] = 1.0
    """For the strategies that sample (``euler``, ``euler-remask``, ``two-stage``); 0 takes the likeliest token."""
    top_k: Count = 0
    """Sample among this many of the likeliest tokens; 0 for all."""
    seed: Count = 0
    remask_share: Share = 0.05
    """Share of the revealed positions that ``euler-remask`` masks again after each pass."""
    remask_threshold: Share | None = None
    """If given, ``euler-remask`` masks tokens less probable than this again, instead of a share of them."""
    refine_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.3
    """Share of the positions, the least confident ones, that the second stage of ``two-stage`` decodes again."""
    entropy_bound: Annotated[float, Field(ge=0.0)] = 0.5
    """Entropy, in nats, that ``adaptive`` accepts per pass for positions that it reveals together."""
    guided: GuidedConfig = GuidedConfig()
    surrogate: SurrogateSearchConfig = SurrogateSearchConfig()
    zero: ZeroConfig = ZeroConfig()

    @property
    def hypotheses(self) -> int:
        """How many hypotheses of a vector are decoded, unless fewer differ."""
        return self.candidates or (1 if self.strategy in SAMPLING else _LENGTHS)

    @property
    def searches(self) -> bool:
        """Whether texts are changed and embedded again and again, by the encoder or by its surrogate."""
        return self.strategy in (*SEARCHES, ZERO)

    @property
    def search(self) -> GuidedConfig:
        """The options of the search that changes canvases, if it is one."""
        return self.surrogate if self.strategy == "surrogate" else self.guided

    @property
    def call_limit(self) -> int:
        """Texts embedded per vector after which a search ends."""
        return self.zero.call_limit if self.strategy == ZERO else self.search.call_limit

    @property
    def needs_encoder(self) -> bool:
        """Whether the encoder is asked on the way."""
        return self.strategy in ("guided", ZERO) or self.rerank > 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.searches and self.rerank:
            raise ValueError(f"rerank is for blind strategies; {self.strategy} embeds its hypotheses anyway")
        if self.strategy == "writer" and self.guidance:
            raise ValueError("guidance is for strategies that denoise; the writer has no unconditional branch")
        return self
