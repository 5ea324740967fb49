"""Our training step as the loop takes it, on batches that stand for the corpus. Shared by training.py and peak.py."""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from texts import CANVAS_LENGTH, batch_lengths, draw_ids
from unembed.canvas import CanvasVocabulary
from unembed.config import (
    ModelRecipe,
    NoiseConfig,
    Recipe,
    StartConfig,
    SurrogateConfig,
    TrainingConfig,
    WriterConfig,
    load_recipe,
)
from unembed.encoders import EncoderDescription
from unembed.model import NoiseSchedule, Objective
from unembed.store import Manifest, Shard, Store
from unembed.training.batches import BatchPlan, load_batch, step_generator
from unembed.training.compatibility import build_for_store
from unembed.training.optimiser import make_average, make_optimisers
from unembed.training.readout import count_tokens

_VOCABULARY_SIZE = 30_522  # of all-MiniLM-L6-v2
_RECIPE = Path(__file__).parent.parent / "configs" / "minilm.yaml"
_DIM = 384


def minilm_recipe(*, quick: bool) -> Recipe:
    """Return configs/minilm.yaml, or what it comes down to where the file is missing; tiny when ``quick``.

    It has neither surrogate nor writer: they are not part of a step.
    """
    model = ModelRecipe(norm="post", freeze_token_embeddings=True)
    training = TrainingConfig(start_from=StartConfig(encoder="all-MiniLM-L6-v2"), sampled_softmax=2048)
    recipe = Recipe(model=model, training=training)
    if _RECIPE.is_file():
        recipe = load_recipe(_RECIPE)
    without = {"surrogate": SurrogateConfig(), "writer": WriterConfig()}
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update=without)})
    if not quick:
        return recipe
    small = recipe.model.model_copy(update={"layers": 1, "width": 48, "heads": 4, "feedforward": 96})
    few = recipe.training.model_copy(update={"sampled_softmax": 256, "frequent_tokens": 512})
    return recipe.model_copy(update={"model": small, "training": few})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which batches are used."""
    parser.add_argument("--batches", type=int, default=6, help="batches in a timed round (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--store", type=Path, help="take the rows from this store, not from synthetic ones")


@contextmanager
def open_store(options: argparse.Namespace) -> Iterator[Store]:
    """Open the store that the options name, or make a synthetic one for as long as it is needed."""
    if options.quick:
        options.batches, options.batch_size, options.repetitions = 2, 4, 1
        torch.set_num_threads(1)  # tiny operations only lose by sharing, most of all on a busy machine
    if options.store:
        yield Store(options.store)
        return
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = CanvasVocabulary(2_000 if options.quick else _VOCABULARY_SIZE)
        yield make_store(Path(folder), vocabulary, options.batches, options.batch_size)


def make_store(folder: Path, vocabulary: CanvasVocabulary, batches: int, batch_size: int) -> Store:
    """Write a store of full batches of one length each, ids and lengths distributed as in the corpus."""
    randomness = np.random.default_rng(0)
    rows = batches * batch_size
    lengths = np.repeat(batch_lengths(batches), batch_size)
    tokens = draw_ids(rows * CANVAS_LENGTH, vocabulary.size, randomness).reshape(rows, CANVAS_LENGTH)
    tokens[np.arange(CANVAS_LENGTH) >= lengths[:, None]] = vocabulary.pad
    shard = Shard(number=0, rows=rows, lines=rows, tokens_checksum="", embeddings_checksum="")
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / shard.tokens_file, tokens.astype(np.uint16))
    np.save(folder / shard.embeddings_file, randomness.standard_normal((rows, _DIM)).astype(np.float16))
    description = EncoderDescription(
        name="synthetic", revision="", dim=_DIM, prompt=None, pooling="none", normalised=False
    )
    Manifest(
        encoder=description,
        tokenizer_hash="",
        vocabulary_size=vocabulary.size,
        special_ids=vocabulary.special,
        canvas_length=CANVAS_LENGTH,
        tokens_dtype="uint16",
        source_hash="",
        shard_lines=rows,
        complete=True,
        shards=(shard,),
    ).save(folder)
    return Store(folder)


def choose_batches(store: Store, batches: int, batch_size: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose the first batches of an epoch of exact canvases, and the same rows again in batches of mixed lengths."""
    plan = BatchPlan(store.lengths, batch_size, seed=0, one_length=True)
    exact = [plan.rows(number) for number in range(min(batches, plan.per_epoch))]
    mixed = np.random.default_rng(1).permutation(np.concatenate(exact))
    return exact, [mixed[start : start + batch_size] for start in range(0, len(mixed), batch_size)]


class OurStep:
    """The step that ``unembed train`` takes: draw, loss, backward, clip, optimiser, moving average."""

    def __init__(
        self,
        model: ModelRecipe,
        noise: NoiseConfig,
        training: TrainingConfig,
        store: Store,
        batches: list[np.ndarray],
        *,
        fused: bool = True,
    ) -> None:
        torch.manual_seed(0)
        self.model = build_for_store(model, store.manifest)
        self.store, self.batches, self.training = store, batches, training
        counts = count_tokens(store, self.model.denoiser.outputs, exact=model.canvas == "exact")
        if store.manifest.encoder.name == "synthetic":  # few rows say little about frequencies; the ids are the ranks
            counts = torch.arange(self.model.denoiser.outputs, 0, -1)
        self.objective = Objective(NoiseSchedule(noise), training, counts)
        self.optimisers = make_optimisers(self.model, training)
        if not fused:
            self.optimisers = [_unfused(optimiser) for optimiser in self.optimisers]
        self.average = make_average(self.model, training.ema_decay)

    def __call__(self, number: int) -> None:
        """Take the step of batch ``number``; its masks are the same each time."""
        embeddings, tokens = self.load(number)
        noised = self.objective.draw(tokens, step_generator(0, number, 0))
        self.objective(self.model, embeddings, tokens, noised).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), self.training.gradient_clip)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.average.update_parameters(self.model)

    def load(self, number: int) -> tuple[Tensor, Tensor]:
        """Read the vectors and canvases of batch ``number``."""
        return load_batch(self.store, self.batches[number], exact=self.model.config.canvas == "exact")

    def epoch(self) -> None:
        """Take the steps of all batches."""
        for number in range(len(self.batches)):
            self(number)

    def sizes(self) -> dict[str, object]:
        """Describe what is trained on what."""
        config = self.model.config
        return {
            "model": f"{config.layers} x {config.width}, {config.heads} heads, FFN {config.feedforward}",
            "vocabulary": self.model.vocabulary.size,
            "readout": config.readout.kind,
            "sampled softmax": self.training.sampled_softmax,
            "batches a round": len(self.batches),
            "samples a round": sum(map(len, self.batches)),
            "lengths of the batches": sorted(int(self.store.lengths[rows].max()) for rows in self.batches),
            "threads": torch.get_num_threads(),
        }


def _unfused(optimiser: Optimizer) -> Optimizer:
    if not isinstance(optimiser, AdamW):
        return optimiser
    groups = [
        {key: group[key] for key in ("params", "lr", "betas", "weight_decay")} for group in optimiser.param_groups
    ]
    return AdamW(groups)
