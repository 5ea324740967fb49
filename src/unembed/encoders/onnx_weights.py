"""The weights of a BERT model out of an ONNX file: float16 or float32, or int8 with scales. Runs no graph.

The exporter keeps the names of tables, norms and biases. A matrix gets a number for a name, and lies transposed; but the
node that multiplies by it is named after its layer. ONNX Runtime's optimiser puts query, key and value into one matrix,
and its quantiser writes ``x_quantized``, ``x_scale`` and ``x_zero_point`` for ``x``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_PARAMETER = re.compile(r"(?:^|\.)((?:embeddings|encoder\.layer\.\d+)\.[\w.]+\.(?:weight|bias))$")
_LAYER = re.compile(r"/(encoder/layer\.\d+(?:/[a-z]\w*)+)/[A-Z]\w*$")
_QUANTISED = "_quantized"


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
