"""Starts a model from weights that exist: a pretrained encoder's (the paper's future work), or another inverter's.

BERT, RoBERTa, MPNet and ModernBERT have layouts that the denoiser can have too: with the modulation at zero it then
computes what they compute. Encoders of other kinds are refused.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from unembed.checkpoint import read_weights
from unembed.config import ModelConfig
from unembed.encoders import known_tokenizer, load_encoder, sends_texts
from unembed.errors import ConfigError, first_line
from unembed.model import ConditionalMDLM
from unembed.model.denoiser import Block
from unembed.model.surrogate import ENDS, Surrogate
from unembed.text import printable

logger = logging.getLogger(__name__)

_LENGTH_HEAD = "length_head."
# Parts that a model may do without, whatever the inverter that it starts from has.
_OPTIONAL = ("surrogate", "writer", "extent")
_POSITIONS = "position_embedding.weight"
# Tables with a row for each position of the canvas.
_BY_POSITION = (
    *(f"{part}.{_POSITIONS}" for part in ("denoiser", "surrogate", "writer")),
    *(f"{part}.end_embedding.weight" for part in ("denoiser", "writer")),
)

# For each kind of encoder: the architecture that the denoiser must have, and the position at which a text begins, which
# is behind the first special token. RoBERTa counts from its padding's id, and so does MPNet, for which that is 1
# whatever its config says; ModernBERT knows distances only.
_KINDS: dict[str, tuple[str, Callable[[Any], int]]] = {
    "bert": ("bert", lambda config: 1),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), ("bert", lambda config: config.pad_token_id + 2)),
    "mpnet": ("mpnet", lambda config: 3),
    "modernbert": ("modernbert", lambda config: 0),
}


class _Names(NamedTuple):
    """What transformers calls an encoder's parts: our name to theirs. Where these are several, ours are joined."""

    words: str
    positions: str | None
    types: str | None
    outside: dict[str, str]
    layer: str
    inside: dict[str, tuple[str, ...]]


_BERT = _Names(
    words="embeddings.word_embeddings.weight",
    positions="embeddings.position_embeddings.weight",
    types="embeddings.token_type_embeddings.weight",
    outside={"embedding_norm": "embeddings.LayerNorm"},
    layer="encoder.layer",
    inside={
        "attention_in": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention_out": ("attention.output.dense",),
        "attention_norm": ("attention.output.LayerNorm",),
        "feedforward_in": ("intermediate.dense",),
        "feedforward_out": ("output.dense",),
        "feedforward_norm": ("output.LayerNorm",),
    },
)
_MPNET = _BERT._replace(
    types=None,
    outside=_BERT.outside | {"positions.bias": "encoder.relative_attention_bias"},
    inside=_BERT.inside
    | {
        "attention_in": ("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        "attention_out": ("attention.attn.o",),
        "attention_norm": ("attention.LayerNorm",),
    },
)
_MODERNBERT = _Names(
    words="embeddings.tok_embeddings.weight",
    positions=None,
    types=None,
    outside={"embedding_norm": "embeddings.norm", "final_norm": "final_norm"},
    layer="layers",
    inside={
        "attention_in": ("attn.Wqkv",),
        "attention_out": ("attn.Wo",),
        "attention_norm": ("attn_norm",),
        "feedforward_in": ("mlp.Wi",),
        "feedforward_out": ("mlp.Wo",),
        "feedforward_norm": ("mlp_norm",),
    },
)
_NAMES = {"bert": _BERT, "mpnet": _MPNET, "modernbert": _MODERNBERT}


@dataclass(frozen=True)
class Source:
    """A pretrained encoder of the model's architecture, taken apart."""

    name: str
    weights: dict[str, Tensor]
    """Named as in transformers."""
    beginning: int
    """The position of the first token of a text."""
    tokenizer: Tokenizer


def _open(wanted: ModelConfig, name: str) -> Source:
    """Load an encoder and take it apart, if it has the architecture that is wanted."""
    if sends_texts(name):  # a recipe may be anybody's, and must not decide where a key is sent
        raise ConfigError(
            f"'{printable(name)}' cannot start the denoiser: it runs elsewhere, so there are no weights to copy.",
            "Let training.start_from.encoder name an encoder that runs on this machine.",
        )
    encoder = load_encoder(name, device="cpu")
    source: Any = getattr(encoder, "model", [None])[0]
    source = getattr(source, "auto_model", None)
    config = getattr(source, "config", None)
    kind = getattr(config, "model_type", None)
    if kind not in _KINDS:
        raise ConfigError(
            f"'{name}' cannot start the denoiser: model_type is {kind!r}.",
            f"Choose an encoder whose model_type is {' or '.join(_KINDS)}.",
        )
    architecture, beginning = _KINDS[kind]
    if architecture != wanted.architecture:
        raise ConfigError(
            f"'{name}' cannot start a denoiser of the architecture {wanted.architecture}: model_type is {kind!r}.",
            f"Set model.architecture: {architecture} (modernbert has norm: pre, the others norm: post).",
        )
    needed = _needed(wanted, config)
    given = {key: getattr(config, key, None) for key in needed}
    if given != needed:
        differing = [f"{key} is {given[key]!r}, not {needed[key]!r}" for key in needed if given[key] != needed[key]]
        raise ConfigError(
            f"'{name}' cannot start the denoiser: {', '.join(differing)}.",
            "Set model.heads, model.norm_epsilon and model.rotary to its own, or choose another encoder with 'gelu'.",
        )
    return Source(name, source.state_dict(), beginning(config), known_tokenizer(encoder))


def start_from_encoder(model: ConditionalMDLM, name: str, tokenizer: Tokenizer, texts: Sequence[Tensor] = ()) -> None:
    """Copy an encoder's embeddings and layers into the denoiser, and into the surrogate if there is one.

    Args:
        model: with the encoder's architecture, and its modulation at zero.
        name: the encoder.
        tokenizer: the model's own. Pieces that the encoder has too take its embeddings.
        texts: ids (n, T), each batch of one length; needed for a surrogate with narrower layers than the encoder's.
    """
    source = _open(model.config, name)
    copy_weights(model, source, tokenizer)
    if model.surrogate is not None:
        device = model.denoiser.token_embedding.weight.device
        embedded = [model.denoiser.token_embedding(ids.to(device)).cpu() for ids in texts]
        copy_to_surrogate(model.surrogate, as_surrogate(model.config, source), embedded)


def load_teacher(config: ModelConfig, name: str) -> Surrogate:
    """Load an encoder as what a surrogate of it is to become: a surrogate with all its layers, as wide as they are."""
    return as_surrogate(config, _open(config, name)).eval()


def _needed(config: ModelConfig, encoder: Any) -> dict[str, Any]:
    """Return what an encoder's config must say for the denoiser to compute what it computes. Shapes show themselves."""
    if config.architecture != "modernbert":
        return {"hidden_act": "gelu", "num_attention_heads": config.heads, "layer_norm_eps": config.norm_epsilon}
    rotary = config.rotary
    return {
        "hidden_activation": "gelu",
        "num_attention_heads": config.heads,
        "norm_eps": config.norm_epsilon,
        "local_attention": rotary.window,
        "layer_types": [
            "sliding_attention" if number % rotary.global_every else "full_attention"
            for number in range(encoder.num_hidden_layers)
        ],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": rotary.global_theta},
            "sliding_attention": {"rope_type": "default", "rope_theta": rotary.local_theta},
        },
    }


@torch.no_grad()
def copy_weights(model: ConditionalMDLM, source: Source, tokenizer: Tokenizer) -> None:
    """Copy the weights of a taken-apart encoder; every shape must fit."""
    denoiser, weights = model.denoiser, source.weights
    names = _NAMES[model.config.architecture]
    try:
        words = weights[names.words]
        _copy(denoiser.token_embedding.weight, _translate(words, source, tokenizer), "vocabulary and width")
        denoiser.own_embedding.weight.copy_(words.mean(0).expand(3, -1))
        # They are the output weights too, and some encoders' are five times as long as others': the first logits are
        # to be of order one all the same, so that they do not drown the readout's prior.
        denoiser.head_norm.weight.fill_(1.0 / denoiser.token_embedding.weight.norm(dim=1).mean())
        _copy_positions(denoiser.position_embedding.weight, source, names, source.beginning)
        for part, theirs in names.outside.items():
            _fill(denoiser.get_submodule(part), weights, [theirs])
        _copy_layers(denoiser.blocks, weights, names, range(len(denoiser.blocks)))
    except KeyError as error:
        raise ConfigError(
            f"'{source.name}' cannot start a denoiser of {len(denoiser.blocks)} layers: it has no {error.args[0]}.",
            "Choose a BERT-like encoder, or at most as many model.layers as it has.",
        ) from error


@torch.no_grad()
def as_surrogate(config: ModelConfig, source: Source) -> Surrogate:
    """Copy a taken-apart encoder into a surrogate of its own shape, which then gives the vectors of the encoder."""
    names, weights = _NAMES[config.architecture], source.weights
    prefix = f"{names.layer}."
    layers = 1 + max(int(name.removeprefix(prefix).split(".")[0]) for name in weights if name.startswith(prefix))
    feedforward = weights[f"{prefix}0.{names.inside['feedforward_out'][0]}.weight"].shape[1]
    whole = config.surrogate.model_copy(update={"layers": layers, "feedforward": feedforward})
    surrogate = Surrogate(config.model_copy(update={"surrogate": whole}))
    words = weights[names.words]
    around = source.tokenizer.encode("").ids
    ends = words[around] if len(around) == ENDS else words.mean(0).expand(ENDS, -1)
    _copy(surrogate.ends, ends, "width")
    _copy_positions(surrogate.position_embedding.weight, source, names, max(0, source.beginning - 1))
    for part, theirs in names.outside.items():
        if part != "final_norm":
            _fill(surrogate.get_submodule(part), weights, [theirs])
    _copy_layers(surrogate.blocks, weights, names, range(layers))
    return surrogate


@torch.no_grad()
def copy_to_surrogate(surrogate: Surrogate, whole: Surrogate, texts: Sequence[Tensor]) -> None:
    """Copy the first layer of an encoder and its last ones: they lose least when those between are left out.

    After 42 seconds of training, three layers of all-MiniLM-L6-v2 chosen like this reach a cosine of 0.86 with its
    vectors; its layers 1, 3 and 6 reach 0.83, its first three 0.59. Narrower layers lose less than fewer layers. They
    keep the inner units whose part in the result varies most.

    Args:
        surrogate: with the encoder's architecture.
        whole: the encoder, from :func:`as_surrogate`; what is left out of its layers is gone afterwards.
        texts: embedded tokens (n, T, W), each batch of one length, on which the inner units of layers are compared.
    """
    blocks, sources = _blocks(surrogate), _blocks(whole)
    count, total = len(blocks), len(sources)
    if count > total:
        raise ConfigError(
            f"The encoder cannot start a surrogate of {count} layers: it has {total}.",
            "Lower model.surrogate.layers.",
        )
    ours, theirs = (each[0].feedforward_out.in_features for each in (blocks, sources))
    if ours > theirs:
        raise ConfigError(
            f"The encoder cannot start a surrogate with inner layers of {ours:,}: its own have {theirs:,}.",
            "Lower model.surrogate.feedforward.",
        )
    if ours < theirs and not texts:
        raise ValueError("narrower layers need texts on which to compare the encoder's inner units")
    surrogate.ends.copy_(whole.ends)
    for name, part in whole.named_children():
        if name != "blocks":
            surrogate.get_submodule(name).load_state_dict(part.state_dict())
    activations = _watch_inner_units(whole, texts) if ours < theirs else {}
    for block, number in zip(blocks, [0, *range(total - count + 1, total)], strict=True):
        source = sources[number]
        if number in activations:
            _narrow(source, ours, activations[number])
        block.load_state_dict(source.state_dict())


def _blocks(surrogate: Surrogate) -> list[Block]:
    return list(surrogate.blocks)  # type: ignore[arg-type]


def _watch_inner_units(whole: Surrogate, texts: Sequence[Tensor]) -> dict[int, Tensor]:
    """Return the activations (n, F) of the inner units of each layer's feed-forward on texts."""
    seen: dict[int, list[Tensor]] = {number: [] for number in range(len(whole.blocks))}

    def watch(number: int) -> Callable[..., None]:
        return lambda _, inputs: seen[number].append(inputs[0].flatten(0, 1))

    hooks = [
        block.feedforward_out.register_forward_pre_hook(watch(number)) for number, block in enumerate(_blocks(whole))
    ]
    for tokens in texts:
        whole(tokens)
    for hook in hooks:
        hook.remove()
    return {number: torch.cat(parts) for number, parts in seen.items()}


def _narrow(block: Block, count: int, activations: Tensor) -> None:
    """Keep the inner units of a feed-forward whose part in the result varies most, as their activations (n, F) say.

    What the others add on average becomes part of the bias.
    """
    inner, out = block.feedforward_in, block.feedforward_out
    kept = (activations.var(0) * out.weight.square().sum(0)).topk(count).indices.sort().values
    rows = torch.cat([kept + start for start in range(0, inner.out_features, out.in_features)])  # twice, with a gate
    average = activations.mean(0).index_fill(0, kept, 0.0)
    block.feedforward_in = _linear(inner.weight[rows], inner.bias[rows])
    block.feedforward_out = _linear(out.weight[:, kept], out.bias + out.weight @ average)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer


def _copy_positions(ours: Tensor, source: Source, names: _Names, beginning: int) -> None:
    if names.positions is None:
        # Still learned, from zero: by distances alone, all positions of an all-masked canvas look the same.
        ours.zero_()
    else:
        _copy(ours, source.weights[names.positions][beginning:][: len(ours)], "positions")
    if names.types is not None:
        # The encoder adds the embedding of token type 0 to every token; so do our positions.
        ours += source.weights[names.types][0]


def _copy_layers(blocks: nn.ModuleList, weights: dict[str, Tensor], names: _Names, layers: Sequence[int]) -> None:
    for block, number in zip(blocks, layers, strict=True):
        for part, joint in names.inside.items():
            _fill(block.get_submodule(part), weights, [f"{names.layer}.{number}.{theirs}" for theirs in joint])


def _fill(module: nn.Module, weights: dict[str, Tensor], theirs: list[str]) -> None:
    """Copy what the encoder calls ``theirs``, joined, into a module; a bias that the encoder lacks becomes zero."""
    for kind, parameter in module.named_parameters():
        if kind == "bias" and f"{theirs[0]}.bias" not in weights:
            parameter.zero_()
        else:
            joint = torch.cat([weights[f"{part}.{kind}"] for part in theirs])
            _copy(parameter, joint, f"weights {theirs[0]}")


def _translate(words: Tensor, source: Source, tokenizer: Tokenizer) -> Tensor:
    """Return the encoder's embedding of each of our pieces; their mean for pieces that it does not have."""
    theirs = source.tokenizer.get_vocab(with_added_tokens=True)
    ours = tokenizer.get_vocab(with_added_tokens=True)
    shared = {token: theirs[piece] for piece, token in ours.items() if piece in theirs}
    if 2 * len(shared) < len(ours):
        raise ConfigError(
            f"Only {len(shared):,} of the {len(ours):,} pieces of the store's vocabulary are known to '{source.name}'.",
            "Choose an encoder with the same kind of tokenizer, or leave out training.start_from.encoder.",
        )
    translated = words.mean(0).repeat(max(ours.values()) + 1, 1)
    translated[list(shared)] = words[list(shared.values())]
    return translated


def start_from_inverter(model: ConditionalMDLM, folder: Path) -> list[str]:
    """Copy the weights that an inverter has, except for what the model cannot use.

    That is a surrogate, a writer or an extent where the model has none, and a length head of another shape, which is
    fitted anyway. A model with a longer canvas continues the inverter's positions.

    Returns:
        What it lacks, because the model has more parts: these stay as they started.
    """
    ours, weights = model.state_dict(), read_weights(folder)
    unused = tuple(f"{part}." for part in _OPTIONAL if getattr(model, part) is None)
    left_out = [name for name in weights if name.startswith(unused)]
    heads = [{name: part.shape for name, part in of.items() if name.startswith(_LENGTH_HEAD)} for of in (ours, weights)]
    if heads[0] != heads[1]:
        left_out += heads[1]
    weights = {name: part for name, part in weights.items() if name not in left_out}
    for name in _BY_POSITION:
        if name in weights and name in ours:
            weights[name] = _continue_positions(weights[name], ours[name], further=name.endswith(_POSITIONS))
    try:
        missing, unknown = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ConfigError(
            f"The inverter in {folder} has another shape than the recipe's model: {first_line(error)}",
            "Let training.start_from.inverter name an inverter with the same model section, or remove the key.",
        ) from error
    if unknown:
        raise ConfigError(
            f"The inverter in {folder} has parts that the recipe's model lacks: {', '.join(unknown[:3])}.",
            "Let training.start_from.inverter name an inverter with the same model section, or remove the key.",
        )
    lacking = [name for name in missing if name not in heads[0]]
    if lacking:
        logger.warning("These parts are not in %s and start as in a new run: %s.", folder, ", ".join(lacking))
    return lacking


def _continue_positions(theirs: Tensor, ours: Tensor, *, further: bool) -> Tensor:
    """Return a table of positions (n, W), continued to as many rows as ours has; a table that is longer stays as it is.

    Args:
        theirs: the trained rows.
        ours: what the table started as: random, or an encoder's positions.
        further: whether the rows beyond are ours, moved as the trained ones were on average. Otherwise the last trained
            row is repeated: far from the end, all positions are alike.
    """
    known, wanted = len(theirs), len(ours)
    if known >= wanted:
        return theirs
    beyond = ours[known:] + (theirs - ours[:known]).mean(0) if further else theirs[-1:].expand(wanted - known, -1)
    return torch.cat([theirs, beyond])


def _copy(target: Tensor, source: Tensor, what: str) -> None:
    if target.shape != source.shape:
        raise ConfigError(
            f"The encoder's {what} do not fit the model: {tuple(source.shape)} against {tuple(target.shape)}.",
            "Set model.width, model.feedforward and data.canvas_length to what the encoder has.",
        )
    target.copy_(source)
