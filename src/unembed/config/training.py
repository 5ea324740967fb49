"""How the parts of an inverter are trained. Knows nothing of their shape."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from unembed.config.base import Count, Positive, Section, Share


class StartConfig(Section):
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


class ReadoutTrainingConfig(Section):
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


class SurrogateTrainingConfig(Section):
    """How the surrogate is trained, before the denoiser is."""

    steps: Count = 0
    batch_size: Positive = 128
    learning_rate: Annotated[float, Field(gt=0.0)] = 4e-4
    gradient_clip: Annotated[float, Field(gt=0.0)] | None = 1.0
    distil: bool = False
    """Whether it learns from ``start_from.encoder`` itself instead of the store's vectors: what it makes of every
    token, in every layer if there are as many, and also of changed texts."""


class WriterTrainingConfig(Section):
    """How the writer is trained, after the last step of the denoiser, from whose weights it starts."""

    steps: Count = 0
    batch_size: Positive = 64
    learning_rate: Annotated[float, Field(gt=0.0)] = 7e-4
    gradient_clip: Annotated[float, Field(gt=0.0)] | None = 1.0
    sampled_softmax: Count = 1024
    """Random tokens, besides the frequent ones, in the softmax; 0 for the full vocabulary."""
    frequent_tokens: Positive = 3072


_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}
SpellOutPrecision = BeforeValidator(lambda name: _PRECISIONS.get(name, name) if isinstance(name, str) else name)
"""Accepts the short names of precisions that earlier versions wrote."""


class TrainingConfig(Section):
    """The optimisation, its length, and what is saved and measured on the way."""

    output: Path = Path("work/run")
    start_from: StartConfig = StartConfig()
    readout: ReadoutTrainingConfig = ReadoutTrainingConfig()
    surrogate: SurrogateTrainingConfig = SurrogateTrainingConfig()
    writer: WriterTrainingConfig = WriterTrainingConfig()
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
        if self.surrogate.distil and not self.start_from.encoder:
            raise ValueError("surrogate.distil needs start_from.encoder: the encoder that is distilled")
        return self
