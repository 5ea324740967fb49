"""Teacher-forced accuracy on texts: what the model guesses while it sees the rest of the true text. No inversion."""

import numpy as np
import torch

from unembed.canvas import close_canvas
from unembed.evaluation.bootstrap import Bootstrap, Figure
from unembed.evaluation.texts import ReferenceTexts
from unembed.inverter import Inverter
from unembed.model.teacher_forcing import MASK_RATES, masked_guesses

_BATCH = 64


@torch.no_grad()
def masked_accuracy(
    inverter: Inverter, references: ReferenceTexts, vectors: np.ndarray, bootstrap: Bootstrap
) -> dict[str, Figure]:
    """Return ``masked_accuracy@r`` over all masked positions, for each mask rate."""
    model, length = inverter.model, references.canvas_length
    lengths = np.array([len(ids) for ids in references.ids])
    tokens = np.full((len(lengths), length), model.vocabulary.pad, dtype=np.int64)
    for row, ids in enumerate(references.ids):
        tokens[row, : len(ids)] = ids
    exact = model.config.canvas == "exact"
    if not exact:
        tokens = close_canvas(tokens, lengths, model.vocabulary)
    draws = np.random.default_rng(bootstrap.seed).random(tokens.shape, dtype=np.float32)
    right, counted = (np.zeros((len(MASK_RATES), len(lengths))) for _ in range(2))
    for width in sorted(set(lengths.tolist())) if exact else [length]:
        group = np.flatnonzero(lengths == width) if exact else np.arange(len(lengths))
        for start in range(0, len(group), _BATCH):
            rows = group[start : start + _BATCH]
            canvas = torch.from_numpy(tokens[rows, :width]).to(inverter.device)
            given = torch.from_numpy(vectors[rows]).float().to(inverter.device)
            condition = model.condition(inverter.map_vectors(given))
            for number, rate in enumerate(MASK_RATES):
                chances = torch.from_numpy(draws[rows, :width]).to(inverter.device)
                hits, masks = masked_guesses(model, inverter.noise, canvas, condition, chances, rate)
                right[number, rows], counted[number, rows] = (part.sum(1).cpu().numpy() for part in (hits, masks))
    return {
        f"masked_accuracy@{rate}": bootstrap.ratio(right[number], counted[number])
        for number, rate in enumerate(MASK_RATES)
    }
