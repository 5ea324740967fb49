"""What attention keeps of the positions before, so that a text can be continued. Sees no tokens."""

import torch
from torch import Tensor


class AttentionMemory:
    """The keys and values of the positions that one layer has seen: (B, heads, positions, head width)."""

    def __init__(self) -> None:
        self._pair: tuple[Tensor, Tensor] | None = None

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of further positions; return all."""
        if self._pair is not None:
            keys, values = torch.cat([self._pair[0], keys], dim=2), torch.cat([self._pair[1], values], dim=2)
        self._pair = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep some rows, or several copies of them."""
        if self._pair is not None:
            self._pair = self._pair[0][rows], self._pair[1][rows]
