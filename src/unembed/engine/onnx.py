"""Runs the passes of the denoiser in ONNX Runtime, and exports the graphs for it. Knows nothing of decoding.

Three graphs are stored with the weights: ``hidden.onnx``, a pass over canvases; ``logits.onnx``, its products with the
token embeddings; and ``choice.onnx``, which makes of these the likeliest tokens. What is read off a vector once
(modulation, prior, length) stays in torch, unrounded: it costs less than one pass.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from unembed.checkpoint import load_checkpoint
from unembed.checkpoint.files import CARD_FILE, CONFIG_FILE, NGRAMS_FILE, TOKENIZER_FILE, WEIGHTS_FILE, WORDS_FILE
from unembed.config import SpellOutPrecision
from unembed.engine.graphs import GRAPHS, GraphPrecision, make_graphs, pass_inputs
from unembed.errors import CheckpointError, first_line, require_extra
from unembed.files import atomic_path, checksum, write_bytes, write_json
from unembed.model import Choice, Condition, ConditionalMDLM, Writing
from unembed.model.candidates import Candidates
from unembed.model.mdlm import positions_asked, put_back

if TYPE_CHECKING:
    import onnxruntime

INFO_FILE = "onnx.json"
# The fused kernel takes longer than the two that it replaces.
_SLOWER_FUSED = "SkipLayerNormFusion"


class OnnxInfo(BaseModel):
    """What ``onnx.json`` says: how the graphs were made, and of which weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["unembed-onnx-1"] = "unembed-onnx-1"
    precision: Annotated[GraphPrecision, SpellOutPrecision]
    weights: str
    """Checksum of ``model.safetensors``."""
    graphs: dict[str, str]
    """Checksums of the graphs, by file."""


class OnnxEngine:
    """An :class:`~unembed.engine.Engine` whose passes run in ONNX Runtime, on the CPU."""

    def __init__(self, model: ConditionalMDLM, graphs: Mapping[str, Path | bytes]) -> None:
        """Open the graphs of a model: files, or what is in them, by name. Threads are as many as torch has now."""
        require_extra("onnx", "onnxruntime")
        self.model = model.round_writer()  # it runs in torch
        self.config = model.config
        self.vocabulary = model.vocabulary
        self._hidden, self._products, self._choice = (_open(name, graphs[name]) for name in GRAPHS)

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
    def condition(
        self, embeddings: Tensor, dropped: Tensor | None = None, candidates: Candidates | None = None
    ) -> Condition:
        """Read all that the passes need off the vectors (B, d); ``dropped`` rows are treated as having none."""
        return self.model.condition(embeddings, dropped, candidates)

    def shorten(self, condition: Condition) -> Condition:
        """Return the condition as it is: the graph has the output weights in one piece."""
        return condition

    @torch.no_grad()
    def hidden(
        self, canvas: Tensor, condition: Condition, time: Tensor | None = None, where: Tensor | None = None
    ) -> Tensor:
        """Run the transformer over canvases (B, T); ``where`` (B, T) may say which positions' states matter."""
        asked = positions_asked(where)
        (hidden,) = _run(self._hidden, pass_inputs(self.config, canvas, condition.modulation, time, asked))
        return hidden if where is None or asked is None else put_back(hidden, where)

    @torch.no_grad()
    def logits(self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Condition) -> Tensor:
        """Score tokens at the M positions that ``where`` (B, T) marks: (M, outputs)."""
        (products,) = _run(self._products, {"hidden": hidden[where]})
        if condition.candidates is not None:
            products = products.index_select(1, condition.candidates.tokens)
        return products.add_(self._offsets(where, canvas, condition))

    @torch.no_grad()
    def likeliest(
        self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Condition, *, with_entropy: bool = False
    ) -> Choice:
        """Choose the likeliest token at each of these positions.

        What is as large as the logits stays in the graphs: torch's threads, which spin for a while after each of its
        larger operations, would be in the way of ONNX Runtime's.
        """
        (products,) = _run(self._products, {"hidden": hidden[where]})
        offsets = self._offsets(where, canvas, condition)
        tokens, confidence, entropy = _run(self._choice, {"products": products, "offsets": offsets})
        return Choice(tokens, confidence, entropy if with_entropy else torch.full_like(entropy, torch.inf))

    def _offsets(self, where: Tensor, canvas: Tensor, condition: Condition) -> Tensor:
        """Return what is added to the products, (M, outputs) or, of a single canvas, (1, outputs)."""
        every = torch.arange(len(canvas))
        offsets = self.model.damp_(condition.offsets.clone(), every, canvas, condition)
        return offsets if len(canvas) == 1 else offsets.index_select(0, where.nonzero()[:, 0])

    @torch.no_grad()
    def length_logits(self, embeddings: Tensor) -> Tensor:
        """Score text lengths 1 ... canvas_length."""
        return self.model.length_logits(embeddings)

    @property
    def writes(self) -> bool:
        """Whether there is a writer that has learnt something."""
        return self.model.writes

    @torch.no_grad()
    def writing(self, embeddings: Tensor) -> Writing | None:
        """Return what writing from left to right needs of vectors (B, d), if there is a writer. It runs in torch."""
        return self.model.writing(embeddings)

    @torch.no_grad()
    def resemblance(self, canvas: Tensor, embeddings: Tensor) -> Tensor | None:
        """Return how near finished canvases (B, T) come to their vectors (B, d) by the surrogate, if there is one."""
        return self.model.resemblance(canvas, embeddings)


def export_onnx(source: Path, folder: Path, precision: GraphPrecision = "int8") -> OnnxInfo:
    """Write the graphs of the inverter in ``source`` to ``folder``, with a copy of the inverter if that is elsewhere.

    ``onnx.json`` comes last: graphs of an export that was interrupted are never taken for whole.
    """
    graphs = make_graphs(load_checkpoint(source).model, precision)
    if folder.resolve() != source.resolve():
        for name in (CARD_FILE, CONFIG_FILE, TOKENIZER_FILE, WORDS_FILE, NGRAMS_FILE, WEIGHTS_FILE):
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
        return onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=[_SLOWER_FUSED]
        )
    except Exception as error:  # its errors have no common base
        raise CheckpointError(
            f"ONNX Runtime cannot load {name}: {first_line(error)}", "Install a newer one: pip install -U onnxruntime"
        ) from error


def _run(session: "onnxruntime.InferenceSession", inputs: dict[str, Tensor]) -> list[Tensor]:
    """Run a graph; neither what goes in nor what comes out is copied."""
    outputs = session.run(None, {name: tensor.detach().numpy() for name, tensor in inputs.items()})
    return [torch.from_numpy(output) for output in outputs]
