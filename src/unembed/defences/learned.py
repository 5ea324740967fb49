"""A trained defence: a linear map that keeps neighbours and hinders whoever wants the vectors back."""

from typing import Self

import numpy as np

from unembed.defences.dimensions import PrincipalComponents
from unembed.defences.transform import Layout, Transform, whole
from unembed.measures.vectors import normalise

_STEPS, _BATCH, _LEARNING_RATE = 300, 128, 2e-3
_WIDTH = 256
# Of cosines, when neighbours are compared before and after.
_TEMPERATURE = 0.05
# Weight of the attacker's error beside what neighbours lose.
_HIDING = 1.0


class LearnedMap(Transform):
    """A map to fewer numbers, trained against a network that rebuilds the vectors from them."""

    name = "learned"
    title = "Learned map"
    meaning = "numbers that are kept"
    knowledge = "public"
    narrows = True
    threat = (
        "Against whoever copies the vectors, and may train on vectors that passed through the same map. It was trained "
        "to leave neighbours and to hide the rest; what it hides from other networks is not known."
    )

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse to keep more than there are."""
        return whole(value, 1, dim, "the numbers that are kept")

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Train the map and its opponent in turn, starting from principal components."""
        start = PrincipalComponents.fit(value, vectors, generator).state["directions"]
        matrix = _train(normalise(vectors), start, int(generator.integers(2**31)))
        return cls(value, {"matrix": matrix, "back": np.linalg.pinv(matrix).astype(np.float32)})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Map the vectors."""
        return np.asarray(vectors @ self.state["matrix"])

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Map the query, too."""
        return self.apply(vectors)[:, None]

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Return the shortest vectors that the map would take here."""
        return np.asarray(vectors @ self.state["back"])

    def layout(self, before: Layout) -> Layout:
        """Return fewer numbers."""
        return Layout(round(self.value))


def _train(directions: np.ndarray, start: np.ndarray, seed: int) -> np.ndarray:
    """Return the map (d, k): it loses little of the neighbours, and its opponent rebuilds little."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    random = torch.Generator().manual_seed(seed)
    given = torch.from_numpy(directions)
    matrix = torch.from_numpy(start.copy()).requires_grad_(True)
    opponent = nn.Sequential(nn.Linear(start.shape[1], _WIDTH), nn.GELU(), nn.Linear(_WIDTH, start.shape[0]))
    for weight in opponent.parameters():
        bound = weight.shape[-1] ** -0.5
        nn.init.uniform_(weight, -bound, bound, generator=random)
    ours = torch.optim.Adam([matrix], _LEARNING_RATE)
    theirs = torch.optim.Adam(opponent.parameters(), _LEARNING_RATE)
    count = min(_BATCH, len(given))
    itself = torch.eye(count, dtype=torch.bool)
    for _ in range(_STEPS):
        batch = given[torch.randint(len(given), (count,), generator=random)]
        mapped = F.normalize(batch @ matrix, dim=-1)
        error = 1.0 - F.cosine_similarity(opponent(mapped.detach() * start.shape[1] ** 0.5), batch).mean()
        theirs.zero_grad()
        error.backward()  # type: ignore[no-untyped-call]
        theirs.step()
        before, after = ((part @ part.T / _TEMPERATURE).masked_fill(itself, -1e9) for part in (batch, mapped))
        lost = F.kl_div(after.log_softmax(-1), before.softmax(-1), reduction="batchmean")
        rebuilt = F.cosine_similarity(opponent(mapped * start.shape[1] ** 0.5), batch).mean()
        ours.zero_grad()
        (lost + _HIDING * rebuilt).backward()  # type: ignore[no-untyped-call]
        ours.step()
    return np.asarray(matrix.detach().numpy(), dtype=np.float32)
