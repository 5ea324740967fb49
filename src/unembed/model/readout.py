"""The readout: which tokens a vector suggests, without their order. Knows nothing of canvases or transformers.

A closed-form ridge regression from the vector to the bag of tokens takes seconds and already names many of a text's
words. The denoiser adds it to its logits as a prior, computed once per vector; it is also usable alone.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.config import ReadoutConfig
from unembed.errors import ConfigError
from unembed.model.candidates import Candidates

# Below this the ridge estimate is noise; it also keeps the logarithm finite.
MINIMUM_PROBABILITY = 1e-4
# A token that was hardly ever seen is assumed to return as content words do: one occurrence in twenty is a return.
_USUAL_RETURNS, _SEEN_BEFORE = 0.05, 20.0


class Readout(nn.Module, ABC):
    """Maps vectors (B, d) to log-priors over what a canvas may hold (B, outputs).

    It knows the encoder's ``words`` only. The ids behind them, [EOS] and [PAD] of a fixed canvas, are no words of a
    text and stand on nearly every canvas: their log-prior is 0.
    """

    gives_prior: ClassVar[bool] = True

    def __init__(self, words: int, outputs: int) -> None:
        super().__init__()
        self.words = words
        self.outputs = outputs
        self.register_buffer("base", torch.full((words,), -math.log(words)))
        self.base: Tensor
        """Log-prior of each word without a vector."""
        self.register_buffer("repetition", torch.full((words,), -math.log(_USUAL_RETURNS)))
        self.repetition: Tensor
        """How surprising it is, in nats, that an occurrence of a token is not the first of its text."""

    def forward(self, embeddings: Tensor, dropped: Tensor | None = None, tokens: Tensor | None = None) -> Tensor:
        """Return :meth:`log_prior`."""
        return self.log_prior(embeddings, dropped, tokens)

    def log_prior(self, embeddings: Tensor, dropped: Tensor | None = None, tokens: Tensor | None = None) -> Tensor:
        """Return the log-prior of each token given each vector.

        Args:
            embeddings: (B, d).
            dropped: (B,) rows that get the base rates.
            tokens: a choice of ids in ascending order. Where all of them are words, the prior need not be normalised:
                a softmax over the choice does not depend on a constant per row.
        """
        words = None if tokens is None else tokens[tokens < self.words]
        # In float32 whatever the autocast: the logarithm of a small probability magnifies its error.
        with torch.autocast(embeddings.device.type, enabled=False):
            prior = self._word_prior(self.features(embeddings.float()), words)
        if dropped is not None:
            prior = torch.where(dropped[:, None], self.base if words is None else self.base[words], prior)
        return F.pad(prior, (0, (self.outputs if tokens is None else len(tokens)) - prior.shape[1]))

    def word_log_probabilities(self, embeddings: Tensor) -> Tensor:
        """Return the log-prior of the words alone: (B, words)."""
        return self.log_prior(embeddings)[:, : self.words]

    def features(self, embeddings: Tensor) -> Tensor:
        """Return what the last layer reads of each vector."""
        return scale_to_sphere(embeddings)

    @abstractmethod
    def fit(self, batches: Iterator[tuple[Tensor, Tensor]], ridge: float) -> None:
        """Fit in closed form.

        Args:
            batches: pairs of vectors (n, d) and token ids (n, T); ids outside the vocabulary are padding.
            ridge: penalty per row.
        """

    @abstractmethod
    def word_scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the linear map from :meth:`features` to how much each of these words (n,) stands out.

        That is its log-prior minus half of its log base rate, up to a function that keeps the order.

        Returns:
            Weight (n, features) and bias (n,).
        """

    @abstractmethod
    def _word_prior(self, features: Tensor, words: Tensor | None) -> Tensor:
        """Return the log-prior of all words, or of a choice."""


class NoReadout(Readout):
    """Says nothing: the denoiser works without a prior."""

    gives_prior = False

    def log_prior(self, embeddings: Tensor, dropped: Tensor | None = None, tokens: Tensor | None = None) -> Tensor:
        """Return 0 for every token: (B, 1)."""
        return embeddings.new_zeros(len(embeddings), 1)

    def fit(self, batches: Iterator[tuple[Tensor, Tensor]], ridge: float) -> None:
        """Do nothing."""

    def word_log_probabilities(self, embeddings: Tensor) -> Tensor:
        """Refuse: there is no readout to ask."""
        raise _no_readout()

    def word_scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Refuse: there is no readout to ask."""
        raise _no_readout()

    def _word_prior(self, features: Tensor, words: Tensor | None) -> Tensor:
        raise _no_readout()


class LinearReadout(Readout):
    """A ridge regression to the probability that a text holds a token, fitted in closed form."""

    def __init__(self, embedding_dim: int, words: int, outputs: int) -> None:
        super().__init__(words, outputs)
        self.linear = nn.Linear(embedding_dim, words)
        self.requires_grad_(False)

    @torch.no_grad()
    def fit(self, batches: Iterator[tuple[Tensor, Tensor]], ridge: float) -> None:
        """Fit the regression and the base rates in one pass over the batches."""
        rates, regression = _TokenRates(self.words), _RidgeRegression()
        for embeddings, tokens in batches:
            bags = bag_of_tokens(tokens, self.words)
            rates.add(tokens, bags)
            regression.add(scale_to_sphere(embeddings), bags)
        self.base.copy_(rates.presence().log())
        self.repetition.copy_(rates.repetition())
        weight, bias = regression.solve(ridge)
        self.linear.weight.copy_(weight)
        self.linear.bias.copy_(bias)

    def word_scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of the regression, divided by the root of the base rates: it gives probabilities."""
        spread = (self.base[tokens] / 2).exp()
        return self.linear.weight[tokens].float() / spread[:, None], self.linear.bias[tokens].float() / spread

    def _word_prior(self, features: Tensor, words: Tensor | None) -> Tensor:
        return _columns(self.linear, features, words).clamp_(MINIMUM_PROBABILITY, 1.0).log_()


class MlpReadout(Readout):
    """A hidden layer, residual blocks and a softmax over the words, trained by gradient from the base rates."""

    def __init__(self, config: ReadoutConfig, embedding_dim: int, words: int, outputs: int) -> None:
        super().__init__(words, outputs)
        width = config.bottleneck
        self.hidden = nn.Linear(embedding_dim, width)
        self.blocks = nn.ModuleList(_Block(width, config.expansion * width) for _ in range(config.blocks))
        self.out = nn.Linear(width, words)
        self.requires_grad_(False)

    def features(self, embeddings: Tensor) -> Tensor:
        """Return what the last layer reads of each vector."""
        features = F.gelu(self.hidden(scale_to_sphere(embeddings)))
        for block in self.blocks:
            features = block(features)
        return features

    @torch.no_grad()
    def fit(self, batches: Iterator[tuple[Tensor, Tensor]], ridge: float) -> None:
        """Fit the base rates, from which training starts. There is nothing that a ridge could penalise."""
        rates = _TokenRates(self.words)
        for _, tokens in batches:
            rates.add(tokens, bag_of_tokens(tokens, self.words))
        presence = rates.presence()
        self.base.copy_((presence / presence.sum()).log())
        self.repetition.copy_(rates.repetition())
        self.out.bias.copy_(self.base)
        self.out.weight.mul_(0.1)

    def bag_loss(
        self, embeddings: Tensor, tokens: Tensor, candidates: Candidates | None = None, length_power: float = 0.0
    ) -> Tensor:
        """Cross-entropy of the softmax against the bag of tokens: what training minimises.

        A text of n tokens counts n to the power 1 - ``length_power``.
        """
        real = tokens < self.words
        columns = tokens.masked_fill(~real, 0)
        chosen = None if candidates is None else candidates.tokens
        scores = _columns(self.out, self.features(embeddings.float()), chosen).float()
        if candidates is not None:
            scores = scores + candidates.correction
            columns = torch.searchsorted(candidates.tokens, columns).masked_fill(~real, 0)
        likelihoods = (F.log_softmax(scores, dim=-1).gather(1, columns) * real).sum(1)
        lengths = real.sum(1)
        importance = lengths.clamp(min=1).float() ** -length_power
        return -(likelihoods * importance).sum() / (lengths * importance).sum()

    def word_scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of the last layer, less half of the base rates: it gives logits."""
        return self.out.weight[tokens].float(), self.out.bias[tokens].float() - self.base[tokens] / 2

    def _word_prior(self, features: Tensor, words: Tensor | None) -> Tensor:
        if words is None:
            return F.log_softmax(self.out(features), dim=-1)
        if self.outputs == self.words:
            return _columns(self.out, features, words)
        # A fixed canvas scores [EOS] and [PAD] too. Their log-prior is 0, so the words' must be normalised.
        return F.log_softmax(self.out(features), dim=-1).index_select(1, words)


class _Block(nn.Module):
    """A residual step of the ``mlp``, which changes nothing until it is trained."""

    def __init__(self, width: int, inner_width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner_width)
        self.down = nn.Linear(inner_width, width)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.down(F.gelu(self.up(self.norm(features))))  # type: ignore[no-any-return]


def make_readout(config: ReadoutConfig, embedding_dim: int, words: int, outputs: int) -> Readout:
    """Return a readout of the kind that the config names, frozen."""
    if config.kind == "none":
        return NoReadout(words, outputs)
    if config.kind == "linear":
        return LinearReadout(embedding_dim, words, outputs)
    return MlpReadout(config, embedding_dim, words, outputs)


class _TokenRates:
    """Counts how many texts hold each token, and how often it returns within a text."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._rows = 0
        self._texts = torch.zeros(words, dtype=torch.float64)
        self._occurrences = torch.zeros(words, dtype=torch.float64)

    def add(self, tokens: Tensor, bags: Tensor) -> None:
        """Count a batch of texts (n, T) and their bags of tokens."""
        self._texts += torch.bincount(bags.indices()[1], minlength=self._words)
        self._occurrences += torch.bincount(tokens[tokens < self._words], minlength=self._words)
        self._rows += len(tokens)

    def presence(self) -> Tensor:
        """Return the share of the texts that hold each token."""
        return (self._texts / max(self._rows, 1)).clamp(min=MINIMUM_PROBABILITY).float()

    def repetition(self) -> Tensor:
        """Return how surprising it is, in nats, that an occurrence is not the first of its text."""
        returns = self._occurrences - self._texts + _SEEN_BEFORE * _USUAL_RETURNS
        return -(returns / (self._occurrences + _SEEN_BEFORE)).log()


class _RidgeRegression:
    """Adds up the moments of a linear regression, batch by batch."""

    def __init__(self) -> None:
        self._rows = 0
        self._gram: Tensor | float = 0.0
        self._moments: Tensor | float = 0.0

    def add(self, inputs: Tensor, targets: Tensor) -> None:
        """Add inputs (n, d) and sparse targets (n, k)."""
        inputs = torch.cat([inputs, inputs.new_ones(len(inputs), 1)], dim=1)
        self._gram = self._gram + inputs.T @ inputs
        self._moments = self._moments + torch.sparse.mm(targets.t(), inputs)  # (k, d + 1)
        self._rows += len(inputs)

    def solve(self, ridge: float) -> tuple[Tensor, Tensor]:
        """Return weight (k, d) and bias (k,) under a penalty per row."""
        gram, moments = torch.as_tensor(self._gram), torch.as_tensor(self._moments)
        penalty = ridge * self._rows * torch.eye(len(gram), dtype=torch.float64)
        penalty[-1, -1] = 0.0  # the intercept is not shrunk: it carries the base rate
        solution = torch.linalg.solve(gram.double() + penalty, moments.T.double())  # (d + 1, k)
        return solution[:-1].T, solution[-1]


def _columns(layer: nn.Linear, inputs: Tensor, tokens: Tensor | None) -> Tensor:
    """Apply a layer, or only those of its output columns that are asked for."""
    if tokens is None:
        return layer(inputs)  # type: ignore[no-any-return]
    return F.linear(inputs, layer.weight.index_select(0, tokens), layer.bias[tokens])


def _no_readout() -> ConfigError:
    return ConfigError("This inverter has no readout.", "Train one with model.readout.kind: linear or mlp.")


def scale_to_sphere(embeddings: Tensor) -> Tensor:
    """Scale vectors to the norm sqrt(d), so that their entries are of order one."""
    return F.normalize(embeddings, dim=-1) * math.sqrt(embeddings.shape[-1])


def bag_of_tokens(tokens: Tensor, words: int) -> Tensor:
    """Return which tokens each row holds: a sparse (rows, words) matrix of zeros and ones."""
    real = tokens < words
    rows = torch.arange(len(tokens)).repeat_interleave(real.sum(1))
    pairs = torch.unique(torch.stack([rows, tokens[real]]), dim=1)
    values = torch.ones(pairs.shape[1])
    return torch.sparse_coo_tensor(pairs, values, (len(tokens), words), is_coalesced=True, check_invariants=False)


def bag_f1(prior: Tensor, tokens: Tensor, words: int) -> Tensor:
    """Token F1 of the readout alone, set size known: of the k likeliest tokens, how many are among the text's k."""
    scores = []
    for row, ids in zip(prior, tokens, strict=True):
        wanted = ids[ids < words].unique()
        scores.append(torch.isin(row.topk(len(wanted)).indices, wanted).float().mean())
    return torch.stack(scores).mean()
