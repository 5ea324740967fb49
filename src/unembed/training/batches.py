"""Which rows make up which batch. A pure function of the seed and the batch's number, so resuming needs no state."""

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from unembed.canvas import close_canvas
from unembed.store import Store


class BatchPlan:
    """Numbers the batches of a store without end, epoch after epoch, each epoch in an order of its own.

    On exact canvases all rows of a batch have one length, so that nothing is padded.
    """

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int, *, one_length: bool) -> None:
        self._groups = (
            [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
            if one_length
            else [np.arange(len(lengths))]
        )
        self._batch_size = batch_size
        self._seed = seed
        self.per_epoch = sum(-(-len(group) // batch_size) for group in self._groups)
        self._epoch = -1
        self._batches: list[np.ndarray] = []

    def rows(self, number: int) -> np.ndarray:
        """Return the rows of batch ``number``."""
        epoch, index = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._shuffle(epoch)
        return self._batches[index]

    def _shuffle(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng((self._seed, epoch))
        batches = []
        for group in self._groups:
            order = random.permutation(group)
            batches += [order[start : start + self._batch_size] for start in range(0, len(order), self._batch_size)]
        return [batches[index] for index in random.permutation(len(batches))]


class BatchDataset(Dataset[tuple[Tensor, Tensor]]):
    """Batch numbers in, (vectors, canvases) out; one item is a whole batch."""

    def __init__(self, store: Store, plan: BatchPlan, *, exact: bool) -> None:
        self.store = store
        self.plan = plan
        self.exact = exact

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        return load_batch(self.store, self.plan.rows(number), exact=self.exact)


def load_batch(store: Store, rows: np.ndarray, *, exact: bool) -> tuple[Tensor, Tensor]:
    """Read some rows: vectors (B, d) and canvases (B, T), cut to their common length or closed with [EOS]."""
    tokens = store.tokens(rows)
    lengths = store.lengths[rows]
    tokens = tokens[:, : int(lengths.max())] if exact else close_canvas(tokens, lengths, store.manifest.vocabulary)
    return torch.from_numpy(store.embeddings(rows)), torch.from_numpy(tokens)


def step_generator(seed: int, step: int, rank: int) -> torch.Generator:
    """Return the randomness of one step of one process: a function of its numbers only."""
    state = int(np.random.SeedSequence((seed, step, rank)).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(state % (1 << 63))
