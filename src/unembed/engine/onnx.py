"""Runs the passes of the denoiser in ONNX Runtime, and exports the graphs for it. Knows nothing of decoding.

Two graphs lie beside the weights: ``hidden.onnx``, a pass over canvases, and ``logits.onnx``, the scores of all tokens.
What is read off a vector once (modulation, prior, length) stays in torch, unrounded: it costs less than one pass.
"""

import json
import logging
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, nn

from unembed.checkpoint import load_checkpoint
from unembed.checkpoint.files import CARD_FILE, CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE
from unembed.config import ModelConfig
from unembed.errors import CheckpointError, first_line, require_extra
from unembed.files import atomic_path, checksum, write_bytes, write_json
from unembed.model import Condition, ConditionalMDLM
from unembed.model.denoiser import Modulation
from unembed.model.mdlm import positions_asked, put_back

if TYPE_CHECKING:
    import onnx
    import onnxruntime

Precision = Literal["int8", "fp32"]
INFO_FILE = "onnx.json"
HIDDEN_FILE = "hidden.onnx"
LOGITS_FILE = "logits.onnx"
GRAPHS = (HIDDEN_FILE, LOGITS_FILE)
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


class OnnxInfo(BaseModel):
    """What ``onnx.json`` says: how the graphs were made, and of which weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["unembed-onnx-1"] = "unembed-onnx-1"
    precision: Precision
    weights: str
    """Checksum of ``model.safetensors``."""
    graphs: dict[str, str]
    """Checksums of the graphs, by file."""


class OnnxEngine:
    """An :class:`~unembed.engine.Engine` whose passes run in ONNX Runtime, on the CPU."""

    def __init__(self, model: ConditionalMDLM, graphs: Mapping[str, Path | bytes]) -> None:
        """Open the graphs of a model: files, or what is in them, by name. Threads are as many as torch has now."""
        require_extra("onnx", "onnxruntime")
        self.model = model
        self.config = model.config
        self.vocabulary = model.vocabulary
        self._hidden, self._logits = (_open(name, graphs[name]) for name in GRAPHS)

    @classmethod
    def load(cls, folder: Path, model: ConditionalMDLM) -> Self:
        """Load the graphs that were exported into an inverter's folder; ``model`` has that folder's weights."""
        info = _read_info(folder)
        remedy = _remedy(folder)
        if info.weights != checksum(folder / WEIGHTS_FILE):
            raise CheckpointError(f"The graphs in {folder} were exported from other weights than those there.", remedy)
        for name in GRAPHS:
            if not (folder / name).is_file() or info.graphs.get(name) != checksum(folder / name):
                raise CheckpointError(f"{folder / name} is missing or damaged.", remedy)
        return cls(model, {name: folder / name for name in GRAPHS})

    @torch.no_grad()
    def condition(self, embeddings: Tensor, dropped: Tensor | None = None) -> Condition:
        """Read all that the passes need off the vectors (B, d); ``dropped`` rows are treated as having none."""
        return self.model.condition(embeddings, dropped)

    @torch.no_grad()
    def hidden(
        self, canvas: Tensor, condition: Condition, time: Tensor | None = None, where: Tensor | None = None
    ) -> Tensor:
        """Run the transformer over canvases (B, T); ``where`` (B, T) may say which positions' states matter."""
        asked = positions_asked(where)
        hidden = _run(self._hidden, _inputs(self.config, canvas, condition.modulation, time, asked))
        return hidden if where is None or asked is None else put_back(hidden, where)

    @torch.no_grad()
    def logits(self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Condition) -> Tensor:
        """Score tokens at the M positions that ``where`` (B, T) marks: (M, outputs)."""
        rows = where.nonzero()[:, 0]
        products = _run(self._logits, {"hidden": hidden[where]})
        offsets = condition.offsets if len(canvas) == 1 else condition.offsets.index_select(0, rows)
        return self.model.damp_(products.add_(offsets), rows, canvas)

    @torch.no_grad()
    def length_logits(self, embeddings: Tensor) -> Tensor:
        """Score text lengths 1 ... canvas_length."""
        return self.model.length_logits(embeddings)


def export_onnx(source: Path, folder: Path, precision: Precision = "int8") -> OnnxInfo:
    """Write the graphs of the inverter in ``source`` to ``folder``, with a copy of the inverter if that is elsewhere.

    ``onnx.json`` comes last: graphs of an export that was interrupted are never taken for whole.
    """
    graphs = make_graphs(load_checkpoint(source).model, precision)
    if folder.resolve() != source.resolve():
        for name in (CARD_FILE, CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE):
            if (source / name).is_file():
                with atomic_path(folder / name) as temporary:
                    shutil.copyfile(source / name, temporary)
    for name, graph in graphs.items():
        write_bytes(folder / name, graph)
    info = OnnxInfo(
        precision=precision,
        weights=checksum(folder / WEIGHTS_FILE),
        graphs={name: checksum(folder / name) for name in GRAPHS},
    )
    write_json(folder / INFO_FILE, info.model_dump())
    return info


def make_graphs(model: ConditionalMDLM, precision: Precision = "int8") -> dict[str, bytes]:
    """Return the graphs of a model as they are written to files, by name."""
    require_extra("onnx", "onnx", "onnxruntime", "onnxscript")
    graphs = _trace_all(model)
    if precision == "int8":
        for graph in graphs.values():
            _round_products(graph)
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


def _inputs(
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
    condition = model.condition(torch.ones(rows, config.embedding_dim or 0))
    inputs = _inputs(config, canvas, condition.modulation, torch.ones(rows), canvas[:, :asked])
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
    """Silence the exporter, which speaks of packages that are not installed and of how it names axes."""
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


def _read_info(folder: Path) -> OnnxInfo:
    if not (folder / INFO_FILE).is_file():
        raise CheckpointError(f"{folder} has no graphs for ONNX Runtime.", _remedy(folder))
    try:
        return OnnxInfo.model_validate(json.loads((folder / INFO_FILE).read_text(encoding="utf-8")))
    except (ValidationError, ValueError) as error:
        raise CheckpointError(
            f"{folder / INFO_FILE} was not written by this version of unembed.", _remedy(folder)
        ) from error


def _remedy(folder: Path) -> str:
    return f"Run: unembed export {folder} --output {folder}"


def _open(name: str, graph: Path | bytes) -> "onnxruntime.InferenceSession":
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Torch takes its turn after each run: threads that still wait for work, spinning, would only be in its way.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base
        raise CheckpointError(
            f"ONNX Runtime cannot load {name}: {first_line(error)}", "Install a newer one: pip install -U onnxruntime"
        ) from error


def _run(session: "onnxruntime.InferenceSession", inputs: dict[str, Tensor]) -> Tensor:
    """Run a graph; neither what goes in nor what comes out is copied."""
    (output,) = session.run(None, {name: tensor.detach().numpy() for name, tensor in inputs.items()})
    return torch.from_numpy(output)
