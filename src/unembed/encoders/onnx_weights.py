"""A BERT model from an ONNX file (floats, or int8 with scales) to a folder that sentence-transformers reads.

The exporter keeps the names of tables, norms and biases. A matrix gets a number for a name, and is transposed; but the
node that multiplies by it is named after its layer. ONNX Runtime's optimiser puts query, key and value into one matrix,
and its quantiser writes ``x_quantized``, ``x_scale`` and ``x_zero_point`` for ``x``. Runs no graph.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from unembed.encoders.folders import completed, write_model
from unembed.errors import EncoderError, first_line

# What of a model's own configuration its class is built from; the rest is about training, or the author's machine.
_KEYS = (
    "architectures",
    "model_type",
    "hidden_act",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "pad_token_id",
)
_WORDS = "embeddings.word_embeddings.weight"
_PARAMETER = re.compile(r"(?:^|\.)((?:embeddings|encoder\.layer\.\d+)\.[\w.]+\.(?:weight|bias))$")
_LAYER = re.compile(r"/(encoder/layer\.\d+(?:/[a-z]\w*)+)/[A-Z]\w*$")
_QUANTISED = "_quantized"


def unpack_bert(
    model: Path,
    files: Path,
    folder: Path,
    *,
    pooling: str,
    special_tokens: Mapping[str, str],
    document_prompt: str | None = None,
) -> None:
    """Write the model of an ONNX file to a folder, in sentence-transformers' format and in float32.

    Args:
        model: the ONNX file.
        files: a folder with the model's ``config.json`` and ``tokenizer.json``.
        folder: an empty folder.
        pooling: ``cls`` or ``mean``.
        special_tokens: what the tokenizer calls its special tokens.
        document_prompt: what is put before a document.
    """
    try:
        found = json.loads((files / "config.json").read_text(encoding="utf-8"))
        weights = read_bert_weights(model)
        shutil.copyfile(files / "tokenizer.json", folder / "tokenizer.json")
        # Rows that no token reads are left out: a search would propose them as substitutes.
        pieces = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
        weights[_WORDS] = weights[_WORDS][:pieces]
        config = {key: found[key] for key in _KEYS} | {"vocab_size": pieces}
        write_model(
            folder,
            completed(weights, config),
            config,
            special_tokens=special_tokens,
            max_length=config["max_position_embeddings"],
            pooling=pooling,
            document_prompt=document_prompt,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise EncoderError(f"{model} cannot be read: {first_line(error)}", "Reinstall its package.") from error


def read_bert_weights(path: Path) -> dict[str, np.ndarray]:
    """Return the weights by the names that transformers' ``BertModel`` gives them, in float32.

    Raises:
        ValueError: the file is no ONNX file, or a matrix belongs to no layer.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        graph = onnx.load(path).graph
    except DecodeError as error:
        raise ValueError("it is not an ONNX file") from error
    tensors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    if not tensors:
        raise ValueError("it is not an ONNX file, or has no weights")
    weights = {}
    for name in tensors:
        if found := _PARAMETER.search(name.removesuffix(_QUANTISED)):
            weights[found[1]] = _dequantised(tensors, name)
    for node in graph.node:
        weights.update(_matrices(node, tensors))
    return weights


def _matrices(node: Any, tensors: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what a node multiplies by, under the names of its layer."""
    if node.op_type in ("MatMul", "MatMulInteger") and node.input[1] in tensors:
        yield f"{_layer(node.name)}.weight", _dequantised(tensors, node.input[1]).T
    elif node.op_type == "Attention":
        layer = _layer(node.output[0])
        weight, bias = (_dequantised(tensors, name) for name in node.input[1:3])
        thirds = zip(np.split(weight, 3, axis=1), np.split(bias, 3), strict=True)
        for part, (matrix, shift) in zip(("query", "key", "value"), thirds, strict=True):
            yield f"{layer}.{part}.weight", matrix.T
            yield f"{layer}.{part}.bias", shift


def _layer(name: str) -> str:
    found = _LAYER.search(name)
    if not found:
        raise ValueError(f"its node {name or 'without a name'} belongs to no layer of BERT")
    return found[1].replace("/", ".")


def _dequantised(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return a tensor in float32; integers minus their zero point, times their scale (one, or one per column)."""
    tensor = tensors[name]
    if np.issubdtype(tensor.dtype, np.floating):
        return tensor.astype(np.float32)
    scale, zero = (tensors.get(f"{name.removesuffix(_QUANTISED)}_{kind}") for kind in ("scale", "zero_point"))
    if not name.endswith(_QUANTISED) or scale is None or zero is None:
        raise ValueError(f"its tensor {name} has no scale or zero point")
    weight: np.ndarray = (tensor.astype(np.float32) - zero.astype(np.float32)) * scale
    return weight
