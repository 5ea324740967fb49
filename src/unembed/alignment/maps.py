"""A map from the vectors of one encoder to those of another. Knows nothing of how it is found, or of inverters."""

from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SpaceMap(nn.Module):
    """Takes vectors of the source's encoder (n, d) to where the target's encoder would put the same texts (n, k).

    Both sides are directions: vectors are scaled to length one before and after. A linear map between the centred
    directions, to which a small network may add a correction.
    """

    def __init__(
        self, source_dim: int, target_dim: int, width: int = 0, generator: torch.Generator | None = None
    ) -> None:
        """Make a map that sends every vector to the same place.

        Args:
            source_dim: of the vectors that it takes.
            target_dim: of those that it gives.
            width: of the correction's hidden layer; 0 for none. It corrects nothing until it is trained.
            generator: draws the hidden layer.
        """
        super().__init__()
        self.register_buffer("source_mean", torch.zeros(source_dim))
        self.register_buffer("matrix", torch.zeros(source_dim, target_dim))
        self.register_buffer("target_mean", torch.zeros(target_dim))
        self.source_mean: Tensor
        self.matrix: Tensor
        self.target_mean: Tensor
        self.correction = _Correction(source_dim, width, target_dim, generator) if width else None
        self.requires_grad_(False)

    @classmethod
    def linear(cls, source_mean: np.ndarray, matrix: np.ndarray, target_mean: np.ndarray) -> Self:
        """Make a linear map of its parts: (d,), (d, k), (k,)."""
        space_map = cls(*matrix.shape)
        for name, part in {"source_mean": source_mean, "matrix": matrix, "target_mean": target_mean}.items():
            getattr(space_map, name).copy_(torch.from_numpy(np.asarray(part, dtype=np.float32)))
        return space_map

    def forward(self, vectors: Tensor, kept: Tensor | None = None) -> Tensor:
        """Map vectors (n, d) of any length to directions (n, k); ``kept`` scales the correction's hidden units."""
        centred = F.normalize(vectors.float(), dim=-1) - self.source_mean
        mapped = centred @ self.matrix + self.target_mean
        if self.correction is not None:
            mapped = mapped + self.correction(centred, kept)
        return F.normalize(mapped, dim=-1)

    def map_array(self, vectors: np.ndarray) -> np.ndarray:
        """Map an array (n, d) to an array (n, k)."""
        with torch.no_grad():
            given = torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(self.matrix.device)
            mapped: np.ndarray = self(given).cpu().numpy()
        return mapped


class _Correction(nn.Module):
    """A network with one hidden layer, which adds nothing until it is trained."""

    def __init__(self, source_dim: int, width: int, target_dim: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.width = width
        self.up, self.down = nn.Linear(source_dim, width), nn.Linear(width, target_dim)
        # The entries of a direction are of order 1 / sqrt(d).
        nn.init.normal_(self.up.weight, generator=generator)
        for part in (self.up.bias, self.down.weight, self.down.bias):
            nn.init.zeros_(part)

    def forward(self, centred: Tensor, kept: Tensor | None) -> Tensor:
        hidden = F.gelu(self.up(centred))
        return self.down(hidden if kept is None else hidden * kept)  # type: ignore[no-any-return]
