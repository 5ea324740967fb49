"""Asks the writer about whole texts, and lets it write the end of others. Knows no search."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.guided.hypothesis import Ids
from unembed.engine import Engine
from unembed.model import Writing

_TEXTS_AT_ONCE = 128
# Tokens that are looked at after each beginning.
_NEXT = 48
_LEAST = 1e-9


class Composer:
    """Says how likely texts are, given their vector, and continues beginnings."""

    def __init__(self, writing: Writing, length_scores: Tensor) -> None:
        self._writing = writing
        self._length_scores = length_scores

    @classmethod
    def of(cls, engine: Engine, embeddings: Tensor) -> Self | None:
        """Return what asks an engine's writer about vectors (n, d); None where there is no writer."""
        with torch.no_grad():
            writing = engine.writing(embeddings)
            if writing is None:
                return None
            return cls(writing, engine.length_logits(embeddings).float().log_softmax(-1).cpu())

    @torch.no_grad()
    def log_likelihoods(self, row: int, texts: Sequence[Ids]) -> np.ndarray:
        """Return the log-probability of each text (n,), its length included."""
        likelihoods = np.empty(len(texts))
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(texts):
            by_length.setdefault(len(ids), []).append(number)
        device = self._writing.offsets.device
        for length, numbers in by_length.items():
            for start in range(0, len(numbers), _TEXTS_AT_ONCE):
                part = numbers[start : start + _TEXTS_AT_ONCE]
                canvas = torch.tensor([texts[number] for number in part], device=device)
                likelihoods[part] = self._writing.log_likelihoods(canvas, row).float().cpu().numpy()
            likelihoods[numbers] += float(self._length_scores[row, length - 1])
        return likelihoods

    @torch.no_grad()
    def go_on(
        self, row: int, begun: Ids, length: int, wanted: Sequence[int], bonus: float, count: int, random: np.random.Generator
    ) -> list[Ids]:
        """Draw different ends for a text.

        Args:
            row: of the vector.
            begun: how the text begins.
            length: of the whole text.
            wanted: tokens that should come.
            bonus: what each of them gains in log-probability until it has come.
            count: how many ends.
            random: decides among likely ends.
        """
        writing = self._writing.row(row)
        device = writing.offsets.device
        texts = torch.tensor([[list(begun)]], dtype=torch.long, device=device).view(1, 1, -1)
        lengths = torch.tensor([length], device=device)
        totals = torch.zeros(1, 1, device=device)
        memories = writing.begin()
        tokens = writing.tokens[0]
        asked = torch.zeros(len(tokens), device=device)
        for token in wanted:
            asked += (tokens == token).float()
        for position in range(len(begun), length):
            first = 0 if position == len(begun) else position
            scores = writing.next_tokens(texts, lengths, memories, first)
            if bonus:
                come = (tokens == texts[0, :, len(begun) :, None]).sum(1)
                scores = (scores + bonus * (asked > come)).log_softmax(-1)
            best = scores.topk(min(_NEXT, scores.shape[-1]))
            ahead = totals[..., None] + best.values
            # Drawn without replacement: the likeliest texts after Gumbel noise at each token.
            noise = -torch.log(-torch.log(torch.from_numpy(random.random(ahead.shape)).clamp(_LEAST, 1 - _LEAST)))
            chosen = (ahead + noise.to(ahead)).flatten().topk(min(count, ahead.numel())).indices
            parents, which = chosen // ahead.shape[-1], chosen % ahead.shape[-1]
            totals = ahead.flatten()[chosen][None]
            texts = torch.cat([texts[:, parents], tokens[best.indices[0, parents, which]][None, :, None]], dim=2)
            for memory in memories:
                memory.select(parents)
        return [tuple(ids) for ids in texts[0].tolist()]
