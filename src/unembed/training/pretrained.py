"""Starts a model from weights that exist: a pretrained encoder's (the paper's future work), or another inverter's."""

import logging
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from unembed.encoders import load_encoder
from unembed.errors import ConfigError, first_line
from unembed.model import ConditionalMDLM
from unembed.model.packing import unpack

logger = logging.getLogger(__name__)

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


def initialise_from_inverter(model: ConditionalMDLM, folder: Path) -> None:
    """Copy all weights that an inverter has; what it lacks, because the model has more parts, stays as it started."""
    try:
        missing, unknown = model.load_state_dict(read_weights(folder), strict=False)
    except RuntimeError as error:
        raise ConfigError(
            f"The inverter in {folder} has another shape than the recipe's model: {first_line(error)}",
            "Let training.start_from name an inverter with the same model section, or remove the key.",
        ) from error
    if unknown:
        raise ConfigError(
            f"The inverter in {folder} has parts that the recipe's model lacks: {', '.join(unknown[:3])}.",
            "Let training.start_from name an inverter with the same model section, or remove the key.",
        )
    if missing:
        logger.warning("New beside the weights of %s: %s.", folder, ", ".join(missing))


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of an inverter's folder, unpacked."""
    try:
        return unpack(load_file(folder / "model.safetensors"))
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"{folder} holds no inverter: {first_line(error)}", "Name the folder of one, such as work/run/best."
        ) from error


def _copy(target: Tensor, source: Tensor, what: str) -> None:
    if target.shape != source.shape:
        raise ConfigError(
            f"The encoder's {what} do not fit the model: {tuple(source.shape)} against {tuple(target.shape)}.",
            "Set model.width, model.feedforward and data.canvas_length to what the encoder has.",
        )
    target.copy_(source)
