"""The writer: a causal transformer that writes a text of a known length from left to right, given its vector.

The denoiser reads a canvas in any order, so it knows little about any one order. The writer knows one, and so writes
sentences. It has the denoiser's shape and starts from its weights. Knows token embeddings and vectors, no texts.

Shapes: B rows, T positions, W width, K tokens to choose from.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.config import ModelConfig
from unembed.model.denoiser import INITIAL_STD, Block, Denoiser, make_norm, modulate
from unembed.model.memory import AttentionMemory
from unembed.model.positions import AttentionPositions
from unembed.model.precision import quickest
from unembed.model.readout import scale_to_sphere

# Scale, shift and gate, for attention and feed-forward.
_PARTS = 6


class Writer(nn.Module):
    """Maps the tokens before each position to what the next token is chosen by."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        # Attention of other architectures knows positions in ways that are not causal.
        shape = config.model_copy(
            update={"layers": config.writer.layers, "architecture": "bert", "conditioning": "adaln-zero"}
        )
        width = config.width
        self.start = nn.Parameter(torch.zeros(width))
        """Stands before the first token."""
        self.position_embedding = nn.Embedding(config.canvas_length, width)
        self.end_embedding = nn.Embedding(config.canvas_length, width)
        """Tells a position how many tokens are to come."""
        self.embedding_norm = nn.LayerNorm(width, eps=config.norm_epsilon)
        self.condition_in = nn.Linear(config.embedding_dim, width)
        self.condition_out = nn.Linear(width, width)
        self.modulation = nn.Linear(width, (shape.layers * _PARTS + 2) * width)
        self.blocks = nn.ModuleList(Block(shape, number) for number in range(shape.layers))
        self.final_norm = make_norm(shape, pretrained=False)
        self.head = nn.Linear(width, width)
        self.head_norm = nn.LayerNorm(width, eps=1e-6)
        self.output_bias = nn.Parameter(torch.zeros(config.vocabulary_size))
        self.prior_scale = nn.Parameter(torch.ones(()))
        self.prior_damping = nn.Parameter(torch.zeros(()))
        """How much of a token's surprise is taken from its logit once the text has it."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=INITIAL_STD)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        nn.init.zeros_(self.end_embedding.weight)
        nn.init.zeros_(self.modulation.weight)
        for layer in (self.condition_in, self.condition_out):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        self.requires_grad_(False)

    @property
    def is_new(self) -> bool:
        """Whether it has learnt nothing: it was neither trained nor started from a denoiser."""
        return not self.start.any()

    @torch.no_grad()
    def start_from(self, denoiser: Denoiser, prior_scale: Tensor, prior_damping: Tensor) -> None:
        """Take over the weights of a denoiser of the same shape: what does not fit stays as it is."""
        own, theirs = self.state_dict(), denoiser.state_dict()
        for name in own.keys() & theirs.keys():
            if own[name].shape == theirs[name].shape:
                own[name].copy_(theirs[name])
        self.start.copy_(denoiser.own_embedding.weight[-1])
        self.prior_scale.copy_(prior_scale)
        self.prior_damping.copy_(prior_damping)

    def condition(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Turn vectors of any norm into the modulation of all blocks (B, layers, parts, W) and the last norm's."""
        c = self.condition_out(F.gelu(self.condition_in(scale_to_sphere(embeddings))))
        joint = self.modulation(F.silu(c)).view(len(c), -1, len(self.start))
        return joint[:, :-2].unflatten(1, (len(self.blocks), _PARTS)), joint[:, -2:]

    def forward(
        self,
        before: Tensor,
        lengths: Tensor,
        modulation: tuple[Tensor, Tensor],
        memories: list[AttentionMemory] | None = None,
        first: int = 0,
    ) -> Tensor:
        """Return what the output weights are multiplied with, at each position: (B, T, W).

        Args:
            before: (B, T, W) the embedding of the token before each position.
            lengths: (B,) of the whole texts.
            modulation: from :meth:`condition`.
            memories: of each layer, what it knows of the positions before ``first``; they are extended.
            first: the number of the first position.
        """
        count = before.shape[1]
        positions = torch.arange(first, first + count, device=before.device)
        to_come = (lengths[:, None] - 1 - positions).clamp(min=0)
        hidden = self.embedding_norm(before + self.position_embedding(positions) + self.end_embedding(to_come))
        causal = None
        if count > 1:
            later = torch.ones(count, first + count, dtype=torch.bool, device=before.device).triu(first + 1)
            causal = torch.zeros(1, *later.shape, device=before.device).masked_fill(later, -math.inf)
        blocks, final = modulation
        for number, block in enumerate(self.blocks):
            memory = None if memories is None else memories[number]
            hidden = block(hidden, blocks[:, number], positions=AttentionPositions(causal), memory=memory)
        scale, shift = final.unsqueeze(2).unbind(1)
        hidden = modulate(self.final_norm(hidden), scale, shift)
        return self.head_norm(F.gelu(self.head(hidden)))  # type: ignore[no-any-return]


class Writing(NamedTuple):
    """What a batch of vectors says to the writer, and the likeliest tokens of each to choose from."""

    writer: Writer
    table: Tensor
    """(V, W) the embeddings of all tokens, which are the output weights too."""
    modulation: tuple[Tensor, Tensor]
    offsets: Tensor
    """(B, V): the scaled prior and the bias of each token."""
    tokens: Tensor
    """(B, K): the likeliest ones by these."""
    weight: Tensor
    """(B, W, K): their output weights."""
    surprise: Tensor
    """(V,) what a token loses each time that the text has it."""

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings (B, T, W) of tokens (B, T), where -1 stands for the start of a text."""
        return torch.where((tokens < 0)[..., None], self.writer.start, self.table[tokens.clamp(min=0)])

    def begin(self) -> list[AttentionMemory]:
        """Return the memories of texts without a token yet, one for each layer."""
        return [AttentionMemory() for _ in self.writer.blocks]

    def next_tokens(self, texts: Tensor, lengths: Tensor, memories: list[AttentionMemory], first: int) -> Tensor:
        """Return the log-probability of each of the K tokens at the next position.

        Args:
            texts: (B, G, T) G beginnings for each vector.
            lengths: (B,) of the whole texts.
            memories: of each layer, what it knows of the positions before ``first``; they are extended.
            first: of the positions that the layers have not seen: ``T`` or, with empty memories, 0.

        Returns:
            (B, G, K)
        """
        rows, beams, length = texts.shape
        flat = texts.flatten(0, 1)
        before = torch.cat([flat.new_full((len(flat), 1), -1), flat], dim=1)[:, first:]
        blocks, final = (part.repeat_interleave(beams, dim=0) for part in self.modulation)
        each = lengths.repeat_interleave(beams)
        with quickest(texts.device):
            features = self.writer(self.embed(before), each, (blocks, final), memories, first)[:, -1]
        logits = self.offsets.gather(1, self.tokens)[:, None] + features.float().view(rows, beams, -1) @ self.weight
        if length:
            counts = (self.tokens[:, None, None, :] == texts[..., None]).sum(2)
            logits = logits - counts * self.surprise[self.tokens][:, None]
        scores: Tensor = logits.log_softmax(-1)
        return scores
