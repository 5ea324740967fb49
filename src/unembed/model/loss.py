"""The training objectives: the continuous-time ELBO of masked diffusion, on masked positions only; and the writer's.

Knows models, canvases and noise; nothing of stores, optimisers or devices.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.config import TrainingConfig
from unembed.model.candidates import Candidates, draw_candidates, most_frequent
from unembed.model.mdlm import ConditionalMDLM
from unembed.model.noise import NoiseSchedule


class Noised(NamedTuple):
    """A batch after the forward process: what is masked, and how much each row counts."""

    times: Tensor
    weights: Tensor
    masks: Tensor
    dropped: Tensor
    candidates: Candidates | None

    def to(self, device: torch.device) -> "Noised":
        """Move all tensors to a device."""
        return Noised(
            self.times.to(device),
            self.weights.to(device),
            self.masks.to(device),
            self.dropped.to(device),
            self.candidates and self.candidates.to(device),
        )


class Objective:
    """Computes the loss of a batch. All randomness comes from one generator, on the CPU, in a fixed order."""

    def __init__(self, noise: NoiseSchedule, training: TrainingConfig, token_counts: Tensor) -> None:
        self.noise = noise
        self.training = training
        # The frequent tokens are always in the sampled softmax. Of the others, a random few stand for all.
        self._frequent = most_frequent(token_counts, training.frequent_tokens)
        self._outputs = len(token_counts)

    def draw(self, tokens: Tensor, generator: torch.Generator) -> Noised:
        """Draw times, masks, dropped conditions and the sampled softmax's candidates for a batch."""
        rows, length = tokens.shape
        times, weights, masks = self.noise.sample(rows, length, generator)
        dropped = torch.rand(rows, generator=generator) < self.training.condition_dropout
        sampled = self.training.sampled_softmax
        candidates = (
            draw_candidates(tokens[masks], self._frequent, self._outputs, sampled, generator) if sampled else None
        )
        return Noised(times, weights, masks, dropped, candidates)

    def __call__(self, model: ConditionalMDLM, embeddings: Tensor, tokens: Tensor, noised: Noised) -> Tensor:
        """Return the loss of a batch, vectors (B, d) and full canvases (B, T), in nats per token.

        It bounds the negative log-likelihood when the schedule's weight is exact.
        """
        times, weights, masks, dropped, candidates = noised.to(tokens.device)
        canvas = tokens.masked_fill(masks, model.vocabulary.mask)
        condition = model.condition(embeddings, dropped, candidates)
        logits = model.logits(model.hidden(canvas, condition, times), masks, canvas, condition)
        targets = tokens[masks]
        columns = targets if candidates is None else torch.searchsorted(candidates.tokens, targets)
        entropies = cross_entropy(logits, columns)
        rows = masks.nonzero()[:, 0]
        # [PAD] outnumbers everything on a fixed canvas, and says little.
        importance = torch.where(targets == model.vocabulary.pad, self.noise.config.pad_weight, 1.0)
        counted = torch.where(tokens == model.vocabulary.pad, self.noise.config.pad_weight, 1.0).sum()
        return (weights[rows] * importance * entropies).sum() / counted


def next_token_entropies(
    model: ConditionalMDLM, embeddings: Tensor, tokens: Tensor, candidates: Candidates | None = None
) -> Tensor:
    """Return the negative log-probability (B, T) that the writer gives each token of whole texts (B, T).

    Relative to all tokens, or to the candidates of a sampled softmax. As :meth:`Writing.next_tokens` counts it.
    """
    writer, table = model.writer, model.denoiser.token_embedding.weight
    assert writer is not None
    count, length = tokens.shape
    before = torch.cat([writer.start.expand(count, 1, -1), table[tokens[:, :-1]]], dim=1)
    features = writer(before, tokens.new_full((count,), length), writer.condition(embeddings))
    chosen = None if candidates is None else candidates.tokens
    bias = writer.output_bias + model.denoiser.forbidden
    if candidates is not None:
        bias = bias[candidates.tokens] + candidates.correction
    offsets = writer.prior_scale * model.readout(embeddings, None, chosen) + bias
    logits = (features @ model.denoiser.tied_weight(chosen).t()).float() + offsets[:, None]
    columns = tokens if chosen is None else torch.searchsorted(chosen, tokens.contiguous())
    # A text has few tokens, so what they lose for standing there already is added to their columns alone.
    earlier = torch.ones(length, length, device=tokens.device).tril(-1)
    surprise = writer.prior_damping * model.readout.repetition[tokens]
    logits.scatter_add_(2, columns[:, None].expand(-1, length, -1), -surprise[:, None] * earlier)
    return cross_entropy(logits.flatten(0, 1), columns.flatten()).view_as(tokens)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy per position, in float32 whatever the autocast."""
    return F.cross_entropy(logits.float(), targets, reduction="none")
