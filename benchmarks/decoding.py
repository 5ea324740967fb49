"""Decoding: our strategies against a plain loop like the published demo's, and ONNX Runtime against eager torch.

All variants have the same weights and decode the same vectors to the same lengths. The plain loop runs the whole model
in each pass: modulation and prior again, logits and their softmax at every position. With ``--model`` and ``--texts``
the weights are a trained inverter's and the texts real ones, cut to the canvas, so that token accuracy is measured too;
otherwise the weights are random, which takes the same time and recovers nothing.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from measure import Figure, Result, finish, interleave, make_parser
from steps import minilm_recipe
from texts import CANVAS_LENGTH
from unembed.canvas import CanvasVocabulary
from unembed.config import DecodingConfig, NoiseConfig, parse
from unembed.corpus import read_texts
from unembed.decoding import decode
from unembed.engine import Engine
from unembed.engine.graphs import make_graphs
from unembed.engine.onnx import OnnxEngine
from unembed.evaluation.texts import choose_references
from unembed.inverter import Inverter
from unembed.measures import token_accuracy
from unembed.model import ConditionalMDLM, NoiseSchedule

STRATEGIES = ("sequential", "euler", "euler-remask", "two-stage", "confidence", "adaptive")
EXPORTED = ("sequential", "confidence", "adaptive")
LEFT_TO_RIGHT = "plain loop, left to right"
SURE_FIRST = "plain loop, surest first"
_BATCH_SIZES = (1, 64)
_SEQUENTIAL, _ADAPTIVE, _ONNX, _POINTS_LOST = 2.0, 4.0, 1.8, 1.0


@dataclass(frozen=True)
class Rows:
    """What is decoded: vectors, how long their texts are, and the texts where they are known."""

    vectors: Tensor
    lengths: Tensor
    references: list[list[int]] | None = None

    def first(self, count: int) -> "Rows":
        """Return the first rows."""
        known = None if self.references is None else self.references[:count]
        return Rows(self.vectors[:count], self.lengths[:count], known)

    def batches(self, batch_size: int) -> Iterator[Tensor]:
        """Yield the row numbers of batches of one length, as the decoder forms them."""
        for length in sorted(set(self.lengths.tolist())):
            yield from (self.lengths == length).nonzero()[:, 0].split(batch_size)


@dataclass
class Variant:
    """A way to decode, and what it gave."""

    run: Callable[[Rows, int], dict[int, list[int]]]
    """Decodes rows in batches of a size; returns token ids by row."""
    tokens: dict[int, list[int]] = field(default_factory=dict)

    def __call__(self, rows: Rows, batch_size: int) -> None:
        """Decode, and keep what came out."""
        self.tokens = self.run(rows, batch_size)

    def accuracy(self, rows: Rows) -> float:
        """Return the mean token accuracy over the rows decoded last."""
        assert rows.references is not None
        return statistics.fmean(token_accuracy(self.tokens[row], ids) for row, ids in enumerate(rows.references))


@torch.no_grad()
def plain_logits(model: ConditionalMDLM, vectors: Tensor, canvas: Tensor, time: Tensor) -> Tensor:
    """Run the whole model over canvases (B, T), nothing kept from the pass before: (B, T, outputs)."""
    denoiser = model.denoiser
    hidden = denoiser.hidden(canvas, denoiser.condition(vectors), time)
    logits = F.linear(denoiser.features(hidden), denoiser.tied_weight(), denoiser.bias())
    prior = model.prior_scale * model.readout(vectors)
    shown = canvas < model.vocabulary.size
    if model.readout.gives_prior:
        standing = canvas.masked_fill(~shown, 0)
        prior = prior.scatter_add(1, standing, -model.prior_damping * model.readout.repetition[standing] * shown)
    return torch.add(logits, prior[:, None])


@torch.no_grad()
def plain_loop(
    model: ConditionalMDLM, noise: NoiseSchedule, rows: Rows, batch_size: int, passes: int | None = None
) -> dict[int, list[int]]:
    """Decode one token a pass from left to right, or in so many ``passes`` the surest positions first."""
    tokens_by_row: dict[int, list[int]] = {}
    for batch in rows.batches(batch_size):
        length = int(rows.lengths[batch[0]])
        canvas = torch.full((len(batch), length), model.vocabulary.mask)
        steps = length if passes is None else min(passes, length)
        for step in range(steps):
            masked = canvas == model.vocabulary.mask
            time = noise.time_of(masked.float().mean(1))
            probabilities = plain_logits(model, rows.vectors[batch], canvas, time).softmax(-1)
            confidence, tokens = probabilities.max(-1)
            if passes is None:
                where = torch.zeros_like(masked)
                where[:, step] = True
            else:
                count = length * (step + 1) // steps - length * step // steps
                surest = confidence.masked_fill(~masked, -1.0).topk(count).indices
                where = torch.zeros_like(masked).scatter_(1, surest, True)
            canvas = torch.where(where, tokens, canvas)
        tokens_by_row |= dict(zip(batch.tolist(), canvas.tolist(), strict=True))
    return tokens_by_row


def our_loop(
    engine: Engine, noise: NoiseSchedule, options: DecodingConfig, rows: Rows, batch_size: int
) -> dict[int, list[int]]:
    """Decode with one of our strategies."""
    tokens_by_row: dict[int, list[int]] = {}
    lengths = None if engine.config.canvas == "fixed" else rows.lengths
    for step in decode(engine, noise, rows.vectors, options, lengths=lengths, batch_size=batch_size):
        for index in step.final.nonzero()[:, 0].tolist():
            tokens_by_row[int(step.rows[index])] = step.canvas[index].tolist()
    return tokens_by_row


def make_variants(model: ConditionalMDLM, noise: NoiseSchedule) -> dict[str, Variant]:
    """Return every way to decode, by name."""
    options = {name: parse(DecodingConfig, {"strategy": name}, "the options") for name in STRATEGIES}
    steps = DecodingConfig().steps
    variants = {
        LEFT_TO_RIGHT: Variant(lambda rows, size: plain_loop(model, noise, rows, size)),
        SURE_FIRST: Variant(lambda rows, size: plain_loop(model, noise, rows, size, steps)),
    }
    exported = OnnxEngine(model, make_graphs(model, "int8"))
    laid_out = model.lay_out_for_decoding()
    engines: list[tuple[Engine, tuple[str, ...], str]] = [
        (laid_out, STRATEGIES, ""),
        (exported, EXPORTED, ", ONNX int8"),
    ]
    for engine, names, suffix in engines:
        for name in names:
            variants[name + suffix] = Variant(partial(our_loop, engine, noise, options[name]))
    return variants


def random_rows(options: argparse.Namespace) -> tuple[ConditionalMDLM, NoiseSchedule, dict[int, Rows]]:
    """Make a model of the real shape with random weights, and vectors of texts that fill its canvas."""
    torch.manual_seed(0)
    vocabulary = CanvasVocabulary(2_000 if options.quick else 30_522)
    config = minilm_recipe(quick=options.quick).model.resolve(
        embedding_dim=384, vocabulary_size=vocabulary.size, canvas_length=CANVAS_LENGTH
    )
    model = ConditionalMDLM(config, vocabulary).eval()
    rows = Rows(torch.randn(options.count, 384), torch.full((options.count,), CANVAS_LENGTH))
    return model, NoiseSchedule(NoiseConfig()), {1: rows.first(options.single), 64: rows}


def real_rows(options: argparse.Namespace) -> tuple[ConditionalMDLM, NoiseSchedule, dict[int, Rows]]:
    """Load an inverter, and embed texts that fill its canvas."""
    inverter = Inverter.from_pretrained(options.model, device="cpu")
    config = inverter.info.model
    length = config.canvas_length
    references = choose_references(
        read_texts(options.texts), inverter.tokenizer, protocol="canvas", canvas_length=length, limit=options.count
    )
    encoder = inverter.load_encoder(device="cpu")
    inverter.check_encoder(encoder)
    vectors = torch.from_numpy(encoder.encode(references.texts)).float()
    rows = Rows(vectors, torch.full((len(vectors),), length), references.ids)
    return inverter.model, inverter.noise, {1: rows.first(options.single), 64: rows}


def main() -> None:
    """Measure all variants in turn, one text at a time and in batches."""
    parser = make_parser(__doc__, repetitions=3)
    parser.add_argument("--model", help="a trained inverter, instead of random weights")
    parser.add_argument("--texts", type=Path, help="the texts that it is to recover")
    parser.add_argument("--count", type=int, default=64, help="texts decoded in batches (default: %(default)s)")
    parser.add_argument("--single", type=int, default=4, help="texts decoded one by one (default: %(default)s)")
    options = parser.parse_args()
    if bool(options.model) != bool(options.texts):
        parser.error("--model needs --texts, and --texts needs --model")
    if options.quick:
        options.count, options.single, options.repetitions = 4, 2, 1
        torch.set_num_threads(1)  # tiny operations only lose by sharing, most of all on a busy machine
    model, noise, rows = (real_rows if options.model else random_rows)(options)
    variants = make_variants(model, noise)
    for variant in variants.values():
        variant(rows[1].first(1), 1)
    times = {
        size: interleave(
            {f"{name}, batch {size}": partial(variant, rows[size], size) for name, variant in variants.items()},
            options.repetitions,
        )
        for size in _BATCH_SIZES
    }
    # Seconds a text; the last batch size is the one whose tokens the variants still hold.
    seconds = {
        (name, size): statistics.median(times[size][f"{name}, batch {size}"]) / len(rows[size].lengths)
        for name in variants
        for size in _BATCH_SIZES
    }
    everything = rows[_BATCH_SIZES[-1]]
    accuracies = {name: variant.accuracy(everything) for name, variant in variants.items()} if options.model else {}
    finish(
        Result(
            title="Decoding",
            compared="Our strategies against a plain loop like the published demo's (`plain_loop` in `decoding.py`: the"
            " whole model in each pass, logits and softmax at every position), and ONNX Runtime with 8-bit integers"
            " against eager torch. The same weights, vectors and lengths.",
            columns=[
                "variant",
                *(f"ms a text, batch {size}" for size in _BATCH_SIZES),
                *(f"times as fast as the {LEFT_TO_RIGHT}, batch {size}" for size in _BATCH_SIZES),
                *([f"tokens as in the {LEFT_TO_RIGHT}", "token accuracy"] if accuracies else []),
            ],
            rows=[
                [
                    name,
                    *(f"{1000 * seconds[name, size]:,.1f}" for size in _BATCH_SIZES),
                    *(f"{seconds[LEFT_TO_RIGHT, size] / seconds[name, size]:.2f}" for size in _BATCH_SIZES),
                    *(
                        [f"{agreement(variant, variants[LEFT_TO_RIGHT]):.1%}", f"{accuracies[name]:.3f}"]
                        if accuracies
                        else []
                    ),
                ]
                for name, variant in variants.items()
            ],
            figures=make_figures(seconds, accuracies),
            repetitions=options.repetitions,
            sizes={
                "model": f"{model.config.layers} x {model.config.width}, vocabulary {model.vocabulary.size},"
                f" {options.model or 'random weights'}",
                "steps": DecodingConfig().steps,
                **{
                    f"at batch {size}": f"n = {len(part.lengths)} texts of {sorted(set(part.lengths.tolist()))} tokens"
                    for size, part in rows.items()
                },
                "threads": torch.get_num_threads(),
            },
            times={name: each for group in times.values() for name, each in group.items()},
            notes=[
                f"Token accuracy is free-running over n = {len(everything.lengths)} texts of {options.texts.name}, cut"
                " to the canvas, so that their length is known."
            ]
            if accuracies
            else ["Random weights: `adaptive` takes all its passes, as it does on the hardest texts."],
        ),
        options,
    )


def make_figures(seconds: dict[tuple[str, int], float], accuracies: dict[str, float]) -> list[Figure]:
    """Return what has a target: ratios of times, at the batch size or strategy where we gain least."""

    def gain(name: str) -> float:
        return min(seconds[LEFT_TO_RIGHT, size] / seconds[name, size] for size in _BATCH_SIZES)

    onnx = {name: seconds[name, 1] / seconds[f"{name}, ONNX int8", 1] for name in EXPORTED}
    figures = [
        Figure(
            f"`sequential` against the {LEFT_TO_RIGHT}, batch 1 or 64, whichever gains less",
            gain("sequential"),
            _SEQUENTIAL,
        ),
        Figure(
            f"`adaptive` against the {LEFT_TO_RIGHT}, batch 1 or 64, whichever gains less", gain("adaptive"), _ADAPTIVE
        ),
        Figure(
            f"ONNX int8 against eager at batch 1 ({min(onnx, key=onnx.__getitem__)}, which gains least)",
            min(onnx.values()),
            _ONNX,
        ),
    ]
    if accuracies:
        better = 100 * (accuracies["adaptive"] - accuracies[LEFT_TO_RIGHT])
        lost = max(100 * (accuracies[name] - accuracies[f"{name}, ONNX int8"]) for name in EXPORTED)
        figures += [
            Figure(f"Points of token accuracy by which `adaptive` is better than the {LEFT_TO_RIGHT}", better, 0.0),
            Figure(
                "Points of token accuracy lost by ONNX int8, most of all strategies", lost, _POINTS_LOST, at_least=False
            ),
        ]
    return figures


def agreement(first: Variant, second: Variant) -> float:
    """Return the share of tokens that two variants have in common, position by position."""
    pairs = [
        (ours, theirs)
        for row, tokens in first.tokens.items()
        for ours, theirs in zip(tokens, second.tokens[row], strict=True)
    ]
    return statistics.fmean(ours == theirs for ours, theirs in pairs)


if __name__ == "__main__":
    main()
