"""What a gradient says about exchanging tokens, and batches without padding. Knows tensors, no encoder."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


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
