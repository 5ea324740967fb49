"""Starts a model from weights that exist: a pretrained encoder's (the paper's future work), or another inverter's.

BERT and RoBERTa are the denoiser's own layout: with the modulation at zero it then computes what they compute. MPNet
(relative positions) and ModernBERT (rotary positions, gated feed-forward, local attention) are not, and are refused.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from unembed.encoders import load_encoder
from unembed.errors import ConfigError, first_line
from unembed.model import ConditionalMDLM
from unembed.model.packing import unpack

logger = logging.getLogger(__name__)

# At which position of the encoder a text begins: behind its first special token. RoBERTa counts from its padding's id.
_BEGINNINGS = {"bert": lambda config: 1}
_BEGINNINGS |= dict.fromkeys(("roberta", "xlm-roberta", "camembert"), lambda config: config.pad_token_id + 2)


@dataclass(frozen=True)
class Source:
    """A pretrained encoder, taken apart."""

    name: str
    weights: dict[str, Tensor]
    """Named as in transformers' ``BertModel`` and ``RobertaModel``."""
    beginning: int
    """The position of the first token of a text."""
    tokenizer: Tokenizer


def initialise_from_encoder(model: ConditionalMDLM, name: str, tokenizer: Tokenizer) -> None:
    """Copy an encoder's embeddings and its first layers into the denoiser.

    Args:
        model: with the layout ``post``, and its modulation at zero.
        name: the encoder.
        tokenizer: the model's own. Pieces that the encoder has too take its embeddings.
    """
    encoder = load_encoder(name, device="cpu")
    source: Any = getattr(encoder, "model", [None])[0]
    source = getattr(source, "auto_model", None)
    config = getattr(source, "config", None)
    keys = ("model_type", "hidden_act", "num_attention_heads", "layer_norm_eps")
    kind, *facts = (getattr(config, key, None) for key in keys)
    if kind not in _BEGINNINGS or facts != ["gelu", model.config.heads, model.config.norm_epsilon]:
        described = ", ".join(f"{key} is {value!r}" for key, value in zip(keys, (kind, *facts), strict=True))
        raise ConfigError(
            f"'{name}' cannot initialise the denoiser: {described}.",
            f"Choose a {' or '.join(_BEGINNINGS)} encoder with hidden_act 'gelu', and set model.heads and "
            "model.norm_epsilon to its own.",
        )
    beginning = _BEGINNINGS[kind](config)
    copy_weights(model, Source(name, source.state_dict(), beginning, encoder.tokenizer), tokenizer)


@torch.no_grad()
def copy_weights(model: ConditionalMDLM, source: Source, tokenizer: Tokenizer) -> None:
    """Copy the weights of a taken-apart encoder; every shape must fit."""
    denoiser, weights = model.denoiser, source.weights
    try:
        words = weights["embeddings.word_embeddings.weight"]
        _copy(denoiser.token_embedding.weight, _translate(words, source, tokenizer), "vocabulary and width")
        positions = weights["embeddings.position_embeddings.weight"][source.beginning :]
        _copy(denoiser.position_embedding.weight, positions[: len(denoiser.position_embedding.weight)], "positions")
        # The encoder adds the embedding of token type 0 to every token; so do our positions.
        denoiser.position_embedding.weight += weights["embeddings.token_type_embeddings.weight"][0]
        denoiser.embedding_norm.weight.copy_(weights["embeddings.LayerNorm.weight"])
        denoiser.embedding_norm.bias.copy_(weights["embeddings.LayerNorm.bias"])
        denoiser.own_embedding.weight.copy_(words.mean(0).expand(3, -1))
        for number, block in enumerate(denoiser.blocks):
            layer = f"encoder.layer.{number}."
            for kind in ("weight", "bias"):
                joint = [weights[f"{layer}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
                _copy(getattr(block.attention_in, kind), torch.cat(joint), "width")
                for ours, theirs in (
                    ("attention_out", "attention.output.dense"),
                    ("attention_norm", "attention.output.LayerNorm"),
                    ("feedforward_in", "intermediate.dense"),
                    ("feedforward_out", "output.dense"),
                    ("feedforward_norm", "output.LayerNorm"),
                ):
                    _copy(getattr(getattr(block, ours), kind), weights[f"{layer}{theirs}.{kind}"], "feedforward")
    except KeyError as error:
        raise ConfigError(
            f"'{source.name}' cannot start a denoiser of {len(denoiser.blocks)} layers: it has no {error.args[0]}.",
            "Choose a BERT-like encoder, or at most as many model.layers as it has.",
        ) from error


def _translate(words: Tensor, source: Source, tokenizer: Tokenizer) -> Tensor:
    """Return the encoder's embedding of each of our pieces; their mean for pieces that it does not have."""
    theirs = source.tokenizer.get_vocab(with_added_tokens=True)
    ours = tokenizer.get_vocab(with_added_tokens=True)
    shared = {token: theirs[piece] for piece, token in ours.items() if piece in theirs}
    if 2 * len(shared) < len(ours):
        raise ConfigError(
            f"Only {len(shared):,} of the {len(ours):,} pieces of the store's vocabulary are known to '{source.name}'.",
            "Choose an encoder with the same kind of tokenizer, or leave out model.initialise_from.",
        )
    translated = words.mean(0).repeat(max(ours.values()) + 1, 1)
    translated[list(shared)] = words[list(shared.values())]
    return translated


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
