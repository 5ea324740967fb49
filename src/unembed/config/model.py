"""The shape of a denoiser and its forward process: what a checkpoint holds and a recipe decides."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from unembed.config.base import Count, Positive, Section, Share
from unembed.errors import ConfigError


class ReadoutConfig(Section):
    """The shape of the readout: the vocabulary prior that is read directly off the vector."""

    kind: Literal["none", "linear", "mlp"] = "linear"
    """``linear`` is fitted in closed form. ``mlp`` is trained by gradient after that."""
    bottleneck: Positive = 512
    """Hidden width of the ``mlp`` readout."""
    blocks: Count = 0
    """Residual blocks of the ``mlp`` readout between its hidden layer and the words."""
    expansion: Positive = 4
    """Width of the inner layer of a block, in bottlenecks."""


class SurrogateConfig(Section):
    """The stand-in for the encoder, as wide as the denoiser."""

    layers: Count = 0
    """0 for none."""
    feedforward: Positive | None = None
    """Width of the inner layers; None: that of the denoiser's."""


class WriterConfig(Section):
    """The causal transformer that writes texts from left to right, as wide as the denoiser."""

    layers: Count = 0
    """0 for none."""


class ExtentConfig(Section):
    """The head that says how long a text is, also where it is longer than a canvas."""

    longest: Count = 0
    """The largest number of tokens that it tells apart; 0 for no such head."""
    width: Positive = 256
    """Of its hidden layer."""


class RotaryConfig(Section):
    """The positions of ``architecture: modernbert``: which layers look how far, and how fast positions rotate."""

    global_every: Positive = 3
    """The first layer, and from there every n-th, looks at all tokens."""
    window: Positive = 128
    """In the other layers a token looks at half as many to either side."""
    global_theta: Annotated[float, Field(gt=0.0)] = 160_000.0
    local_theta: Annotated[float, Field(gt=0.0)] = 10_000.0


class _ModelShape(Section):
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
    writer: WriterConfig = WriterConfig()
    extent: ExtentConfig = ExtentConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.surrogate.layers and not self.freeze_token_embeddings:
            raise ValueError("surrogate.layers needs freeze_token_embeddings: the surrogate reads the same embeddings")
        if self.writer.layers and not self.freeze_token_embeddings:
            raise ValueError("writer.layers needs freeze_token_embeddings: the writer reads the same embeddings")
        if self.writer.layers and self.canvas == "fixed":
            raise ValueError("writer.layers needs canvas: exact: the writer is told how long its text is to be")
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


class NoiseConfig(Section):
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
