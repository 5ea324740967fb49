"""An attack on mixing: who has the whole store can compute what the vectors were before they were mixed."""

import numpy as np

from unembed.defences.mixing import Mixing, neighbour_means

_ROUNDS = 10


def unmix(stored: np.ndarray, mixing: Mixing) -> np.ndarray:
    """Return what vectors (n, d) were before mixing, estimated from all of the mixed ones.

    A mixed vector is (1 - w) times its own plus w times the mean of its neighbours. The mixed vectors are a first guess
    at the neighbours; each round takes their mean off again and has a better guess.
    """
    guess = stored
    # A share of nearly 1 leaves next to nothing of the vector itself, and dividing by it would only blow up noise.
    own = max(1.0 - mixing.value, 0.2)
    for _ in range(_ROUNDS):
        guess = 0.5 * guess + 0.5 * (stored - mixing.value * neighbour_means(guess)) / own
    return np.asarray(guess, dtype=np.float32)
