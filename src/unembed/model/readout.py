"""The readout: which tokens a vector speaks of, without their order. Knows nothing of canvases or transformers.

A closed-form ridge regression from the vector to the bag of tokens takes seconds and already names many of a text's
words. The denoiser adds it to its logits as a prior, computed once per vector; it is also usable alone.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.config import ReadoutConfig
from unembed.model.candidates import Candidates

# Below this the ridge estimate is noise; it also keeps the logarithm finite.
MINIMUM_PROBABILITY = 1e-4
# A token that was hardly ever seen is taken to return as content words do: one occurrence in twenty is a return.
_USUAL_RETURNS, _SEEN_BEFORE = 0.05, 20.0


class Readout(nn.Module):
    """Maps vectors (B, d) to log-priors over what a canvas may hold (B, outputs).

    It knows the encoder's ``words`` only. The ids behind them, [EOS] and [PAD] of a fixed canvas, are no words of a
    text and stand on nearly every canvas: their log-prior is 0.
    """

    def __init__(self, config: ReadoutConfig, embedding_dim: int, words: int, outputs: int) -> None:
        super().__init__()
        self.config = config
        self.words = words
        self.outputs = outputs
        self.register_buffer("base", torch.full((words,), -math.log(words)))
        self.base: Tensor
        # How surprising it is, in nats, that an occurrence of a token is not the first of its text.
        self.register_buffer("repetition", torch.full((words,), -math.log(_USUAL_RETURNS)))
        self.repetition: Tensor
        if config.kind == "linear":
            self.linear = nn.Linear(embedding_dim, words)
        elif config.kind == "mlp":
            self.hidden = nn.Linear(embedding_dim, config.bottleneck)
            self.blocks = nn.ModuleList(_Block(config.bottleneck) for _ in range(config.blocks))
            self.out = nn.Linear(config.bottleneck, words)
        self.requires_grad_(False)

    def forward(self, embeddings: Tensor, dropped: Tensor | None = None, tokens: Tensor | None = None) -> Tensor:
        """Return the log-prior of each token given each vector.

        Args:
            embeddings: (B, d).
            dropped: (B,) rows that get the base rates.
            tokens: a choice of ids in ascending order. The ``mlp`` prior is then not normalised: each row misses a
                constant, which no softmax over the choice notices.
        """
        if self.config.kind == "none":
            return embeddings.new_zeros(len(embeddings), 1)
        words = None if tokens is None else tokens[tokens < self.words]
        base = self.base if words is None else self.base[words]
        # In float32 whatever the autocast: the logarithm of a small probability magnifies its error.
        with torch.autocast(embeddings.device.type, enabled=False):
            features = self.features(embeddings.float())
            if self.config.kind == "linear":
                prior = _columns(self.linear, features, words).clamp_(MINIMUM_PROBABILITY, 1.0).log_()
            else:
                prior = _columns(self.out, features, words)
                prior = F.log_softmax(prior, dim=-1) if words is None else prior
        if dropped is not None:
            prior = torch.where(dropped[:, None], base, prior)
        return F.pad(prior, (0, (self.outputs if tokens is None else len(tokens)) - prior.shape[1]))

    def features(self, embeddings: Tensor) -> Tensor:
        """Return what the last layer reads of each vector."""
        features = scale_to_sphere(embeddings)
        if self.config.kind == "mlp":
            features = F.gelu(self.hidden(features))
            for block in self.blocks:
                features = block(features)
        return features

    @torch.no_grad()
    def fit(self, batches: Iterator[tuple[Tensor, Tensor]], ridge: float) -> None:
        """Fit in closed form: base rates and repetition for every kind, and the ridge regression for ``linear``.

        Args:
            batches: pairs of vectors (n, d) and token ids (n, T); ids outside the vocabulary are padding.
            ridge: penalty per row.
        """
        rows = 0
        counts = torch.zeros(self.words, dtype=torch.float64)  # texts that hold a token
        occurrences = torch.zeros(self.words, dtype=torch.float64)
        gram: Tensor | None = None
        moments: Tensor | None = None
        for embeddings, tokens in batches:
            bags = bag_of_tokens(tokens, self.words)
            counts += torch.bincount(bags.indices()[1], minlength=self.words)
            occurrences += torch.bincount(tokens[tokens < self.words], minlength=self.words)
            rows += len(tokens)
            if self.config.kind != "linear":
                continue
            ones = embeddings.new_ones(len(embeddings), 1)
            inputs = torch.cat([scale_to_sphere(embeddings), ones], dim=1)
            update = torch.sparse.mm(bags.t(), inputs)  # (words, d + 1)
            gram = inputs.T @ inputs if gram is None else gram + inputs.T @ inputs
            moments = update if moments is None else moments + update
        returns = occurrences - counts + _SEEN_BEFORE * _USUAL_RETURNS
        self.repetition.copy_(-(returns / (occurrences + _SEEN_BEFORE)).log())
        presence = (counts / max(rows, 1)).clamp(min=MINIMUM_PROBABILITY).float()
        if self.config.kind == "linear" and gram is not None and moments is not None:
            self.base.copy_(presence.log())
            penalty = ridge * rows * torch.eye(len(gram), dtype=torch.float64)
            penalty[-1, -1] = 0.0  # the intercept is not shrunk: it carries the base rate
            solution = torch.linalg.solve(gram.double() + penalty, moments.T.double())  # (d + 1, words)
            self.linear.weight.copy_(solution[:-1].T)
            self.linear.bias.copy_(solution[-1])
        else:
            self.base.copy_((presence / presence.sum()).log())

    def bag_loss(self, embeddings: Tensor, tokens: Tensor, candidates: Candidates | None = None) -> Tensor:
        """Cross-entropy of the ``mlp`` readout's softmax against the bag of tokens: what its training minimises."""
        real = tokens < self.words
        columns = tokens.masked_fill(~real, 0)
        if candidates is None:
            prior: Tensor = self(embeddings)
        else:
            prior = F.log_softmax(self(embeddings, tokens=candidates.tokens) + candidates.correction, dim=-1)
            columns = torch.searchsorted(candidates.tokens, columns).masked_fill(~real, 0)
        return -(prior.gather(1, columns) * real).sum() / real.sum()


class _Block(nn.Module):
    """A residual step of the ``mlp``, which changes nothing until it is trained."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.down(F.gelu(self.up(self.norm(features))))  # type: ignore[no-any-return]


def _columns(layer: nn.Linear, inputs: Tensor, tokens: Tensor | None) -> Tensor:
    """Apply a layer, or only those of its output columns that are asked for."""
    if tokens is None:
        return layer(inputs)  # type: ignore[no-any-return]
    return F.linear(inputs, layer.weight.index_select(0, tokens), layer.bias[tokens])


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
