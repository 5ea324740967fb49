"""The surrogate: what vector the encoder would give a text, nearly. A small transformer that stands in for it.

It learns from the same pairs of texts and vectors as the denoiser. With it a hypothesis can be compared with the vector
although the encoder is not at hand. Knows token embeddings and vectors, no ids and no texts.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.config import ModelConfig
from unembed.model.denoiser import INITIAL_STD, Block
from unembed.model.positions import make_positions

ENDS = 2
"""A text stands between two vectors of its own, as between BERT's [CLS] and [SEP]."""


class Surrogate(nn.Module):
    """Maps the token embeddings of texts of one length (B, T, W) to vectors of length one (B, d)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        shape = config.model_copy(
            update={
                "layers": config.surrogate.layers,
                "feedforward": config.surrogate.feedforward or config.feedforward,
                "canvas_length": config.canvas_length + ENDS,
                "conditioning": "adaln",
                "dropout": 0.0,
            }
        )
        self.ends = nn.Parameter(torch.zeros(ENDS, config.width))
        self.position_embedding = nn.Embedding(shape.canvas_length, config.width)
        self.embedding_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.positions = make_positions(shape)
        self.blocks = nn.ModuleList(Block(shape, number) for number in range(shape.layers))
        self.out = nn.Linear(config.width, config.embedding_dim)
        self.register_buffer("neutral", torch.zeros(1, 4, config.width), persistent=False)
        self.neutral: Tensor
        """The modulation that changes nothing."""
        self.register_buffer("fidelity", torch.zeros(()))
        self.fidelity: Tensor
        """Mean cosine with the encoder's vectors, on held-out texts."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=INITIAL_STD)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        if config.width == config.embedding_dim:
            nn.init.eye_(self.out.weight)
        self.requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors of texts, given the embeddings of their tokens."""
        return self.pool(self.states(tokens)[-1])

    def states(self, tokens: Tensor) -> list[Tensor]:
        """Return what each layer makes of texts, (B, T + 2, W), given the embeddings of their tokens."""
        first, last = self.ends.to(tokens.dtype).expand(len(tokens), -1, -1).chunk(ENDS, dim=1)
        hidden = torch.cat([first, tokens, last], dim=1)
        hidden = self.embedding_norm(hidden + self.position_embedding.weight[: hidden.shape[1]])
        states = []
        for block, positions in zip(self.blocks, self.positions(hidden.shape[1]), strict=True):
            hidden = block(hidden, self.neutral, positions=positions)
            states.append(hidden)
        return states

    def pool(self, hidden: Tensor) -> Tensor:
        """Return the vectors of texts, given what the last layer made of them."""
        return F.normalize(self.out(hidden.float().mean(1)).float(), dim=-1)
