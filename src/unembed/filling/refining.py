"""Better texts for free slots, with the encoder: its gradient says which tokens to exchange.

The denoiser writes likely texts, but secrets are rarely likely. So the best fillings are changed token by token, where
the encoder's gradient promises most, as long as that brings their vectors nearer.
"""

from collections.abc import Sequence

import numpy as np

from unembed.decoding import TextOracle
from unembed.filling.likelihood import Combination
from unembed.filling.memory import FilledVectors
from unembed.filling.pieces import read_filled
from unembed.filling.steps import Steps

_ROUNDS = 6
# Fillings that are changed in each round, and tokens that are tried at each of their places.
_PARENTS, _TOKENS = 4, 48


def refine(
    oracle: TextOracle,
    vectors: FilledVectors,
    free: Sequence[int],
    best: Sequence[tuple[Combination, float]],
    target: np.ndarray,
    *,
    calls: int,
    enough: float,
) -> Steps[list[tuple[Combination, float]]]:
    """Improve fillings, best first; texts that are new become candidates of their slots."""
    begun = len(vectors)
    ranked = list(best)
    for _ in range(_ROUNDS):
        if ranked[0][1] >= enough or len(vectors) - begun >= calls:
            break
        changed = _change(oracle, vectors, free, [combination for combination, _ in ranked[:_PARENTS]], target)
        fresh = vectors.missing(changed)[: calls - (len(vectors) - begun)]
        if not fresh:
            break
        cosines = (yield from vectors.embed_in_parts(fresh)) @ target
        before = ranked[0][1]
        ranked = sorted([*ranked, *zip(fresh, cosines.tolist(), strict=True)], key=lambda item: -item[1])
        if ranked[0][1] <= before:
            break
    return ranked


def _change(
    oracle: TextOracle, vectors: FilledVectors, free: Sequence[int], parents: Sequence[Combination], target: np.ndarray
) -> list[Combination]:
    """Return the parents with one token of a free slot exchanged."""
    read = [read_filled(oracle.tokenizer, vectors.template, vectors.values(parent)) for parent in parents]
    hypotheses = [tuple(ids) for ids, _ in read]
    targets = np.repeat(target[None], len(parents), axis=0)
    changed = []
    estimates = oracle.substitutions(hypotheses, targets, _TOKENS)
    for parent, (ids, places), estimate in zip(parents, read, estimates, strict=True):
        if estimate is None:
            continue
        for slot in free:
            own = [ids[place] for place in places[slot]]
            variants = [
                [*own[:index], int(token), *own[index + 1 :]]
                for index, place in enumerate(places[slot])
                for token in estimate[0][place]
                if token >= 0
            ]
            for text in oracle.write([tuple(variant) for variant in variants]):
                if value := text.strip():
                    changed.append((*parent[:slot], vectors.index(slot, value), *parent[slot + 1 :]))
    return changed
