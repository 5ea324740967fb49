"""Makes the graphs that ONNX Runtime runs, and rounds their weights. Knows nothing of folders or sessions."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from unembed.config import ModelConfig
from unembed.errors import require_extra
from unembed.model import ConditionalMDLM
from unembed.model.choice import IMPOSSIBLE
from unembed.model.denoiser import Modulation

if TYPE_CHECKING:
    import onnx

GraphPrecision = Literal["int8", "float32"]
HIDDEN_FILE = "hidden.onnx"
LOGITS_FILE = "logits.onnx"
CHOICE_FILE = "choice.onnx"
GRAPHS = (HIDDEN_FILE, LOGITS_FILE, CHOICE_FILE)
_OPSET = 20  # the first with Gelu
_ANY_SIZE = 1 << 40

# A product with rounded factors. Each row of x has a scale of its own, which ONNX Runtime's own dynamic quantisation
# does not give it: there, what a text becomes would depend on the texts that it is batched with.
_ROUNDED_PRODUCT = """
<opset_import: ["" : 20, "com.microsoft" : 1], domain: "unembed">
RoundedProduct (x, weight, weight_scale) => (y)
{
    last = Constant <value_ints = [-1]> ()
    smallest = Constant <value_float = 1e-30> ()
    step = Constant <value_float = 0.007874016> ()
    zero = Constant <value = uint8 {128}> ()
    size = Abs (x)
    largest = ReduceMax (size, last)
    row_scale = Max (largest, smallest)
    unit = Div (x, row_scale)
    rounded = QuantizeLinear (unit, step, zero)
    product = com.microsoft.MatMulIntegerToFloat (rounded, weight, step, weight_scale, zero)
    y = Mul (product, row_scale)
}
"""
# Weights take 7 bits: without VNNI, processors add two products of 8 bits in 16, which overflow.
_LARGEST_WEIGHT = 63

# From products to the likeliest tokens: what `choose_likeliest` does, so that torch gets numbers per position and not
# per token. A forbidden token has a logit that is small and not -inf: 0 times its surprise must be 0.
_CHOICE = f"""
<ir_version: 10, opset_import: ["" : {_OPSET}]>
choice (float[M, outputs] products, float[rows, outputs] offsets)
    => (int64[M] tokens, float[M] confidence, float[M] entropy)
{{
    last = Constant <value_ints = [-1]> ()
    impossible = Constant <value_float = {-IMPOSSIBLE}> ()
    finite = Clip (offsets, impossible)
    logits = Add (products, finite)
    tokens = ArgMax <axis = -1, keepdims = 0> (logits)
    highest = ReduceMax <keepdims = 0> (logits, last)
    probability = Softmax <axis = -1> (logits)
    confidence = ReduceMax <keepdims = 0> (probability, last)
    weighted = Mul (probability, logits)
    mean = ReduceSum <keepdims = 0> (weighted, last)
    below = Sub (highest, mean)
    certainty = Log (confidence)
    entropy = Sub (below, certainty)
}}
"""


def make_graphs(model: ConditionalMDLM, precision: GraphPrecision = "int8") -> dict[str, bytes]:
    """Return the graphs of a model as they are written to files, by name."""
    require_extra("onnx", "onnx", "onnxruntime", "onnxscript")
    import onnx

    graphs = _trace_all(model)
    if precision == "int8":
        for graph in graphs.values():
            _round_products(graph)
    graphs[CHOICE_FILE] = onnx.parser.parse_model(_CHOICE)
    return {name: graph.SerializeToString() for name, graph in graphs.items()}


class _Hidden(nn.Module):
    """A pass over canvases, as a graph is to see it."""

    def __init__(self, model: ConditionalMDLM) -> None:
        super().__init__()
        self.denoiser = model.denoiser

    def forward(
        self,
        canvas: Tensor,
        asked: Tensor,
        blocks: Tensor,
        final: Tensor,
        prefix: Tensor | None = None,
        time: Tensor | None = None,
    ) -> Tensor:
        """Map (B, T) ids to (B, k, W)."""
        if prefix is None:
            prefix = final[:, :0]
        return self.denoiser.hidden(canvas, Modulation(blocks, final, prefix), time, asked)


class _Products(nn.Module):
    """The logits without what the condition adds to them."""

    def __init__(self, model: ConditionalMDLM) -> None:
        super().__init__()
        self.denoiser = model.denoiser
        # Transposed here, so that the graph holds the matrix as it is multiplied.
        self.register_buffer("weight", model.denoiser.tied_weight().t().contiguous())
        self.weight: Tensor

    def forward(self, hidden: Tensor) -> Tensor:
        """Map hidden states (M, W) to (M, outputs)."""
        return self.denoiser.features(hidden) @ self.weight


def pass_inputs(
    config: ModelConfig, canvas: Tensor, modulation: Modulation, time: Tensor | None, asked: Tensor | None
) -> dict[str, Tensor]:
    """Return what the graph of a pass takes, by name: which inputs there are depends on the model."""
    if asked is None:
        asked = torch.arange(canvas.shape[1]).expand_as(canvas)
    inputs = {"canvas": canvas, "asked": asked, "blocks": modulation.blocks, "final": modulation.final}
    if config.prefix_tokens:
        inputs["prefix"] = modulation.prefix
    if config.time_conditioning:
        if time is None:
            raise ValueError("a model with time conditioning needs the time")
        inputs["time"] = time
    return inputs


@torch.no_grad()
def _trace_all(model: ConditionalMDLM) -> "dict[str, onnx.ModelProto]":
    config = model.config
    rows, positions, asked = 2, 4, 3  # any but 1, which would be taken for a constant
    canvas = torch.zeros(rows, positions, dtype=torch.long)
    condition = model.condition(torch.ones(rows, config.embedding_dim))
    inputs = pass_inputs(config, canvas, condition.modulation, torch.ones(rows), canvas[:, :asked])
    dynamic = {name: {0: torch.export.Dim.DYNAMIC} for name in inputs}
    dynamic["canvas"][1] = dynamic["asked"][1] = torch.export.Dim.DYNAMIC
    return {
        HIDDEN_FILE: _trace(_Hidden(model), inputs, dynamic, "hidden"),
        LOGITS_FILE: _trace(
            _Products(model),
            {"hidden": torch.ones(positions, config.width)},
            {"hidden": {0: torch.export.Dim.DYNAMIC}},
            "logits",
        ),
    }


def _trace(module: nn.Module, inputs: dict[str, Tensor], dynamic: Mapping[str, Any], output: str) -> "onnx.ModelProto":
    from onnxscript import optimizer

    with _quiet():
        program = torch.onnx.export(
            module.eval(),
            kwargs=inputs,
            input_names=list(inputs),
            output_names=[output],
            dynamic_shapes=dict(dynamic),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        # Whatever the size: a part of a matrix becomes a matrix of its own, which can be rounded.
        optimizer.optimize(program.model, input_size_limit=_ANY_SIZE, output_size_limit=_ANY_SIZE)
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, which warns about packages that are not installed and about names of axes."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _round_products(model: "onnx.ModelProto") -> None:
    """Replace every product with a fixed matrix by one of 8-bit integers; attention's own products stay."""
    import onnx
    from onnx import helper, numpy_helper

    graph = model.graph
    fixed = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in fixed:
            nodes.append(node)
            continue
        inputs, name, output = node.input[0], node.input[1], node.output[0]
        matrix = numpy_helper.to_array(fixed.pop(name))
        if any(attribute.name == "transB" and attribute.i for attribute in node.attribute):
            matrix = matrix.T
        scale = np.maximum(np.abs(matrix).max(0), np.finfo(np.float32).tiny) / _LARGEST_WEIGHT
        rounded = [
            numpy_helper.from_array(np.rint(matrix / scale).astype(np.int8), f"{name}.rounded"),
            numpy_helper.from_array(scale.astype(np.float32), f"{name}.scale"),
        ]
        fixed |= {tensor.name: tensor for tensor in rounded}
        product = f"{output}.product" if len(node.input) > 2 else output
        operands = [inputs, *(tensor.name for tensor in rounded)]
        nodes.append(helper.make_node("RoundedProduct", operands, [product], domain="unembed"))
        if len(node.input) > 2:
            nodes.append(helper.make_node("Add", [product, node.input[2]], [output]))
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(fixed.values())
    model.functions.append(onnx.parser.parse_function(_ROUNDED_PRODUCT))
    model.opset_import.append(helper.make_opsetid("unembed", 1))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
