"""Inverts rows of a store from the all-masked canvas and measures the result. Needs neither texts nor the encoder."""

import numpy as np
import torch

from unembed.config import DecodingConfig
from unembed.decoding import decode
from unembed.measures import exact_match, token_accuracy, token_f1
from unembed.model import ConditionalMDLM, NoiseSchedule
from unembed.store import Store


def measure_free_running(
    model: ConditionalMDLM,
    noise: NoiseSchedule,
    store: Store,
    rows: np.ndarray,
    options: DecodingConfig = DecodingConfig(),  # noqa: B008 - frozen
) -> dict[str, float]:
    """Return mean token accuracy, token F1 and exact match over some rows, lengths guessed by the model."""
    device = next(model.parameters()).device
    references = [ids[:length] for ids, length in zip(store.tokens(rows).tolist(), store.lengths[rows], strict=True)]
    embeddings = torch.from_numpy(store.embeddings(rows)).to(device)
    recovered: dict[int, list[int]] = {}
    for step in decode(model, noise, embeddings, options):
        recovered |= {text.row: text.ids for text in step.finished(model.vocabulary)}
    pairs = [(recovered[row], reference) for row, reference in enumerate(references)]
    measures = {"token_accuracy": token_accuracy, "token_f1": token_f1, "exact_match": exact_match}
    return {name: sum(measure(*pair) for pair in pairs) / len(pairs) for name, measure in measures.items()}
