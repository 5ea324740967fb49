"""Frozen, validated configuration; YAML in, YAML out. Knows nothing of torch.

A recipe (``configs/*.yaml``) has five sections: ``encoder``, ``data``, ``model``, ``noise`` and ``training``. Every key
has a default, so a recipe states only what it decides. An unknown key is an error that names the nearest valid one.
"""

import copy
import logging
import types
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from unembed.errors import ConfigError, did_you_mean, first_line
from unembed.files import write_text
from unembed.recipes import find_recipe, name_recipes

logger = logging.getLogger(__name__)

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


T = TypeVar("T", bound=_Section)


class EncoderConfig(_Section):
    """Which encoder made the vectors, and with which prompt."""

    name: str = "all-MiniLM-L6-v2"
    revision: str | None = None
    """None: the revision that the store was made with."""
    prompt: str | None = None
    """None: the prompt that the store was made with."""


class DataConfig(_Section):
    """Which store is used, and which part of it."""

    store: Path = Path("work/store")
    canvas_length: Positive = 32
    validation_rows: Positive = 512


class ReadoutConfig(_Section):
    """The shape of the readout: the vocabulary prior that is read directly off the vector."""

    kind: Literal["none", "linear", "mlp"] = "linear"
    """``linear`` is fitted in closed form. ``mlp`` is trained by gradient after that."""
    bottleneck: Positive = 512
    """Hidden width of the ``mlp`` readout."""
    blocks: Count = 0
    """Residual blocks of the ``mlp`` readout between its hidden layer and the words."""
    expansion: Positive = 4
    """Width of the inner layer of a block, in bottlenecks."""


class SurrogateConfig(_Section):
    """The stand-in for the encoder, as wide as the denoiser."""

    layers: Count = 0
    """0 for none."""


class RotaryConfig(_Section):
    """The positions of ``architecture: modernbert``: which layers look how far, and how fast positions rotate."""

    global_every: Positive = 3
    """The first layer, and from there every n-th, looks at all tokens."""
    window: Positive = 128
    """In the other layers a token looks at half as many to either side."""
    global_theta: Annotated[float, Field(gt=0.0)] = 160_000.0
    local_theta: Annotated[float, Field(gt=0.0)] = 10_000.0


class _ModelShape(_Section):
    """The shape of a denoiser, without the three numbers that its vectors and its vocabulary decide."""

    canvas: Literal["exact", "fixed"] = "exact"
    """``exact``: as many positions as the text has tokens; a head on the vector predicts how many. ``fixed``: always
    ``canvas_length`` positions, [EOS] and [PAD] are targets like any token (the paper's variant)."""
    layers: Positive = 6
    width: Positive = 384
    heads: Positive = 12
    feedforward: Positive = 1536
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    norm: Literal["pre", "post"] = "pre"
    """``post`` is the layout of BERT-like encoders, needed to start from one."""
    architecture: Literal["bert", "mpnet", "modernbert"] = "bert"
    """Whose layers these are. ``mpnet`` has a bias for relative positions beside the learned positions of ``bert``;
    ``modernbert`` has rotary positions, local attention and a gated feed-forward, in the layout ``pre``."""
    rotary: RotaryConfig = RotaryConfig()
    norm_epsilon: Annotated[float, Field(gt=0.0)] = 1e-12
    """Epsilon of the norms that come from a pretrained encoder; RoBERTa and ModernBERT have 1e-5."""
    conditioning: Literal["adaln-zero", "adaln"] = "adaln-zero"
    """``adaln``: scale and shift only (the paper's eq. 10). ``adaln-zero``: gates as well, all starting at zero."""
    time_conditioning: bool = False
    prefix_tokens: Count = 0
    """Tokens made from the vector and put before the canvas, in addition to the modulation."""
    length_widths: tuple[Positive, ...] | None = None
    """Hidden layers of the head that predicts the length; None for a single one as wide as the denoiser."""
    freeze_token_embeddings: bool = False
    """Whether the token embeddings are not trained; only for those of a pretrained encoder."""
    readout: ReadoutConfig = ReadoutConfig()
    surrogate: SurrogateConfig = SurrogateConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.surrogate.layers and not self.freeze_token_embeddings:
            raise ValueError("surrogate.layers needs freeze_token_embeddings: the surrogate reads the same embeddings")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.architecture == "modernbert" and self.norm != "pre":
            raise ValueError("architecture: modernbert needs norm: pre, its layout")
        if self.architecture == "modernbert" and self.width // self.heads % 2:
            raise ValueError(f"rotary positions need heads of an even width, not of {self.width // self.heads}")
        return self


class ModelConfig(_ModelShape):
    """A denoiser, completely described: a checkpoint holds one."""

    embedding_dim: Positive
    vocabulary_size: Positive
    canvas_length: Positive


class ModelRecipe(_ModelShape):
    """The denoiser of a recipe. What is None is taken from the store."""

    embedding_dim: Positive | None = None
    vocabulary_size: Positive | None = None
    canvas_length: Positive | None = None

    def resolve(self, *, embedding_dim: int, vocabulary_size: int, canvas_length: int) -> ModelConfig:
        """Return the model for vectors, a vocabulary and canvases of these sizes."""
        sizes = {"embedding_dim": embedding_dim, "vocabulary_size": vocabulary_size, "canvas_length": canvas_length}
        for key, size in sizes.items():
            wanted = getattr(self, key)
            if wanted is not None and wanted != size:
                raise ConfigError(
                    f"The recipe says model.{key}: {wanted}, the store has {size}.",
                    f"Remove the key from the recipe, or embed the corpus again with the encoder that has {wanted}.",
                )
        return ModelConfig(**self.model_dump() | sizes)


class NoiseConfig(_Section):
    """The forward process: how much is masked at time t, and how the loss weighs it."""

    schedule: Literal["linear", "loglinear"] = "linear"
    weight: Literal["exact", "paper"] = "exact"
    """``exact``: -alpha'(t) / (1 - alpha(t)), the ELBO's own. ``paper``: 1 / t whatever the schedule."""
    masking: Literal["independent", "count"] = "independent"
    """``independent``: each position is masked by itself, as the forward process says. ``count``: exactly the share t
    of the positions, rounded up; the same bound with less variance, for the linear schedule only."""
    minimum_time: Annotated[float, Field(gt=0.0, lt=1.0)] = 1e-3
    full_mask_share: Share = 0.0
    """Share of samples put at t = 1, where decoding starts. Above zero the loss is no longer the plain ELBO."""
    pad_weight: Annotated[float, Field(ge=0.0)] = 0.1
    """Weight of [PAD] targets in the ``fixed`` canvas."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.masking == "count" and self.schedule != "linear":
            raise ValueError("masking: count needs schedule: linear, whose mask rate is the time itself")
        return self


class StartConfig(_Section):
    """Existing weights that a run starts from. Whatever is not named starts from random weights."""

    encoder: str | None = None
    """An encoder of the same width whose layers and embeddings the denoiser and the surrogate start from."""
    inverter: Path | None = None
    """An inverter whose weights the run starts from, instead of ``encoder``. Parts that it does not have start as in
    a new run; so a surrogate may still start from ``encoder``. Its readout stays as it is unless ``readout`` names
    one."""
    readout: Path | None = None
    """An inverter whose readout is copied. An ``mlp`` is then trained further for ``training.readout.steps``, which
    may be 0. Blocks that the inverter lacks change nothing until they are trained."""


class ReadoutTrainingConfig(_Section):
    """How the readout is fitted, before the denoiser is trained."""

    ridge: Annotated[float, Field(gt=0.0)] = 0.01
    """Penalty of the closed-form fit, per row of the store."""
    rows: Positive = 400_000
    """Rows of the store that the closed-form fit reads at most."""
    steps: Count = 2_000
    """Steps of the ``mlp`` readout; the other kinds take none."""
    batch_size: Positive = 512
    learning_rate: Annotated[float, Field(gt=0.0)] = 3e-3
    sampled_softmax: Count = 1024
    """Random tokens, besides the frequent ones, in the softmax that trains the ``mlp``; 0 for the full vocabulary."""
    frequent_tokens: Positive = 4096
    length_power: Share = 0.0
    """A text of n tokens counts n to the power 1 - this. 0: every token counts the same; 1: every text."""
    gradient_clip: Annotated[float, Field(gt=0.0)] | None = None


class SurrogateTrainingConfig(_Section):
    """How the surrogate is trained, before the denoiser is."""

    steps: Count = 0
    batch_size: Positive = 128
    learning_rate: Annotated[float, Field(gt=0.0)] = 4e-4
    gradient_clip: Annotated[float, Field(gt=0.0)] | None = 1.0


_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}
SpellOutPrecision = BeforeValidator(lambda name: _PRECISIONS.get(name, name) if isinstance(name, str) else name)
"""Accepts the short names of precisions that earlier versions wrote."""


class TrainingConfig(_Section):
    """The optimisation, its length, and what is saved and measured on the way."""

    output: Path = Path("work/run")
    start_from: StartConfig = StartConfig()
    readout: ReadoutTrainingConfig = ReadoutTrainingConfig()
    surrogate: SurrogateTrainingConfig = SurrogateTrainingConfig()
    steps: Positive = 10_000
    batch_size: Positive = 64
    accumulation: Positive = 1
    optimiser: Literal["adamw", "muon"] = "adamw"
    learning_rate: Annotated[float, Field(gt=0.0)] = 5e-4
    muon_learning_rate: Annotated[float, Field(gt=0.0)] = 0.02
    """Learning rate of the hidden matrices under ``optimiser: muon``; everything else takes ``learning_rate``."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    betas: tuple[Share, Share] = (0.9, 0.98)
    schedule: Literal["cosine", "wsd"] = "cosine"
    """``wsd``: warm up, stay constant, decay over the last ``decay_share``. A longer run extends the constant part."""
    warmup_steps: Count = 200
    decay_share: Share = 0.2
    final_learning_rate_share: Share = 0.05
    gradient_clip: Annotated[float, Field(gt=0.0)] = 1.0
    ema_decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.999
    condition_dropout: Share = 0.1
    """Share of samples trained without the vector: the unconditional branch that guidance needs."""
    sampled_softmax: Count = 0
    """Random tokens, besides the frequent ones, in the training softmax; 0 for the full vocabulary."""
    frequent_tokens: Positive = 4096
    seed: Count = 0
    precision: Annotated[Literal["auto", "float32", "bfloat16"], SpellOutPrecision] = "auto"
    """``auto``: bfloat16 where the device has instructions for it, else float32."""
    data_workers: Count = 0
    log_every: Positive = 20
    validate_every: Positive = 500
    free_running_rows: Count = 64
    """Validation rows inverted from the all-masked canvas at each validation; 0 to skip."""
    checkpoint_minutes: Annotated[float, Field(gt=0.0)] = 5.0
    milestones: tuple[Positive, ...] = ()
    """Steps after which a loadable inverter is kept for good."""
    patience: Count = 0
    """Validations without a better ELBO after which training stops early; 0 never stops early."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.warmup_steps >= self.steps:
            raise ValueError(f"warmup_steps {self.warmup_steps} must be less than steps {self.steps}")
        return self


BlindStrategy = Literal["sequential", "euler", "euler-remask", "two-stage", "confidence", "adaptive"]
SearchStrategy = Literal["surrogate", "guided"]
Strategy = Literal[BlindStrategy, SearchStrategy]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
"""How a canvas can be filled. All but ``guided`` work without the encoder; ``surrogate`` needs an inverter that has a
stand-in for it."""
SEARCHES: tuple[str, ...] = get_args(SearchStrategy)
"""Those that change texts and compare their vectors with the one given."""
SAMPLING = ("euler", "euler-remask", "two-stage")
"""Those that draw tokens at random: their hypotheses of one length differ."""


# Likeliest lengths that are decoded where the user does not say how many. More gain little (docs/experiments.md).
_LENGTHS = 3

BATCHES_AT_ONCE = 8
"""Batches of vectors that are planned together: enough to put hypotheses of one length into one batch."""


class _EffortLimits(NamedTuple):
    """When a guided search ends that has not reached its target."""

    calls: int
    patience: int


Effort = Literal["quick", "normal", "thorough"]


class GuidedConfig(_Section):
    """The search with the encoder: how it begins, what it tries, and when it ends."""

    _limits: ClassVar[dict[Effort, _EffortLimits]] = {
        "quick": _EffortLimits(calls=300, patience=16),
        "normal": _EffortLimits(calls=2_000, patience=100),
        "thorough": _EffortLimits(calls=10_000, patience=400),
    }

    effort: Effort = "normal"
    """How long to search for a text that is not recovered exactly: decides ``calls`` and ``patience``."""
    calls: Positive | None = None
    """Texts embedded per vector after which the search ends; None: by the effort."""
    patience: Positive | None = None
    """Rounds without a better hypothesis after which a vector is finished; None: by the effort."""
    rounds: Count | None = None
    """Largest number of rounds; None: no limit of its own."""
    seconds: Annotated[float, Field(gt=0.0)] | None = None
    """Time budget per batch of vectors. With one, the result depends on the machine."""
    target_cosine: Annotated[float, Field(gt=0.0)] = 0.99998
    """A vector whose best hypothesis reaches this is finished. Texts that differ in one small word may reach 0.9999."""
    start: BlindStrategy = "confidence"
    """The blind strategy that makes the first hypotheses."""
    candidates: Positive = 6
    """First hypotheses per vector: the likeliest lengths that differ enough."""
    beam: Positive = 1
    """Hypotheses that single changes are proposed for."""
    parents: Positive = 4
    """Hypotheses whose known changes are combined."""
    proposals: Positive = 16
    """Changed hypotheses that a round embeds, per vector."""
    combinations: Count = 6
    """How many of these may be combinations of changes that were tried before."""
    gradient: bool = True
    """Whether the encoder's gradient proposes substitutions too, where the encoder gives one."""
    fluency: Annotated[float, Field(ge=0.0)] = 0.0005
    """Weight of the denoiser's log-likelihood (nats per text) relative to the cosine, when hypotheses are ranked."""
    plausibility: Annotated[float, Field(ge=0.0)] = 0.0
    """How much the log-likelihood without the vector counts in it, relative to that with the vector."""

    @property
    def call_limit(self) -> int:
        """Texts embedded per vector after which the search ends."""
        return self._limits[self.effort].calls if self.calls is None else self.calls

    @property
    def round_patience(self) -> int:
        """Rounds without a better hypothesis after which a vector is finished."""
        return self._limits[self.effort].patience if self.patience is None else self.patience

    @property
    def round_limit(self) -> int:
        """Largest number of rounds: also that after which the encoder calls must be used up."""
        rounds = -(-self.call_limit // self.proposals) + self.round_patience
        return rounds if self.rounds is None else min(self.rounds, rounds)


class SurrogateSearchConfig(GuidedConfig):
    """The search with the surrogate. Its vectors are not exact, so it matters more what is a likely text."""

    _limits: ClassVar[dict[Effort, _EffortLimits]] = {
        "quick": _EffortLimits(calls=300, patience=8),
        "normal": _EffortLimits(calls=800, patience=20),
        "thorough": _EffortLimits(calls=3_000, patience=80),
    }
    proposals: Positive = 32
    combinations: Count = 16
    fluency: Annotated[float, Field(ge=0.0)] = 0.001
    plausibility: Annotated[float, Field(ge=0.0)] = 1.0


class DecodingConfig(_Section):
    """How vectors are turned into text."""

    strategy: Strategy = "confidence"
    steps: Positive = 8
    """Largest number of passes. ``sequential`` takes one per token, ``two-stage`` one per token and ``steps`` more."""
    candidates: Count = 0
    """Hypotheses per vector, of which the best is kept: its likeliest lengths, and several draws where it samples. 0
    stands for three lengths, or for a single draw."""
    rerank: Count = 0
    """Blind hypotheses per vector that the encoder embeds once; the nearest is kept. 0 does without the encoder."""
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

    @property
    def hypotheses(self) -> int:
        """How many hypotheses of a vector are decoded, unless fewer differ."""
        return self.candidates or (1 if self.strategy in SAMPLING else _LENGTHS)

    @property
    def searches(self) -> bool:
        """Whether texts are changed and embedded again and again, by the encoder or by its surrogate."""
        return self.strategy in SEARCHES

    @property
    def search(self) -> GuidedConfig:
        """The options of the search, if it is one."""
        return self.surrogate if self.strategy == "surrogate" else self.guided

    @property
    def needs_encoder(self) -> bool:
        """Whether the encoder is asked on the way."""
        return self.strategy == "guided" or self.rerank > 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.searches and self.rerank:
            raise ValueError(f"rerank is for blind strategies; {self.strategy} embeds its hypotheses anyway")
        return self


class Recipe(_Section):
    """Everything that ``unembed train`` needs to know."""

    encoder: EncoderConfig = EncoderConfig()
    data: DataConfig = DataConfig()
    model: ModelRecipe = ModelRecipe()
    noise: NoiseConfig = NoiseConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        start, model = self.training.start_from, self.model
        if start.encoder and model.norm != "post" and model.architecture != "modernbert":
            raise ValueError(
                "training.start_from.encoder needs model.norm: post, unless model.architecture is modernbert"
            )
        if model.freeze_token_embeddings and not (start.encoder or start.inverter):
            raise ValueError(
                "model.freeze_token_embeddings needs training.start_from: random embeddings must not be frozen"
            )
        return self


# Keys of earlier versions, and where they are now.
_READOUT_TRAINING = ("ridge", "rows", "steps", "batch_size", "learning_rate", "sampled_softmax", "frequent_tokens")
_MOVED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("model", "initialise_from"): ("training", "start_from", "encoder"),
    ("model", "readout", "start_from"): ("training", "start_from", "readout"),
    **{("model", "readout", key): ("training", "readout", key) for key in _READOUT_TRAINING},
}


def move_old_keys(values: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert a recipe of an earlier version, or the same sections of a checkpoint, to the current keys.

    Returns:
        The values with every moved key in its new section, and a line per key that was moved.
    """
    moved = []
    values = copy.deepcopy(values)
    training = values.get("training")
    if isinstance(training, dict) and isinstance(training.get("start_from"), str):
        training["start_from"] = {"inverter": training["start_from"]}
        moved.append("training.start_from is now training.start_from.inverter")
    elif isinstance(training, dict) and training.get("start_from") is None:
        training.pop("start_from", None)  # a run wrote every key of its recipe, also that it started from nothing
    for old, new in _MOVED.items():
        section = values
        for name in old[:-1]:
            section = section.get(name) if isinstance(section, dict) else None  # type: ignore[assignment]
        if not isinstance(section, dict) or old[-1] not in section:
            continue
        target = values
        for name in new[:-1]:
            target = target.setdefault(name, {}) if isinstance(target, dict) else None  # type: ignore[assignment]
        if isinstance(target, dict):  # else the section is no section, which is what validation will say
            target[new[-1]] = section.pop(old[-1])
            moved.append(f"{'.'.join(old)} is now {'.'.join(new)}")
    return values, moved


def load_recipe(path: str | Path) -> Recipe:
    """Read and validate a recipe: a file, or the name of one that comes with unembed."""
    path = find_recipe(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the recipe {path}: {first_line(error)}.", name_recipes()) from error
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}", name_recipes()) from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} is not a recipe.", f"A recipe has the sections {', '.join(Recipe.model_fields)}.")
    values, moved = move_old_keys(values)
    if moved:
        logger.warning("%s is a recipe of an earlier version: %s.", path, "; ".join(moved))
    return parse(Recipe, values, str(path))


def parse(section: type[T], values: dict[str, Any], where: str) -> T:
    """Validate ``values``; an error says which key of ``where`` is wrong and what was expected."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        lines = [_explain(section, dict(detail)) for detail in error.errors()]
        raise ConfigError(f"{where} is not valid:\n  " + "\n  ".join(lines), "Fix these keys and run again.") from error


def dump_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe as YAML, every key spelled out."""
    write_text(path, yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _explain(section: type[_Section], detail: dict[str, Any]) -> str:
    *parents, key = detail["loc"] or ("",)
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        for parent in parents:
            section = _section_of(section.model_fields[str(parent)].annotation)
        return f"{name}: unknown key; {did_you_mean(str(key), section.model_fields)}"
    message = detail["msg"].removeprefix("Value error, ")
    return (
        f"{name}: {message} (got {detail['input']!r})"
        if not isinstance(detail["input"], dict)
        else f"{name}: {message}"
    )


def _section_of(annotation: Any) -> type[_Section]:
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(option for option in get_args(annotation) if option is not type(None))
    return annotation  # type: ignore[no-any-return]
