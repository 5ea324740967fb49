"""Training samples per second: our step against a plain first implementation of the paper, at the same model size.

The reference, in this file, is what one would write first: every canvas padded to 32 positions, logits over the whole
vocabulary at all of them and then masked, a modulation layer inside each block, trainable token embeddings, AdamW as it
comes. Ours is the step of ``unembed train`` with the minilm recipe, whose readout the reference does without. Both take
the same rows, the same number of times. Then ours again with one of its tricks taken away at a time.
"""

import statistics

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from measure import Figure, Result, finish, interleave, make_parser, spread
from steps import OurStep, add_options, choose_batches, minilm_recipe, open_store
from unembed.canvas import CanvasVocabulary
from unembed.config import ModelRecipe
from unembed.store import Store
from unembed.training.batches import load_batch

TARGET = 2.5


class ReferenceBlock(nn.Module):
    """DiT's block, with the modulation computed where it is used."""

    def __init__(self, config: ModelRecipe) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(config.width, config.heads, batch_first=True)
        self.feedforward_norm = nn.LayerNorm(config.width, elementwise_affine=False)
        self.feedforward = nn.Sequential(
            nn.Linear(config.width, config.feedforward), nn.GELU(), nn.Linear(config.feedforward, config.width)
        )
        self.modulation = nn.Linear(config.width, 6 * config.width)

    def forward(self, hidden: Tensor, c: Tensor) -> Tensor:
        """Map (B, T, W) to (B, T, W) under the condition (B, W)."""
        scale_a, shift_a, gate_a, scale_f, shift_f, gate_f = self.modulation(F.silu(c)).unsqueeze(1).chunk(6, dim=-1)
        normed = self.attention_norm(hidden) * (1 + scale_a) + shift_a
        hidden = hidden + gate_a * self.attention(normed, normed, normed, need_weights=False)[0]
        normed = self.feedforward_norm(hidden) * (1 + scale_f) + shift_f
        updated: Tensor = hidden + gate_f * self.feedforward(normed)
        return updated


class ReferenceModel(nn.Module):
    """The denoiser of the paper's section 3.3 without time conditioning, which ours has not by default either."""

    def __init__(self, config: ModelRecipe, dim: int, vocabulary: CanvasVocabulary, canvas_length: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary.total, config.width)
        self.position_embedding = nn.Embedding(canvas_length, config.width)
        self.condition = nn.Sequential(nn.Linear(dim, config.width), nn.GELU(), nn.Linear(config.width, config.width))
        self.blocks = nn.ModuleList(ReferenceBlock(config) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(config.width)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary.total))
        nn.init.normal_(self.token_embedding.weight, std=0.02)

    def forward(self, canvas: Tensor, embeddings: Tensor) -> Tensor:
        """Return logits over the vocabulary at every position."""
        c = self.condition(F.normalize(embeddings, dim=-1) * embeddings.shape[-1] ** 0.5)
        hidden = self.token_embedding(canvas) + self.position_embedding(torch.arange(canvas.shape[1]))
        for block in self.blocks:
            hidden = block(hidden, c)
        return F.linear(self.final_norm(hidden), self.token_embedding.weight, self.output_bias)


class ReferenceStep:
    """A training step as one writes it first; the moving average is the paper's, and ours has one too."""

    def __init__(self, config: ModelRecipe, store: Store, batches: list[np.ndarray]) -> None:
        torch.manual_seed(0)
        manifest = store.manifest
        self.store, self.batches, self.vocabulary = store, batches, manifest.vocabulary
        self.model = ReferenceModel(config, manifest.encoder.dim, self.vocabulary, manifest.canvas_length)
        self.average = [parameter.detach().clone() for parameter in self.model.parameters()]
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def __call__(self, number: int) -> None:
        """Take the step of batch ``number``."""
        embeddings, tokens = load_batch(self.store, self.batches[number], exact=False)
        times = torch.rand(len(tokens), 1).clamp(min=1e-3)
        masks = torch.rand(tokens.shape) < times
        logits = self.model(tokens.masked_fill(masks, self.vocabulary.mask), embeddings)
        entropies = F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none").view(tokens.shape)
        loss = (entropies * masks / times).sum() / tokens.numel()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        with torch.no_grad():
            for average, parameter in zip(self.average, self.model.parameters(), strict=True):
                average.lerp_(parameter, 1e-4)

    def epoch(self) -> None:
        """Take the steps of all batches."""
        for number in range(len(self.batches)):
            self(number)


def make_variants(store: Store, batches: int, batch_size: int, *, quick: bool) -> dict[str, OurStep | ReferenceStep]:
    """Build the reference, ours, and ours without each trick, all on the same rows."""
    recipe = minilm_recipe(quick=quick)
    exact, mixed = choose_batches(store, batches, batch_size)
    model, noise, training = recipe.model, recipe.noise, recipe.training
    full = training.model_copy(update={"sampled_softmax": 0})
    padded = model.model_copy(update={"canvas": "fixed"})
    trainable = model.model_copy(update={"freeze_token_embeddings": False})
    scratch = {"norm": "pre", "freeze_token_embeddings": False}
    variants: dict[str, OurStep | ReferenceStep] = {
        "reference": ReferenceStep(model, store, mixed),
        "ours (minilm recipe)": OurStep(model, noise, training, store, exact),
        "ours from scratch (pre norm, trainable embeddings)": OurStep(
            model.model_copy(update=scratch), noise, training, store, exact
        ),
        "without exact-length canvases": OurStep(padded, noise, training, store, mixed),
        "without fused AdamW": OurStep(model, noise, training, store, exact, fused=False),
    }
    if training.sampled_softmax:
        variants["without sampled softmax"] = OurStep(model, noise, full, store, exact)
    if model.freeze_token_embeddings:
        variants["without frozen token embeddings"] = OurStep(trainable, noise, training, store, exact)
    return variants


def main() -> None:
    """Measure all variants in turn."""
    parser = make_parser(__doc__, repetitions=3)
    add_options(parser)
    options = parser.parse_args()
    with open_store(options) as store:
        steps = make_variants(store, options.batches, options.batch_size, quick=options.quick)
        for step in steps.values():
            step(0)
        times = interleave({name: step.epoch for name, step in steps.items()}, options.repetitions)
    ours = steps["ours (minilm recipe)"]
    assert isinstance(ours, OurStep)
    samples = sum(map(len, ours.batches))
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    rows = [
        [
            name,
            spread([samples / each for each in seconds]),
            f"{medians['reference'] / medians[name]:.2f}",
            f"{medians['ours (minilm recipe)'] / medians[name]:.2f}",
        ]
        for name, seconds in times.items()
    ]
    finish(
        Result(
            title="Training",
            compared="Our training step against a plain first implementation of the paper (`ReferenceStep` in"
            " `training.py`) at the same model size, on the same rows; then ours with one trick taken away at a time.",
            columns=["variant", "samples/s, median (range)", "against the reference", "against ours"],
            rows=rows,
            figures=[
                Figure("Ours against the reference", medians["reference"] / medians["ours (minilm recipe)"], TARGET)
            ],
            repetitions=options.repetitions,
            sizes=ours.sizes(),
            times=times,
        ),
        options,
    )


if __name__ == "__main__":
    main()
