"""The conditional masked diffusion language model: denoiser, readout and length head as one module.

Sees token ids and vectors, never texts, files or HTTP. Training and decoding both go through ``condition``, ``hidden``
and ``logits``; what depends on the vector alone is computed once, in ``condition``.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from unembed.canvas import CanvasVocabulary
from unembed.config import ModelConfig
from unembed.errors import ConfigError
from unembed.model.candidates import Candidates
from unembed.model.choice import Choice, choose_likeliest
from unembed.model.denoiser import Denoiser, Modulation
from unembed.model.extent import Extent
from unembed.model.precision import quickest, round_products
from unembed.model.readout import make_readout, scale_to_sphere
from unembed.model.surrogate import Surrogate
from unembed.model.writer import Writer, Writing

# With more rows than this, the product is equally fast in both layouts of the weights.
_FEW_ROWS = 2
# Blind decoding takes its tokens from this many, the likeliest of each vector: of 4,000 tokens that were decoded from
# all 30,522, the last stood at rank 456. The products with the others would take most of the time.
SHORTLIST = 512
# Initial factor of a repeated token's surprise, which is subtracted from its logit; training adjusts it.
_INITIAL_DAMPING = 0.5


class Shortlist(NamedTuple):
    """The likeliest tokens of each vector, and what their logits are made of."""

    tokens: Tensor
    """(B, K)"""
    offsets: Tensor
    """(B, K), as those of :class:`Condition`."""
    weight: Tensor
    """(B, W, K): the output weights."""

    def rows(self, index: Tensor) -> "Shortlist":
        """Return the tokens of some rows."""
        return Shortlist(*(part[index] for part in self))


class Condition(NamedTuple):
    """What a batch of vectors says: the modulation for the transformer, and what the logits start from."""

    modulation: Modulation
    offsets: Tensor
    """(B, outputs) or (B, C): the scaled prior and the bias of each token, added to its product in every pass."""
    candidates: Candidates | None = None
    damping: float = 1.0
    """How strongly tokens on the canvas are held back, relative to what training found best."""
    shortlist: Shortlist | None = None
    """What :meth:`ConditionalMDLM.likeliest` chooses from; None for all tokens."""

    @property
    def choices(self) -> int:
        """How many tokens it chooses from."""
        return self.offsets.shape[1] if self.shortlist is None else self.shortlist.tokens.shape[1]

    def rows(self, index: Tensor) -> "Condition":
        """Return the condition of some rows."""
        return self._replace(
            modulation=self.modulation.rows(index),
            offsets=self.offsets[index],
            shortlist=None if self.shortlist is None else self.shortlist.rows(index),
        )

    def coverage(self, canvas: Tensor) -> Tensor:
        """Return how much of the probability that the vectors alone give to tokens (B,) stands on canvases (B, T)."""
        scored = canvas < self.offsets.shape[1]
        repeated = (canvas[:, :, None] == canvas[:, None, :]).tril(-1).any(-1)
        own = self.offsets.gather(1, canvas.masked_fill(~scored, 0)) - self.offsets.logsumexp(-1, keepdim=True)
        return own.exp().masked_fill(~scored | repeated, 0.0).sum(1)

    def damped(self, strength: float) -> "Condition":
        """Return the same condition with another damping."""
        return self._replace(damping=strength)


class ConditionalMDLM(nn.Module):
    """Recovers token ids from a vector."""

    def __init__(self, config: ModelConfig, vocabulary: CanvasVocabulary) -> None:
        super().__init__()
        if config.vocabulary_size != vocabulary.size:
            raise ConfigError(
                f"The model is for {config.vocabulary_size:,} tokens, the vocabulary has {vocabulary.size:,}.",
                "Give the vocabulary that the model's config was made for.",
            )
        self.config = config
        self.vocabulary = vocabulary
        self.denoiser = Denoiser(config, vocabulary)
        self.readout = make_readout(config.readout, config.embedding_dim, vocabulary.size, self.denoiser.outputs)
        self.surrogate = Surrogate(config) if config.surrogate.layers else None
        self.writer = Writer(config) if config.writer.layers else None
        self.prior_scale = nn.Parameter(torch.ones(()))
        # A token is less likely once it is on the canvas ("on a beach on a beach"); how much less depends on the token.
        self.prior_damping = nn.Parameter(torch.full((), _INITIAL_DAMPING))
        if config.freeze_token_embeddings:
            self.denoiser.token_embedding.weight.requires_grad_(False)
        self.prior_scale.requires_grad_(self.readout.gives_prior)
        self.prior_damping.requires_grad_(self.readout.gives_prior)
        self.register_buffer("_output_columns", None, persistent=False)
        self._output_columns: Tensor | None
        # Not registered: it is neither saved nor moved.
        self._quick_writer: list[Writer] = []
        self.length_head = _make_length_head(config) if config.canvas == "exact" else None
        if self.length_head is not None:
            self.length_head.requires_grad_(False)  # fitted before the denoiser is trained, like the readout
        self.extent: Extent | None = None
        if config.extent.longest:
            learnt = (config.length_widths or (config.width,))[-1] if config.canvas == "exact" else 0
            self.extent = Extent(config.extent, config.embedding_dim + learnt)

    def lay_out_for_decoding(self) -> Self:
        """Keep a copy of the output weights column by column: products of a row or two then take half the time.

        For weights that do not change any more; it is neither saved nor trained.
        """
        self._output_columns = self.denoiser.tied_weight().detach().t().contiguous()
        return self.round_writer()

    def round_writer(self) -> Self:
        """Keep a copy of the writer in the precision that the device is quickest in; it is not saved either."""
        self._quick_writer = [] if self.writer is None else [round_products(self.writer)]
        return self

    def condition(
        self, embeddings: Tensor, dropped: Tensor | None = None, candidates: Candidates | None = None
    ) -> Condition:
        """Read all that the passes need off the vectors.

        Args:
            embeddings: (B, d), of any norm.
            dropped: (B,) rows to be treated as if there were no vector.
            candidates: the tokens to be scored; all by default.
        """
        tokens = None if candidates is None else candidates.tokens
        bias = self.denoiser.bias(tokens)
        if candidates is not None:
            bias = bias + candidates.correction
        offsets = self.prior_scale * self.readout(embeddings, dropped, tokens) + bias
        return Condition(self.denoiser.condition(embeddings, dropped), offsets, candidates)

    def hidden(
        self, canvas: Tensor, condition: Condition, time: Tensor | None = None, where: Tensor | None = None
    ) -> Tensor:
        """Run the transformer over a canvas: (B, T) ids to (B, T, W).

        ``where`` (B, T) may say which positions matter: if they are equally many in each row, the last block leaves
        the others out, whose states are then zero.
        """
        asked = positions_asked(where)
        hidden = self.denoiser.hidden(canvas, condition.modulation, time, asked)
        return hidden if where is None or asked is None else put_back(hidden, where)

    def logits(self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Condition) -> Tensor:
        """Score tokens at the positions that ``where`` marks, and nowhere else.

        Args:
            hidden: (B, T, W), from :meth:`hidden`.
            where: (B, T), true at M positions.
            canvas: (B, T), the ids that ``hidden`` was computed from.
            condition: from :meth:`condition`.

        Returns:
            (M, outputs), or (M, C) for C candidates. [MASK] and special tokens cannot win: they have no score, or -inf.
        """
        tokens = None if condition.candidates is None else condition.candidates.tokens
        rows = where.nonzero()[:, 0]
        # One pass over the (M, C) result: the offsets are where the product is accumulated.
        offsets = condition.offsets if len(canvas) == 1 else condition.offsets.index_select(0, rows)
        columns = self._output_columns
        if columns is None or tokens is not None or len(rows) > _FEW_ROWS:
            columns = self.denoiser.tied_weight(tokens).t()
        logits = torch.addmm(offsets, self.denoiser.features(hidden[where]), columns)
        return self.damp_(logits, rows, canvas, condition)

    def likeliest(
        self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Condition, *, with_entropy: bool = False
    ) -> Choice:
        """Choose the likeliest token at each of the M positions that ``where`` marks; arguments as for `logits`."""
        short = condition.shortlist
        if short is None:
            return choose_likeliest(self.logits(hidden, where, canvas, condition), with_entropy=with_entropy)
        features = torch.split(self.denoiser.features(hidden[where]), where.sum(1).tolist())
        offsets = self._damp_shortlist(short, canvas, condition)
        logits = torch.cat([torch.addmm(*each) for each in zip(offsets, features, short.weight, strict=True)])
        choice = choose_likeliest(logits, with_entropy=with_entropy)
        return choice._replace(tokens=short.tokens[where.nonzero()[:, 0], choice.tokens])

    def shorten(self, condition: Condition) -> Condition:
        """Let :meth:`likeliest` choose among the likeliest tokens of each vector only, which is faster."""
        if not self.readout.gives_prior or condition.offsets.shape[1] <= SHORTLIST:
            return condition
        offsets, tokens = condition.offsets.topk(SHORTLIST)
        weight = self.denoiser.tied_weight()[tokens].transpose(1, 2)
        return condition._replace(shortlist=Shortlist(tokens, offsets, weight))

    def _damp_shortlist(self, short: Shortlist, canvas: Tensor, condition: Condition) -> Tensor:
        """Return the offsets (B, K) without what tokens on the canvas lose."""
        shown = canvas.masked_fill(canvas >= self.vocabulary.size, -1)
        counts = (short.tokens[:, None, :] == shown[:, :, None]).sum(1)
        surprise = self.readout.repetition[short.tokens.clamp(max=self.vocabulary.size - 1)]
        return short.offsets - condition.damping * self.prior_damping * surprise * counts

    def damp_(self, logits: Tensor, rows: Tensor, canvas: Tensor, condition: Condition) -> Tensor:
        """Lower, in place, the logits (M, C) of tokens that stand on the canvas already; ``rows`` (M,) says on which.

        Takes as long as there are positions, not tokens.
        """
        if not self.readout.gives_prior:
            return logits
        revealed, columns = self._columns(canvas, None if condition.candidates is None else condition.candidates.tokens)
        surprise = self.readout.repetition[canvas.masked_fill(~revealed, 0)]
        damping = (-condition.damping * self.prior_damping * surprise * revealed).to(logits.dtype)
        return logits.scatter_add_(1, columns[rows], damping[rows])

    def _columns(self, canvas: Tensor, tokens: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return which positions show a token that is scored, and in which column (0 where none is)."""
        if tokens is None:
            shown = canvas < self.vocabulary.size
            return shown, canvas.masked_fill(~shown, 0)
        columns = torch.searchsorted(tokens, canvas).clamp_(max=len(tokens) - 1)
        shown = (tokens[columns] == canvas) & (canvas < self.vocabulary.size)
        return shown, columns.masked_fill(~shown, 0)

    @property
    def writes(self) -> bool:
        """Whether there is a writer that has learnt something."""
        return self.writer is not None and not self.writer.is_new

    def writing(self, embeddings: Tensor) -> Writing | None:
        """Read all that writing from left to right needs off the vectors; None without a writer."""
        if self.writer is None or self.writer.is_new:
            return None
        if self._quick_writer and self._quick_writer[0].start.device != self.writer.start.device:
            self.round_writer()  # the model was moved
        writer = self._quick_writer[0] if self._quick_writer else self.writer
        bias = writer.output_bias + self.denoiser.forbidden
        offsets = writer.prior_scale * self.readout(embeddings) + bias
        # Without a readout every token may be the likeliest.
        size = min(SHORTLIST, offsets.shape[1]) if self.readout.gives_prior else offsets.shape[1]
        tokens = offsets.topk(size).indices
        table = self.denoiser.token_embedding.weight
        weight = table[tokens].transpose(1, 2)
        surprise = writer.prior_damping * self.readout.repetition
        with quickest(embeddings.device):
            modulation = writer.condition(embeddings)
        return Writing(writer, table, modulation, offsets, tokens, weight, surprise)

    def resemblance(self, canvas: Tensor, embeddings: Tensor) -> Tensor | None:
        """Return the cosines (B,) of vectors (B, d) with those that the surrogate gives finished canvases (B, T).

        None without a surrogate, and for fixed canvases, which hold more than the text.
        """
        if self.surrogate is None or self.config.canvas == "fixed":
            return None
        vectors = self.surrogate(self.denoiser.token_embedding(canvas))
        return torch.nn.functional.cosine_similarity(vectors, embeddings.float())

    def length_logits(self, embeddings: Tensor) -> Tensor:
        """Score text lengths 1 ... canvas_length: (B, canvas_length). For exact canvases only."""
        if self.length_head is None:
            raise ConfigError("A fixed canvas has no length head.", "The text ends at its first [EOS].")
        return self.length_head(scale_to_sphere(embeddings))  # type: ignore[no-any-return]

    @torch.no_grad()
    def text_lengths(self, embeddings: Tensor, shares: tuple[float, ...]) -> Tensor | None:
        """Return how many tokens texts have, beyond the canvas too: (B, len(shares)) quantiles.

        Without an extent they are the length head's, which knows no more than the canvas; None if there is neither.
        """
        if self.extent is not None:
            return self.extent.quantiles(self.extent_features(embeddings), shares)
        if self.length_head is None:
            return None
        cumulated = self.length_logits(embeddings).softmax(-1).cumsum(-1)
        return torch.stack([(cumulated < share).sum(-1) + 1 for share in shares], dim=1).clamp(max=cumulated.shape[1])

    @torch.no_grad()
    def extent_features(self, embeddings: Tensor) -> Tensor:
        """Return what the extent reads: the vectors, and the length head's last hidden layer if there is one."""
        scaled = scale_to_sphere(embeddings)
        return scaled if self.length_head is None else torch.cat([scaled, self.length_head[:-1](scaled)], dim=1)


def _make_length_head(config: ModelConfig) -> nn.Sequential:
    widths = config.length_widths or (config.width,)
    layers: list[nn.Module] = []
    for before, after in zip((config.embedding_dim, *widths), widths, strict=False):
        layers += [nn.Linear(before, after), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], config.canvas_length))


def positions_asked(where: Tensor | None) -> Tensor | None:
    """Return the positions that are marked in each row (B, k); None where that is all, or not equally many."""
    if where is None or bool(where.all()):
        return None
    counts = where.sum(1)
    return where.nonzero()[:, 1].view(len(where), int(counts[0])) if bool((counts == counts[0]).all()) else None


def put_back(hidden: Tensor, where: Tensor) -> Tensor:
    """Put the states of marked positions (B, k, W) where they belong: (B, T, W)."""
    whole = hidden.new_zeros(*where.shape, hidden.shape[-1])
    whole[where] = hidden.flatten(0, 1)
    return whole
