"""What a gradient says about exchanging tokens, and which texts share a batch. Knows tensors, no encoder."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

# The length of the shortest row of a padded batch, relative to the longest.
_LEAST_FILLED = 0.75


def best_substitutions(
    gradient: Tensor, current: Tensor, table: Tensor, top: int, forbidden: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate what each substitution of one token would add, to first order.

    Args:
        gradient: (T, W), with respect to the embeddings of the tokens.
        current: (T,) the tokens.
        table: (V, W) the embeddings of all tokens.
        top: substitutes per position.
        forbidden: tokens that are no substitutes.

    Returns:
        The best tokens at each position and their gains, both (T, top), best first.
    """
    products = (gradient @ table.detach().t()).float()
    gains = products - products.gather(1, current[:, None])
    gains[:, list(forbidden)] = -torch.inf
    gains.scatter_(1, current[:, None], -torch.inf)
    best = gains.topk(top)
    return best.indices.cpu().numpy(), best.values.cpu().numpy()


def batches_of_one_length(lengths: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Group row numbers into batches in which every row has the same length, the longest first."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    sorted_lengths = np.asarray(lengths)[order]
    groups = np.split(order, np.flatnonzero(np.diff(sorted_lengths)) + 1) if len(order) else []
    return [group[start : start + batch_size] for group in groups for start in range(0, len(group), batch_size)]


def batches_of_similar_length(lengths: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Group row numbers into batches, the longest first, in which at most a fourth of each row would be padding."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches: list[list[int]] = []
    for row in order.tolist():
        last = batches[-1] if batches else []
        if last and len(last) < batch_size and lengths[row] >= _LEAST_FILLED * lengths[last[0]]:
            last.append(row)
        else:
            batches.append([row])
    return [np.array(batch) for batch in batches]
