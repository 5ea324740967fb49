"""What the likelihood of a text adds to its score. Knows numbers only, no texts."""

import numpy as np

# The weight of a nat is a share of the best text's distance, 1 - cosine, but not less than a share of the full weight.
_OF_DISTANCE, _LEAST = 1 / 160, 0.2


class FluencyScore:
    """Weighs the fluency of texts of different lengths.

    The fluency is a sum of log-probabilities, so every further token lowers it, even the right one. With it alone, a
    search for a long text would end at a short one. So a token as likely as usual costs nothing, until the text is as
    long as the length head expects. Beyond that, tokens have their full price: otherwise the search collects words.
    """

    def __init__(self, weight: float, expected_length: float = 0.0) -> None:
        """Start with a full price for each token.

        Args:
            weight: of a nat, relative to the cosine.
            expected_length: the number of tokens that the text should have.
        """
        self.weight = self._full = weight
        self.expected_length = expected_length
        self.surprise = 0.0
        """Of a usual token, in nats."""

    def approach(self, cosine: float) -> None:
        """Lower the weight as the best text comes nearer: the nearer it is, the more a gain in cosine tells."""
        self.weight = min(self._full, max(_LEAST * self._full, _OF_DISTANCE * (1.0 - cosine)))

    def __call__(self, fluency: np.ndarray | float, length: np.ndarray | float) -> np.ndarray:
        """Return what texts of this fluency and number of tokens gain."""
        return self.weight * np.asarray(fluency + self.surprise * np.minimum(length, self.expected_length))
