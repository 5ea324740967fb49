"""The denoiser: a bidirectional transformer modulated by the vector through AdaLN. Sees token ids and vectors only.

Shapes: B rows, T positions, W width, V the encoder's vocabulary. Reads top to bottom like the paper's section 3.3.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.canvas import CanvasVocabulary
from unembed.config import ModelConfig
from unembed.model.memory import AttentionMemory
from unembed.model.positions import NO_POSITIONS, AttentionPositions, make_positions
from unembed.model.readout import scale_to_sphere

INITIAL_STD = 0.02


class Modulation(NamedTuple):
    """All that the vector says to the transformer. Computed once per vector, used in every pass."""

    blocks: Tensor
    """(B, layers, parts, W): scale and shift, and with AdaLN-Zero a gate, for attention and feed-forward."""
    final: Tensor
    """(B, 2, W): scale and shift of the last norm."""
    prefix: Tensor
    """(B, prefix_tokens, W): tokens put before the canvas."""

    def rows(self, index: Tensor) -> "Modulation":
        """Return the modulation of some rows."""
        return Modulation(self.blocks[index], self.final[index], self.prefix[index])


class Block(nn.Module):
    """Self-attention and feed-forward, each with a modulated norm.

    ``pre`` is DiT's layout: norm, modulate, sublayer, gate, add; the gate starts at zero, so the block starts as the
    identity. ``post`` is BERT's: sublayer, gate, add, norm, modulate; there the modulation starts as one, so the block
    starts as the pretrained layer that it was copied from. ModernBERT's has the order of ``pre`` and starts like
    ``post``; its feed-forward is gated, and its first layer has no norm before attention.
    """

    def __init__(self, config: ModelConfig, number: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.post = config.norm == "post"
        modern = config.architecture == "modernbert"
        # Like an encoder's layers: norms have weights of their own, and gates start at one.
        self.pretrained = self.post or modern
        self.geglu = modern
        self.gated = config.conditioning == "adaln-zero"
        self.attention_in = nn.Linear(config.width, 3 * config.width)
        self.attention_out = nn.Linear(config.width, config.width)
        self.feedforward_in = nn.Linear(config.width, config.feedforward * (2 if self.geglu else 1))
        self.feedforward_out = nn.Linear(config.feedforward, config.width)
        self.attention_norm = nn.Identity() if modern and number == 0 else make_norm(config, self.pretrained)
        self.feedforward_norm = make_norm(config, self.pretrained)

    def forward(
        self,
        hidden: Tensor,
        modulation: Tensor,
        asked: Tensor | None = None,
        positions: AttentionPositions = NO_POSITIONS,
        memory: AttentionMemory | None = None,
    ) -> Tensor:
        """Map (B, T, W) to (B, T, W) under a modulation of (B, parts, W).

        With ``asked`` (B, k), to (B, k, W): the states of these positions only, which still attend to all. With a
        ``memory``, all attend to what it holds too, and are added to it.
        """
        parts = modulation.unsqueeze(2).unbind(1)  # each (B, 1, W)
        if self.gated:
            scale_a, shift_a, gate_a, scale_f, shift_f, gate_f = parts
        else:
            (scale_a, shift_a, scale_f, shift_f), gate_a, gate_f = parts, None, None
        if self.post:
            update = self._attend(hidden, asked, positions, memory)
            hidden = self.attention_norm(self._add(take(hidden, asked), update, gate_a))
            hidden = modulate(hidden, scale_a, shift_a)
            return modulate(self.feedforward_norm(self._add(hidden, self._feed(hidden), gate_f)), scale_f, shift_f)
        update = self._attend(modulate(self.attention_norm(hidden), scale_a, shift_a), asked, positions, memory)
        hidden = self._add(take(hidden, asked), update, gate_a)
        return self._add(hidden, self._feed(modulate(self.feedforward_norm(hidden), scale_f, shift_f)), gate_f)

    def _attend(
        self,
        hidden: Tensor,
        asked: Tensor | None = None,
        positions: AttentionPositions = NO_POSITIONS,
        memory: AttentionMemory | None = None,
    ) -> Tensor:
        width = hidden.shape[-1]
        if asked is None:
            parts = self.attention_in(hidden).chunk(3, dim=-1)
        else:
            weight, bias = self.attention_in.weight, self.attention_in.bias
            queries = F.linear(take(hidden, asked), weight[:width], bias[:width])
            parts = (queries, *F.linear(hidden, weight[width:], bias[width:]).chunk(2, dim=-1))
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        q, k, score_bias = positions.apply(q, k, asked)
        if memory is not None:
            k, v = memory.extend(k, v)
        dropout = self.dropout if self.training else 0.0
        mixed = attend(q, k, v, score_bias, dropout)
        return F.dropout(self.attention_out(mixed.transpose(1, 2).flatten(2)), self.dropout, self.training)

    def _feed(self, hidden: Tensor) -> Tensor:
        inner = self.feedforward_in(hidden)
        if self.geglu:
            inner, gate = inner.chunk(2, dim=-1)
            inner = F.gelu(inner) * gate
        else:
            inner = F.gelu(inner)
        return F.dropout(self.feedforward_out(inner), self.dropout, self.training)

    def _add(self, hidden: Tensor, update: Tensor, gate: Tensor | None) -> Tensor:
        if gate is None:
            return hidden + update
        return torch.addcmul(hidden, update, 1.0 + gate if self.pretrained else gate)


class Denoiser(nn.Module):
    """Token ids with masks in, a hidden state per position out; a tied head turns hidden states into logits."""

    def __init__(self, config: ModelConfig, vocabulary: CanvasVocabulary) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        width = config.width
        self.token_embedding = nn.Embedding(vocabulary.size, width)
        self.own_embedding = nn.Embedding(3, width)  # [EOS], [PAD], [MASK]
        self.position_embedding = nn.Embedding(config.canvas_length, width)
        # On an exact canvas the distance to the end tells a position how long the text is.
        self.end_embedding = nn.Embedding(config.canvas_length, width) if config.canvas == "exact" else None
        self.embedding_norm = nn.LayerNorm(width, eps=config.norm_epsilon)

        # Eq. 5: c = MLP(e). The null condition stands in for c where the vector is dropped.
        self.condition_in = nn.Linear(config.embedding_dim, width)
        self.condition_out = nn.Linear(width, width)
        self.null_condition = nn.Parameter(torch.zeros(width))
        parts = 6 if config.conditioning == "adaln-zero" else 4
        self.modulation_parts = parts
        # Eq. 7 for all layers in one product, and the last norm.
        self.modulation = nn.Linear(width, (config.layers * parts + 2) * width)
        self.prefix = nn.Linear(width, config.prefix_tokens * width) if config.prefix_tokens else None
        if config.time_conditioning:  # Eq. 6
            self.time_in = nn.Linear(width, width)
            self.time_modulation = nn.Linear(width, (config.layers * parts + 2) * width)

        self.positions = make_positions(config)
        self.blocks = nn.ModuleList(Block(config, number) for number in range(config.layers))
        self.final_norm = make_norm(config, pretrained=config.architecture == "modernbert")
        self.head = nn.Linear(width, width)
        self.head_norm = nn.LayerNorm(width, eps=1e-6)
        self.output_bias = nn.Parameter(torch.zeros(self.outputs))
        forbidden = torch.zeros(self.outputs)
        forbidden[list(vocabulary.special)] = -math.inf
        self.register_buffer("forbidden", forbidden, persistent=False)
        self.forbidden: Tensor
        self._initialise()

    @property
    def outputs(self) -> int:
        """How many ids the head scores: never [MASK], and [EOS] and [PAD] on a fixed canvas only."""
        return self.vocabulary.size + (2 if self.config.canvas == "fixed" else 0)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=INITIAL_STD)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        if self.end_embedding is not None:
            nn.init.zeros_(self.end_embedding.weight)
        # Zero, so that the transformer starts unmodulated: with a zero gate, or as the pretrained one.
        nn.init.zeros_(self.modulation.weight)
        if self.config.time_conditioning:
            nn.init.zeros_(self.time_modulation.weight)
        # The condition must not start small as well: a small random c times zero weights learns slowly.
        nn.init.normal_(self.condition_in.weight, std=self.condition_in.in_features**-0.5)
        nn.init.normal_(self.condition_out.weight, std=self.condition_out.in_features**-0.5)

    def condition(self, embeddings: Tensor, dropped: Tensor | None = None) -> Modulation:
        """Turn vectors of any norm into the modulation of every pass; ``dropped`` rows get the null condition."""
        c = self.condition_out(F.gelu(self.condition_in(scale_to_sphere(embeddings))))
        if dropped is not None:
            c = torch.where(dropped[:, None], self.null_condition.to(c.dtype), c)
        blocks, final = self._split(self.modulation(F.silu(c)))
        rows = len(c)
        prefix = self.prefix(c).view(rows, -1, self.config.width) if self.prefix else c.new_zeros(rows, 0, c.shape[-1])
        return Modulation(blocks, final, prefix)

    def hidden(
        self, canvas: Tensor, modulation: Modulation, time: Tensor | None = None, asked: Tensor | None = None
    ) -> Tensor:
        """Return the hidden state of every position, (B, T) ids in, (B, T, W) out; or of ``asked`` ones (B, k) only."""
        blocks, final, prefix = modulation
        if self.config.time_conditioning:
            if time is None:
                raise ValueError("a model with time conditioning needs the time")
            time_blocks, time_final = self._split(self._time_modulation(time.to(blocks.device)))
            blocks, final = blocks + time_blocks, final + time_final  # Eq. 8 and 9
        hidden = self._embed(canvas)
        if prefix.shape[1]:
            hidden = torch.cat([prefix.to(hidden.dtype), hidden], dim=1)
        last = len(self.blocks) - 1
        if asked is not None:
            asked = asked + prefix.shape[1]
        positions = self.positions(hidden.shape[1])
        for number, block in enumerate(self.blocks):
            # After the last block no layer attends to the other positions any more.
            hidden = block(hidden, blocks[:, number], asked if number == last else None, positions[number])
        if asked is None:
            hidden = hidden[:, prefix.shape[1] :]
        scale, shift = final.unsqueeze(2).unbind(1)
        return modulate(self.final_norm(hidden), scale, shift)

    def features(self, hidden: Tensor) -> Tensor:
        """Return what the tied weights are multiplied with: (M, W) in, (M, W) out."""
        return self.head_norm(F.gelu(self.head(hidden)))  # type: ignore[no-any-return]

    def tied_weight(self, tokens: Tensor | None = None) -> Tensor:
        """Return the output weights (C, W) of all ids that the head scores, or of a choice."""
        weight = self.token_embedding.weight
        if self.config.canvas == "fixed":
            weight = torch.cat([weight, self.own_embedding.weight[:2]])
        return weight if tokens is None else weight.index_select(0, tokens)

    def bias(self, tokens: Tensor | None = None) -> Tensor:
        """Return the output bias (C,) of all ids that the head scores, or of a choice: -inf where they are special."""
        bias = self.output_bias + self.forbidden
        return bias if tokens is None else bias[tokens]

    def _embed(self, canvas: Tensor) -> Tensor:
        positions = torch.arange(canvas.shape[1], device=canvas.device)
        own = canvas >= self.vocabulary.size
        tokens = self.token_embedding(canvas.masked_fill(own, 0))
        ours = self.own_embedding((canvas - self.vocabulary.size).clamp(min=0))
        hidden = torch.where(own[..., None], ours, tokens) + self.position_embedding(positions)
        if self.end_embedding is not None:
            hidden = hidden + self.end_embedding(positions.flip(0))
        return F.dropout(self.embedding_norm(hidden), self.config.dropout, self.training)

    def _time_modulation(self, time: Tensor) -> Tensor:
        half = self.config.width // 2
        frequencies = torch.exp(torch.arange(half, device=time.device) * (-math.log(10_000.0) / half))
        angles = 1000.0 * time[:, None] * frequencies
        features = F.pad(torch.cat([angles.cos(), angles.sin()], dim=-1), (0, self.config.width - 2 * half))
        return self.time_modulation(F.silu(self.time_in(features)))  # type: ignore[no-any-return]

    def _split(self, joint: Tensor) -> tuple[Tensor, Tensor]:
        joint = joint.view(len(joint), -1, self.config.width)
        blocks = joint[:, :-2].view(len(joint), self.config.layers, self.modulation_parts, self.config.width)
        return blocks, joint[:, -2:]


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: float) -> Tensor:
    """Return what queries (B, heads, T, D) take from values by their keys, with a bias added to the scores.

    torch's own attention is the quickest but for one case: bfloat16 on a CPU. For texts of 10 to 128 tokens, the plain
    formula then takes half the time, and a sixth with its gradient.
    """
    if q.dtype != torch.bfloat16 or q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias
    return F.dropout(scores.softmax(-1).to(v.dtype), dropout, training=dropout > 0) @ v


def take(hidden: Tensor, asked: Tensor | None) -> Tensor:
    """Return the states (B, T, W) of some positions (B, k): (B, k, W)."""
    return hidden if asked is None else hidden.gather(1, asked[..., None].expand(-1, -1, hidden.shape[-1]))


def make_norm(config: ModelConfig, pretrained: bool) -> nn.LayerNorm:
    """Return a norm of the transformer: with weights of its own only where a pretrained encoder brings them along."""
    return nn.LayerNorm(config.width, eps=config.norm_epsilon if pretrained else 1e-6, elementwise_affine=pretrained)


def modulate(normed: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Apply eq. 10: scale (around one) and shift a normed hidden state."""
    return torch.addcmul(shift, normed, 1.0 + scale)
