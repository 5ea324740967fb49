"""Fits how sure ``unembed fill`` may be of its answers, on texts whose slots are known, and writes ``certainty.json``.

The texts are those of ``filling_texts.py`` for calibration. In a part of the cases the right value is not among the
candidates, and in a part the attacker's template has a mistake. ``filling.py`` reports how well the probabilities
hold on other templates.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from filling_texts import KINDS, Case, make_cases
from unembed.encoders import Encoder, load_encoder
from unembed.filling import certainty
from unembed.inverter import Inverter

WAYS: tuple[certainty.Way, ...] = ("encoder", "surrogate", "likelihood")
# Amounts with dates are left for the report, as slots of a kind that was not calibrated.
CALIBRATED = ("first names", "cities", "amounts", "4 digits", "a name and a city")
_SIZES, _SIZES_OF_TWO = (20, 100, 500), (20, 100, 300)
_STEPS = 200
_SHRINKAGE = 3e-3


@dataclass(frozen=True)
class Judged:
    """The best combinations of a case, and which of them is right."""

    features: np.ndarray
    """(n, F)"""
    right: int | None
    """None if the right one is not among them."""
    count: int
    """Of all combinations."""


def judge_cases(
    inverter: Inverter, encoder: Encoder, cases: Sequence[Case], *, blind: bool
) -> Iterator[tuple[Case, Judged, np.ndarray]]:
    """Fill the slots of each case; yields also the likelihoods alone."""
    vectors = encoder.encode([case.text for case in cases])
    filler, shared = None, None
    for case, vector in zip(cases, vectors, strict=True):
        if filler is None or shared != (case.known, id(case.candidates)):
            given = dict(zip(("x", "y"), case.candidates, strict=False))
            filler = inverter.prepare_filling(case.known, given, encoder=None if blind else encoder)
            shared = (case.known, id(case.candidates))
        task, ranked = filler.rank(vector)
        found = [tuple(task.values(each)) for each in ranked.combinations]
        right = found.index(case.values) if case.values in found else None
        alone = np.empty(0) if ranked.likelihoods is None else ranked.likelihoods
        yield case, Judged(filler.describe(ranked), right, task.count), alone


def fit(judged: Sequence[Judged]) -> dict[str, list[float]]:
    """Fit the weights of the features, and then what tells whether the right answer is among the candidates."""
    width = judged[0].features.shape[1]
    weights = torch.zeros(width, dtype=torch.float64, requires_grad=True)
    found = [each for each in judged if each.right is not None]

    def surprise() -> torch.Tensor:
        losses = [
            torch.nn.functional.cross_entropy(
                (torch.from_numpy(each.features) @ weights.exp())[None], torch.tensor([each.right])
            )
            for each in found
        ]
        # A few hundred cases that are nearly all right would make the weights ever larger.
        return torch.stack(losses).mean() + _SHRINKAGE * weights.square().sum()

    _minimise(weights, surprise)
    scores = weights.detach().exp().numpy()
    rows, labels = [], []
    for each in judged:
        totals = each.features @ scores
        order = np.argsort(-totals, kind="stable")
        rows.append(certainty.evidence(each.features[order], totals[order], each.count))
        labels.append(float(each.right is not None))
    evidence, present = torch.from_numpy(np.stack(rows)), torch.tensor(labels, dtype=torch.float64)
    scale = evidence.std(0).clamp(min=1e-3)
    presence = torch.zeros(evidence.shape[1], dtype=torch.float64, requires_grad=True)

    def doubt() -> torch.Tensor:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(evidence @ (presence / scale), present)
        return loss + _SHRINKAGE * presence.square().sum()

    _minimise(presence, doubt)
    return {
        "scores": [round(value, 4) for value in scores.tolist()],
        "presence": [round(value, 4) for value in (presence / scale).detach().tolist()],
    }


def _minimise(parameter: torch.Tensor, loss: Callable[[], torch.Tensor]) -> None:
    optimiser = torch.optim.LBFGS([parameter], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]


def calibration_cases(seed: int, *, most: int, per_template: int) -> Iterator[list[Case]]:
    """Yield cases of all kinds: lists of several sizes, with and without the right value, with and without mistakes."""
    random = np.random.default_rng(seed)
    for what in CALIBRATED:
        for mistaken in (False, True):
            yield make_cases(
                what,
                random,
                calibration=True,
                listed=per_template,
                unlisted=per_template,
                sizes=_SIZES if len(KINDS[what]) == 1 else _SIZES_OF_TWO,
                mistaken=mistaken,
                most=most,
            )


def main() -> None:
    """Fit all ways of scoring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="where certainty.json is written")
    parser.add_argument("--templates", type=int, default=4, help="of each kind (default: %(default)s)")
    parser.add_argument(
        "--per-template",
        type=int,
        default=2,
        help="texts per template, with the right value listed and without (default: %(default)s)",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    inverter, encoder = Inverter.default(device="cpu"), load_encoder(device="cpu")
    judged: dict[certainty.Way, list[Judged]] = {way: [] for way in WAYS}
    for cases in calibration_cases(0, most=options.templates, per_template=options.per_template):
        for _, each, _ in judge_cases(inverter, encoder, cases, blind=False):
            judged["encoder"].append(each)
        for _, each, alone in judge_cases(inverter, encoder, cases, blind=True):
            judged["surrogate"].append(each)
            judged["likelihood"].append(Judged(alone[:, None].astype(np.float64), each.right, each.count))
        counts = {way: len(each) for way, each in judged.items()}
        print(f"{cases[0].what}: {counts}", file=sys.stderr, flush=True)
    fitted = {way: fit(each) for way, each in judged.items()}
    options.output.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
