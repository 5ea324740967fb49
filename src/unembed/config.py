"""Frozen, validated configuration; YAML in, YAML out. Knows nothing of torch.

A recipe (``configs/*.yaml``) has five sections: ``encoder``, ``data``, ``model``, ``noise`` and ``training``. Every key
has a default, so a recipe states only what it decides. An unknown key is an error that names the nearest valid one.
"""

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unembed.errors import ConfigError, did_you_mean, first_line
from unembed.files import write_text
from unembed.recipes import find_recipe, name_recipes

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


T = TypeVar("T", bound=_Section)


class EncoderConfig(_Section):
    """Which encoder made the vectors, and how it was asked."""

    name: str = "all-MiniLM-L6-v2"
    revision: str | None = None
    """None: whichever revision the store was made with."""
    prompt: str | None = None
    """None: whichever prompt the store was made with."""


class DataConfig(_Section):
    """Where the store lies and which part of it is used."""

    store: Path = Path("work/store")
    canvas_length: Positive = 32
    validation_rows: Positive = 512


class ReadoutConfig(_Section):
    """The vocabulary prior read directly off the vector, fitted before the denoiser is trained."""

    kind: Literal["none", "linear", "mlp"] = "linear"
    ridge: Annotated[float, Field(gt=0.0)] = 0.01
    """Penalty of the closed-form fit, per row of the store."""
    rows: Positive = 400_000
    """Rows of the store that the fit reads at most."""
    bottleneck: Positive = 512
    """Hidden width of the ``mlp`` readout, which is trained by gradient after the closed-form fit."""
    blocks: Count = 0
    """Residual blocks of the ``mlp`` readout between its hidden layer and the words."""
    steps: Count = 2_000
    batch_size: Positive = 512
    learning_rate: Annotated[float, Field(gt=0.0)] = 3e-3
    sampled_softmax: Count = 1024
    """Random tokens beside the frequent ones in the softmax that trains the ``mlp``; 0 for the full vocabulary."""
    frequent_tokens: Positive = 4096
    start_from: Path | None = None
    """An inverter whose readout is taken over; an ``mlp`` is then trained further for ``steps``, which may be 0. Blocks
    that the inverter lacks change nothing until they are trained."""


class RotaryConfig(_Section):
    """The places of ``architecture: modernbert``: which layers look how far, and how fast positions turn."""

    global_every: Positive = 3
    """The first layer, and from there every n-th, looks at all tokens."""
    window: Positive = 128
    """In the other layers a token looks at half as many to either side."""
    global_theta: Annotated[float, Field(gt=0.0)] = 160_000.0
    local_theta: Annotated[float, Field(gt=0.0)] = 10_000.0


class ModelConfig(_Section):
    """The denoiser. ``embedding_dim`` and ``vocabulary_size`` are taken from the store when they are not given."""

    embedding_dim: Positive | None = None
    vocabulary_size: Positive | None = None
    canvas_length: Positive | None = None
    canvas: Literal["exact", "fixed"] = "exact"
    """``exact``: as many positions as the text has tokens, a head on the vector says how many. ``fixed``: always
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
    """Of the norms that a pretrained encoder brings along; RoBERTa and ModernBERT have 1e-5."""
    conditioning: Literal["adaln-zero", "adaln"] = "adaln-zero"
    """``adaln``: scale and shift only (the paper's eq. 10). ``adaln-zero``: gates as well, all starting at zero."""
    time_conditioning: bool = False
    prefix_tokens: Count = 0
    """Tokens made from the vector and put before the canvas, beside the modulation."""
    initialise_from: str | None = None
    """An encoder of the same width whose layers and embeddings the denoiser starts from."""
    freeze_token_embeddings: bool = False
    readout: ReadoutConfig = ReadoutConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        modern = self.architecture == "modernbert"
        if modern and self.norm != "pre":
            raise ValueError("architecture: modernbert needs norm: pre, its layout")
        if modern and self.width // self.heads % 2:
            raise ValueError(f"rotary positions need heads of an even width, not of {self.width // self.heads}")
        if self.initialise_from and self.norm != "post" and not modern:
            raise ValueError("initialise_from needs norm: post, the layout of all its encoders but modernbert")
        if self.freeze_token_embeddings and not self.initialise_from:
            raise ValueError("freeze_token_embeddings needs initialise_from: random embeddings must not be frozen")
        return self

    def without_places(self) -> Self:
        """Return the same model without the folders of this machine that training read from."""
        changes: dict[str, Any] = {"readout": self.readout.model_copy(update={"start_from": None})}
        if self.initialise_from and Path(self.initialise_from).is_dir():
            changes["initialise_from"] = Path(self.initialise_from).resolve().name
        return self.model_copy(update=changes)


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


class TrainingConfig(_Section):
    """The optimisation, its length, and what is saved and measured on the way."""

    output: Path = Path("work/run")
    start_from: Path | None = None
    """An inverter whose weights the run starts from; parts that it does not have start as they always do. Its readout
    stays as it is unless ``model.readout.start_from`` names one."""
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
    """``wsd``: warm up, stay, decay over the last ``decay_share``: a longer run can go on from the stable part."""
    warmup_steps: Count = 200
    decay_share: Share = 0.2
    final_learning_rate_share: Share = 0.05
    gradient_clip: Annotated[float, Field(gt=0.0)] = 1.0
    ema_decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.999
    condition_dropout: Share = 0.1
    """Share of samples trained without the vector: the unconditional branch that guidance needs."""
    sampled_softmax: Count = 0
    """Random tokens beside the frequent ones in the training softmax; 0 for the full vocabulary."""
    frequent_tokens: Positive = 4096
    seed: Count = 0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """``auto``: bf16 where the device computes in it, else fp32."""
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
Strategy = Literal[BlindStrategy, "guided"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
"""How a canvas can be filled. All but ``guided`` work without the encoder."""


BATCHES_AT_ONCE = 8
"""Batches of vectors that are planned together: enough to put hypotheses of one length into one batch."""


class GuidedConfig(_Section):
    """The search with the encoder: how it begins, what it tries, and when it ends."""

    start: BlindStrategy = "confidence"
    """The blind strategy that makes the first hypotheses."""
    candidates: Positive = 6
    """First hypotheses per vector: the likeliest lengths that lie apart."""
    beam: Positive = 2
    """Hypotheses that a round goes on from."""
    proposals: Positive = 64
    """Changed hypotheses that a round embeds, per vector."""
    rounds: Count = 20
    seconds: Annotated[float, Field(gt=0.0)] | None = None
    """Time budget per batch of vectors. With one, the result depends on the machine."""
    target_cosine: Annotated[float, Field(gt=0.0)] = 0.9999
    """A vector whose best hypothesis reaches this is finished."""
    patience: Positive = 10
    """Rounds without a better hypothesis after which a vector is finished."""
    gradient: bool = True
    """Whether the encoder's gradient proposes substitutions too, where the encoder gives one."""
    fluency: Annotated[float, Field(ge=0.0)] = 0.02
    """What a nat per token of the denoiser's own likelihood is worth in cosine, among hypotheses to go on from."""


class DecodingConfig(_Section):
    """How vectors are turned into text."""

    strategy: Strategy = "confidence"
    steps: Positive = 8
    """Passes at most (``sequential`` takes one per token, ``two-stage`` that and ``steps`` more)."""
    candidates: Positive = 1
    """Hypotheses per vector: its likeliest lengths, and in sampling strategies other draws. The best is kept."""
    guidance: Annotated[float, Field(ge=0.0)] = 0.0
    """Strength of classifier-free guidance; a second pass for each when above 0."""
    temperature: Annotated[float, Field(ge=0.0)] = 1.0
    """Of the strategies that sample (``euler``, ``euler-remask``, ``two-stage``); 0 takes the likeliest token."""
    top_k: Count = 0
    """Sample among so many likeliest tokens; 0 for all."""
    seed: Count = 0
    remask_share: Share = 0.05
    """Of the revealed positions, the share that ``euler-remask`` masks again after each pass."""
    remask_threshold: Share | None = None
    """If given, ``euler-remask`` instead masks again whatever is less probable than this."""
    refine_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.3
    """Of the positions, the least confident share that the second stage of ``two-stage`` decodes again."""
    entropy_bound: Annotated[float, Field(ge=0.0)] = 0.5
    """What ``adaptive`` may lose per pass by revealing positions together, in nats."""
    guided: GuidedConfig = GuidedConfig()


class Recipe(_Section):
    """All that ``unembed train`` needs to know."""

    encoder: EncoderConfig = EncoderConfig()
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    noise: NoiseConfig = NoiseConfig()
    training: TrainingConfig = TrainingConfig()


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
        raise ConfigError(f"{path} holds no recipe.", f"Sections: {', '.join(Recipe.model_fields)}.")
    return parse(Recipe, values, str(path))


def parse(section: type[T], values: dict[str, Any], where: str) -> T:
    """Validate ``values``; an error says which key of ``where`` is wrong and what was expected."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        lines = [_explain(section, dict(detail)) for detail in error.errors()]
        raise ConfigError(
            f"{where} is not valid:\n  " + "\n  ".join(lines), "Mend these keys and run again."
        ) from error


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
