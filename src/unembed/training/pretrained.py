"""Starts the denoiser as a copy of a pretrained encoder of the same width (the paper's future work)."""

import torch
from torch import Tensor

from unembed.encoders import load_encoder
from unembed.errors import ConfigError
from unembed.model import ConditionalMDLM

# Positions of the encoder that hold no token of the text: BERT's [CLS] comes first.
_LEADING = 1


def initialise_from_encoder(model: ConditionalMDLM, name: str) -> None:
    """Copy a BERT-like encoder's embeddings and its first layers into the denoiser.

    The modulation starts at zero and the layout is ``post``, so the denoiser then computes what the encoder computes.
    """
    encoder = load_encoder(name, device="cpu")
    source = getattr(encoder, "model", [None])[0]
    source = getattr(source, "auto_model", None)
    config = getattr(source, "config", None)
    facts = tuple(getattr(config, key, None) for key in ("model_type", "hidden_act", "num_attention_heads"))
    if source is None or facts != ("bert", "gelu", model.config.heads):
        raise ConfigError(
            f"'{name}' cannot initialise the denoiser: (architecture, activation, heads) are {facts}.",
            f"Expected ('bert', 'gelu', {model.config.heads}): choose a BERT encoder, and set model.heads to its own.",
        )
    copy_bert_weights(model, source.state_dict(), name)


@torch.no_grad()
def copy_bert_weights(model: ConditionalMDLM, source: dict[str, Tensor], name: str) -> None:
    """Copy weights named as in transformers' ``BertModel``; every shape must fit."""
    denoiser = model.denoiser
    try:
        _copy(denoiser.token_embedding.weight, source["embeddings.word_embeddings.weight"], "vocabulary and width")
        positions = source["embeddings.position_embeddings.weight"][_LEADING:]
        _copy(denoiser.position_embedding.weight, positions[: len(denoiser.position_embedding.weight)], "positions")
        # The encoder adds the embedding of token type 0 to every token; so do our positions.
        denoiser.position_embedding.weight += source["embeddings.token_type_embeddings.weight"][0]
        denoiser.embedding_norm.weight.copy_(source["embeddings.LayerNorm.weight"])
        denoiser.embedding_norm.bias.copy_(source["embeddings.LayerNorm.bias"])
        denoiser.own_embedding.weight.copy_(source["embeddings.word_embeddings.weight"].mean(0).expand(3, -1))
        for number, block in enumerate(denoiser.blocks):
            layer = f"encoder.layer.{number}."
            for kind in ("weight", "bias"):
                joint = [source[f"{layer}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
                _copy(getattr(block.attention_in, kind), torch.cat(joint), "width")
                for ours, theirs in (
                    ("attention_out", "attention.output.dense"),
                    ("attention_norm", "attention.output.LayerNorm"),
                    ("feedforward_in", "intermediate.dense"),
                    ("feedforward_out", "output.dense"),
                    ("feedforward_norm", "output.LayerNorm"),
                ):
                    _copy(getattr(getattr(block, ours), kind), source[f"{layer}{theirs}.{kind}"], "feedforward")
    except KeyError as error:
        raise ConfigError(
            f"'{name}' cannot initialise a denoiser of {len(denoiser.blocks)} layers: it has no {error.args[0]}.",
            "Choose a BERT-like encoder, or at most as many model.layers as it has.",
        ) from error


def _copy(target: Tensor, source: Tensor, what: str) -> None:
    if target.shape != source.shape:
        raise ConfigError(
            f"The encoder's {what} do not fit the model: {tuple(source.shape)} against {tuple(target.shape)}.",
            "Set model.width, model.feedforward and data.canvas_length to what the encoder has.",
        )
    target.copy_(source)
