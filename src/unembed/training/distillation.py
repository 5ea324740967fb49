"""Distillation: the surrogate learns from the encoder itself, and not only from the vectors that it gave.

The encoder is at hand as a surrogate of its own size. So it says what it makes of every token in every layer, and what
it makes of texts that nobody wrote: changed ones, as a search tries them.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.errors import ConfigError
from unembed.model.surrogate import Surrogate

# Of a batch, so many texts are changed, and count so much beside those as they are.
_CHANGED_SHARE, _CHANGED_WEIGHT = 0.5, 0.5
# Of the loss: the cosine of vectors, the states of the last layer, those of each other layer, and the difference that
# a change makes to the vector.
_COSINE, _LAST, _INNER, _DIFFERENCE = 10.0, 1.0, 0.3, 5.0
_LEAST_FIDELITY = 0.99
_MOST_REPLACED, _MOST_RESIZED = 0.25, 3


class Distillation:
    """Says how far a surrogate is from its teacher, on texts and on changed ones."""

    def __init__(self, surrogate: Surrogate, teacher: Surrogate, longest: int) -> None:
        """Take both: the teacher is the encoder (:func:`unembed.training.pretrained.load_teacher`)."""
        self._surrogate, self._teacher = surrogate, teacher
        self._longest = longest
        self._layerwise = len(surrogate.blocks) == len(teacher.blocks)

    def loss(self, tokens: Tensor, table: Tensor, random: np.random.Generator) -> Tensor:
        """Return the loss of a batch of one length.

        Args:
            tokens: (B, T) ids.
            table: (V, W) their embeddings, for both.
            random: decides how texts are changed.
        """
        count = max(1, int(_CHANGED_SHARE * len(tokens)))
        changed = torch.from_numpy(change(tokens[:count].cpu().numpy(), self._longest, random)).to(tokens.device)
        loss, ours, theirs = self._compare(table[tokens])
        loss_changed, ours_changed, theirs_changed = self._compare(table[changed])
        missed = (theirs_changed - theirs[:count]) - (ours_changed - ours[:count])
        return loss + _CHANGED_WEIGHT * loss_changed + _DIFFERENCE * missed.square().sum(1).mean()

    def _compare(self, embedded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss on texts, and the vectors that the surrogate and the teacher give them."""
        with torch.no_grad():
            wanted = self._teacher.states(embedded)
            theirs = self._teacher.pool(wanted[-1])
        states = self._surrogate.states(embedded)
        ours = self._surrogate.pool(states[-1])
        loss = _COSINE * (1.0 - (ours * theirs).sum(1).mean()) + _LAST * _unexplained(states[-1], wanted[-1])
        if self._layerwise:
            for state, other in zip(states[:-1], wanted[:-1], strict=True):
                loss = loss + _INNER * _unexplained(state, other)
        return loss, ours, theirs


def _unexplained(states: Tensor, wanted: Tensor) -> Tensor:
    """Return the share of the variance of states that others miss."""
    return F.mse_loss(states.float(), wanted.float()) / wanted.float().var()


def check_teacher(fidelity: float, name: str) -> None:
    """Refuse an encoder that, taken apart, does not give the vectors of the store."""
    if fidelity < _LEAST_FIDELITY:
        raise ConfigError(
            f"'{name}' cannot be distilled: the mean of its last states is not the vector that the store has "
            f"(cosine {fidelity:.3f}).",
            "Remove training.surrogate.distil: the surrogate then learns from the store's vectors alone.",
        )


def change(texts: np.ndarray, longest: int, random: np.random.Generator) -> np.ndarray:
    """Change texts of one length (n, T) in one of the ways that a search does; they may get longer or shorter."""
    length = texts.shape[1]
    kinds = [_replace, _shuffle] if length > 1 else [_replace]
    kinds += [_exchange] if length > 2 else []
    kinds += [_shorten] if length > _MOST_RESIZED else []
    kinds += [_lengthen] if length + _MOST_RESIZED <= longest else []
    return kinds[int(random.integers(len(kinds)))](texts, random)


def _replace(texts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Put tokens of the other texts in place of some."""
    replaced = random.random(texts.shape) < random.uniform(0.0, _MOST_REPLACED)
    replaced[np.arange(len(texts)), random.integers(0, texts.shape[1], len(texts))] = True
    return np.where(replaced, random.choice(texts.ravel(), texts.shape), texts)


def _shuffle(texts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Put tokens into another order: neighbours, or any."""
    furthest = random.choice([2, 4, texts.shape[1]])
    order = np.argsort(np.arange(texts.shape[1]) + furthest * random.random(texts.shape), axis=1)
    return np.take_along_axis(texts, order, axis=1)


def _exchange(texts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Exchange two phrases."""
    a, b, c, d = np.sort(random.choice(texts.shape[1] + 1, 4)).tolist()
    return np.concatenate([texts[:, :a], texts[:, c:d], texts[:, b:c], texts[:, a:b], texts[:, d:]], axis=1)


def _shorten(texts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Leave out some tokens."""
    dropped = random.choice(texts.shape[1], int(random.integers(1, _MOST_RESIZED + 1)), replace=False)
    return np.delete(texts, dropped, axis=1)


def _lengthen(texts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Put in tokens of the other texts."""
    places = random.integers(0, texts.shape[1] + 1, int(random.integers(1, _MOST_RESIZED + 1)))
    return np.insert(texts, places, random.choice(texts.ravel(), (len(texts), len(places))), axis=1)
