"""Graphs for ONNX Runtime: they compute what torch computes, and belong to their weights."""

import copy
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from unembed.engine import graphs, load_engine
from unembed.engine.graphs import CHOICE_FILE, HIDDEN_FILE, LOGITS_FILE
from unembed.engine.onnx import INFO_FILE, export_onnx
from unembed.errors import CheckpointError, ConfigError, MissingExtraError
from unembed.inverter import Inverter
from unembed.model import choose_likeliest

# Every option that changes what the graphs take or hold occurs in one of them.
VARIANTS = {
    "exact": {"readout": "mlp", "layers": 2},
    "prefix": {"norm": "post", "prefix_tokens": 2, "readout": "linear", "layers": 1},
    "fixed": {"canvas": "fixed", "time_conditioning": True, "conditioning": "adaln", "layers": 1},
    "mpnet": {"architecture": "mpnet", "norm": "post", "layers": 1},
    "modernbert": {"architecture": "modernbert", "rotary": {"window": 4}, "prefix_tokens": 1, "layers": 2},
}


@pytest.fixture(scope="module")
def traced() -> dict[str, dict]:
    """Graphs by the model that they are of: tracing takes seconds, rounding does not."""
    return {}


@pytest.fixture(autouse=True)
def trace_once(traced, monkeypatch):
    trace = graphs._trace_all

    def remember(model):
        weights = model.state_dict()
        key = hashlib.sha256(b"".join(weights[name].numpy().tobytes() for name in sorted(weights))).hexdigest()
        if key not in traced:
            traced[key] = trace(model)
        return copy.deepcopy(traced[key])

    monkeypatch.setattr(graphs, "_trace_all", remember)


@pytest.fixture
def exported(make_inverter, tmp_path):
    """Exports a variant and returns its folder."""

    def export(variant: str, precision: str) -> Path:
        folder = tmp_path / f"{variant}-{precision}"
        make_inverter(**VARIANTS[variant]).save_pretrained(folder)
        export_onnx(folder, folder, precision)
        return folder

    return export


@pytest.fixture
def damaged(exported) -> Path:
    """An exported inverter to be damaged."""
    return exported("exact", "int8")


def both(folder: Path):
    inverter = Inverter.from_pretrained(folder, engine="onnx")
    return inverter.model, inverter.engine


def vectors(count: int) -> torch.Tensor:
    return torch.randn(count, 16, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def take_pass(engine, embeddings, canvas, dropped=None, where=None):
    """Return the hidden states of a pass, and the logits and the likeliest tokens where the canvas is masked."""
    condition = engine.condition(embeddings, dropped)
    hidden = engine.hidden(canvas, condition, torch.linspace(0.1, 1.0, len(canvas)), where)
    masked = canvas == engine.vocabulary.mask
    chosen = engine.likeliest(hidden, masked, canvas, condition, with_entropy=True)
    return hidden, engine.logits(hidden, masked, canvas, condition), *chosen


def half_masked(engine, rows: int, length: int) -> torch.Tensor:
    canvas = torch.randint(2, engine.vocabulary.size, (rows, length), generator=torch.Generator().manual_seed(1))
    canvas[:, ::2] = engine.vocabulary.mask
    return canvas


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("rows", "length"), [(1, 1), (1, 12), (5, 7)])
def test_graphs_in_full_precision_give_what_torch_gives(exported, variant, rows, length):
    model, engine = both(exported(variant, "float32"))
    canvas = half_masked(model, rows, length)
    dropped = torch.arange(rows) % 2 == 1
    for where in (None, canvas == model.vocabulary.mask):
        passes = [take_pass(each, vectors(rows), canvas, dropped, where) for each in (engine, model)]
        for ours, theirs in zip(*passes, strict=True):
            assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_engines_decode_to_the_same_texts(exported, variant):
    folder = exported(variant, "float32")
    torch_inverter, onnx_inverter = Inverter.from_pretrained(folder), Inverter.from_pretrained(folder, engine="onnx")
    for options in ({"strategy": "confidence", "candidates": 2}, {"strategy": "euler", "seed": 3, "guidance": 0.5}):
        theirs, ours = (each.invert(vectors(4), **options) for each in (torch_inverter, onnx_inverter))
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]


SURROGATE = {"freeze_token_embeddings": True, "surrogate": {"layers": 1}, "readout": "linear", "layers": 1}


@torch.no_grad()
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_hypotheses_are_compared_by_the_models_own_surrogate(make_inverter, tmp_path, precision):
    make_inverter(**SURROGATE).save_pretrained(tmp_path / "inverter")
    export_onnx(tmp_path / "inverter", tmp_path / "inverter", precision)
    model, engine = both(tmp_path / "inverter")
    canvas = torch.tensor([[20, 31, 25], [22, 27, 29]])
    assert_close(engine.resemblance(canvas, vectors(2)), model.resemblance(canvas, vectors(2)))
    inverters = [Inverter.from_pretrained(tmp_path / "inverter", engine=name) for name in ("onnx", "torch")]
    if precision == "float32":
        ours, theirs = (each.invert(vectors(4)) for each in inverters)
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-4)


def test_without_a_surrogate_nothing_is_compared_by_it(exported):
    _, engine = both(exported("exact", "int8"))
    assert engine.resemblance(torch.tensor([[20, 31, 25]]), vectors(1)) is None


# ModernBERT's feed-forward multiplies two rounded numbers, and these models have wild weights.
@pytest.mark.parametrize(("variant", "error"), [("exact", 0.05), ("fixed", 0.05), ("mpnet", 0.05), ("modernbert", 0.1)])
def test_rounded_graphs_give_nearly_what_torch_gives(exported, variant, error):
    model, engine = both(exported(variant, "int8"))
    canvas = half_masked(model, 5, 12)
    ours, theirs = (take_pass(each, vectors(5), canvas) for each in (engine, model))
    assert (ours[0] - theirs[0]).square().mean().sqrt() < error * theirs[0].std()
    allowed = theirs[1] > -torch.inf
    assert (allowed == (ours[1] > -torch.inf)).all()
    assert (ours[1] - theirs[1])[allowed].square().mean().sqrt() < error * theirs[1][allowed].std()


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("rows", [1, 5])
def test_the_graph_chooses_what_torch_would_choose_from_its_logits(exported, precision, rows):
    _, engine = both(exported("fixed", precision))
    canvas = half_masked(engine, rows, 12)
    _, logits, *chosen = take_pass(engine, vectors(rows), canvas)
    for ours, theirs in zip(chosen, choose_likeliest(logits, with_entropy=True), strict=True):
        assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_entropies_are_infinite_unless_they_are_asked_for(exported):
    for engine in both(exported("exact", "float32")):
        canvas = half_masked(engine, 2, 6)
        condition, masked = engine.condition(vectors(2)), canvas == engine.vocabulary.mask
        with torch.no_grad():
            chosen = engine.likeliest(engine.hidden(canvas, condition), masked, canvas, condition)
        assert chosen.entropy.shape == (6,)
        assert chosen.entropy.isinf().all()


def test_products_of_rounded_graphs_are_products_of_integers(exported):
    import onnx

    for name in (HIDDEN_FILE, LOGITS_FILE):
        graph = onnx.load(exported("fixed", "int8") / name).graph
        floats = [tensor for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
        matrices = {tensor.name for tensor in floats if len(tensor.dims) == 2}
        products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
        assert not any(matrices & set(node.input) for node in products)
        assert any(node.op_type == "RoundedProduct" for node in graph.node)


def test_a_rounded_text_does_not_depend_on_the_texts_it_is_batched_with(exported):
    _, engine = both(exported("exact", "int8"))
    canvas, embeddings = half_masked(engine, 6, 8), vectors(6)
    together = take_pass(engine, embeddings, canvas)[1].view(6, 4, -1)
    for row in range(6):
        alone = take_pass(engine, embeddings[row : row + 1], canvas[row : row + 1])[1]
        assert_close(alone, together[row], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("strategy", ["sequential", "euler", "euler-remask", "two-stage", "confidence", "adaptive"])
def test_every_blind_strategy_runs_on_rounded_graphs_and_leaves_no_mask(exported, strategy):
    inverter = Inverter.from_pretrained(exported("exact", "int8"), engine="onnx")
    *_, last = inverter.decode(vectors(3), strategy=strategy, steps=3, lengths=[5, 5, 5])
    assert last.final.all()
    assert (last.canvas < inverter.info.vocabulary.size).all()


def test_an_export_elsewhere_takes_the_inverter_along(exported, tmp_path):
    before, after = exported("exact", "float32"), tmp_path / "after"
    assert export_onnx(before, after).precision == "int8"
    assert {path.name for path in after.iterdir()} == {path.name for path in before.iterdir()}
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        assert (after / name).read_bytes() == (before / name).read_bytes()
    assert len(Inverter.from_pretrained(after, engine="onnx").invert(vectors(2))) == 2
    sizes = [(folder / HIDDEN_FILE).stat().st_size for folder in (after, before)]
    assert sizes[0] < sizes[1]


def test_a_folder_without_graphs_says_how_to_make_them(tiny_checkpoint):
    with pytest.raises(CheckpointError, match="no graphs") as caught:
        Inverter.from_pretrained(tiny_checkpoint, engine="onnx")
    assert caught.value.remedy == f"Run: unembed export {tiny_checkpoint} --output {tiny_checkpoint}"


def test_graphs_of_other_weights_are_refused(damaged, make_inverter):
    make_inverter(seed=5, **VARIANTS["exact"]).save_pretrained(damaged)
    with pytest.raises(CheckpointError, match="other weights"):
        Inverter.from_pretrained(damaged, engine="onnx")
    assert Inverter.from_pretrained(damaged).invert(np.ones(16))


@pytest.mark.parametrize("name", [HIDDEN_FILE, LOGITS_FILE, CHOICE_FILE])
def test_a_damaged_or_missing_graph_is_refused(damaged, name):
    (damaged / name).write_bytes((damaged / name).read_bytes()[:-10])
    with pytest.raises(CheckpointError, match=f"{name} is missing or damaged"):
        Inverter.from_pretrained(damaged, engine="onnx")
    (damaged / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing or damaged"):
        Inverter.from_pretrained(damaged, engine="onnx")


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "unembed-onnx-0"}'])
def test_facts_that_cannot_be_read_are_refused(damaged, text):
    (damaged / INFO_FILE).write_text(text)
    with pytest.raises(CheckpointError, match="not written by this version"):
        Inverter.from_pretrained(damaged, engine="onnx")


def test_a_graph_that_onnx_runtime_cannot_load_is_an_error_of_ours(damaged):
    from unembed.files import checksum

    (damaged / LOGITS_FILE).write_bytes(b"no graph")
    facts = json.loads((damaged / INFO_FILE).read_text())
    facts["graphs"][LOGITS_FILE] = checksum(damaged / LOGITS_FILE)
    (damaged / INFO_FILE).write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match="cannot load"):
        Inverter.from_pretrained(damaged, engine="onnx")


def test_without_the_extra_loading_and_exporting_say_what_to_install(damaged, monkeypatch):
    monkeypatch.setattr("unembed.errors.find_spec", lambda name: None)
    for attempt in (
        lambda: Inverter.from_pretrained(damaged, engine="onnx"),
        lambda: export_onnx(damaged, damaged, "int8"),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'unembed\[onnx\]'"):
            attempt()


def test_the_engine_runs_on_the_cpu_only(damaged):
    with pytest.raises(ConfigError, match="runs on the CPU, not on 'cuda'"):
        Inverter.from_pretrained(damaged, engine="onnx", device="cuda")


def test_an_unknown_engine_is_named(damaged):
    with pytest.raises(ConfigError, match="no engine 'onyx': did you mean 'onnx'"):
        Inverter.from_pretrained(damaged, engine="onyx")


def test_the_engine_called_torch_is_the_model_itself(build_model, tmp_path):
    model = build_model()
    assert load_engine("torch", tmp_path, model) is model


def test_a_model_with_time_conditioning_needs_the_time(exported):
    _, engine = both(exported("fixed", "float32"))
    canvas = half_masked(engine, 1, 12)
    with pytest.raises(ValueError, match="needs the time"):
        engine.hidden(canvas, engine.condition(vectors(1)))
