"""Inverts rows of a store from the all-masked canvas and measures the result. Needs neither texts nor the encoder."""

import numpy as np
import torch

from unembed.config import DecodingConfig
from unembed.decoding import decode
from unembed.measures import MEASURES, Forms, compare
from unembed.model import ConditionalMDLM, NoiseSchedule
from unembed.store import Store


def measure_free_running(
    model: ConditionalMDLM,
    noise: NoiseSchedule,
    store: Store,
    rows: np.ndarray,
    options: DecodingConfig = DecodingConfig(),  # noqa: B008 - frozen
) -> dict[str, float]:
    """Return the mean of the everyday measures that compare ids over some rows, lengths guessed by the model."""
    device = next(model.parameters()).device
    references = [ids[:length] for ids, length in zip(store.tokens(rows).tolist(), store.lengths[rows], strict=True)]
    embeddings = torch.from_numpy(store.embeddings(rows)).to(device)
    recovered: dict[int, list[int]] = {}
    for step in decode(model, noise, embeddings, options):
        recovered |= {text.row: text.ids for text in step.finished(model.vocabulary)}
    everyday = [measure for measure in MEASURES if measure.everyday]
    compared = compare(Forms([recovered[row] for row in range(len(references))]), Forms(references), everyday)
    return {name: float(values.mean()) for name, values in compared.items()}
