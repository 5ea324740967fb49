"""Teacher-forced measures on held-out rows, with the same masks every time. Knows no decoding.

``masked_accuracy@r`` is the accuracy at positions masked at rate r while the rest of the true text is visible. It is
not the accuracy of an inversion, which sees none of the text.
"""

import numpy as np
import torch

from unembed.config import NoiseConfig, TrainingConfig
from unembed.model import ConditionalMDLM, NoiseSchedule, Objective
from unembed.model.teacher_forcing import MASK_RATES, masked_guesses
from unembed.store import Store
from unembed.training.batches import BatchPlan, load_batch, step_generator

_SEED = 20_240_229
_BATCH = 64


def validation_rows(store: Store, count: int) -> np.ndarray:
    """Choose the rows that every validation uses."""
    chosen = np.random.default_rng(_SEED).permutation(len(store))[:count]
    return np.sort(chosen)


class Validation:
    """Measures a model on fixed rows under fixed masks, always with the full vocabulary and the whole condition."""

    def __init__(self, store: Store, rows: np.ndarray, noise: NoiseSchedule, training: TrainingConfig) -> None:
        self.store = store
        self.rows = rows
        self.noise = noise
        # The bound does not depend on the schedule. So, whatever the training weighs and samples, it is measured in the
        # way with the least variance, per token of the text.
        measure = NoiseSchedule(NoiseConfig(schedule="linear", masking="count", pad_weight=0.0))
        plain = training.model_copy(update={"sampled_softmax": 0, "condition_dropout": 0.0})
        self._objective = Objective(measure, plain, torch.zeros(store.manifest.vocabulary.total))

    @torch.no_grad()
    def __call__(self, model: ConditionalMDLM) -> dict[str, float]:
        """Return the ELBO in nats per token, masked accuracies, and how often the length head is right."""
        device = next(model.parameters()).device
        exact = model.config.canvas == "exact"
        plan = BatchPlan(self.store.lengths[self.rows], _BATCH, _SEED, one_length=exact)
        sums: dict[str, float] = {}
        counts: dict[str, float] = {}

        def add(name: str, value: float, count: float) -> None:
            sums[name] = sums.get(name, 0.0) + value
            counts[name] = counts.get(name, 0.0) + count

        for number in range(plan.per_epoch):
            rows = self.rows[plan.rows(number)]
            embeddings, tokens = (part.to(device) for part in load_batch(self.store, rows, exact=exact))
            generator = step_generator(_SEED, number, 0)
            noised = self._objective.draw(tokens, generator)
            # The model gets the time of a canvas from the schedule that it was trained with.
            times = self.noise.time_of(noised.times)
            elbo = self._objective(model, embeddings, tokens, noised._replace(times=times))
            real = float((tokens != model.vocabulary.pad).sum())
            add("elbo", float(elbo) * real, real)
            if exact:
                guessed = model.length_logits(embeddings).argmax(1) + 1
                add("length_accuracy", float((guessed == tokens.shape[1]).sum()), len(rows))
            condition = model.condition(embeddings)
            draws = torch.rand(tokens.shape, generator=generator).to(device)
            for rate in MASK_RATES:
                right, counted = masked_guesses(model, self.noise, tokens, condition, draws, rate)
                add(f"masked_accuracy@{rate}", float(right.sum()), float(counted.sum()))
        return {name: sums[name] / max(counts[name], 1.0) for name in sums}
