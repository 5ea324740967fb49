"""``unembed export``, and ``unembed invert`` with what it wrote."""

import json

import numpy as np

from unembed.engine.onnx import OnnxInfo


def test_an_exported_inverter_inverts_with_the_onnx_engine(run_cli, tiny_checkpoint, tmp_path):
    folder, file = tmp_path / "onnx", tmp_path / "vectors.npy"
    np.save(file, np.random.default_rng(0).normal(size=(3, 16)))
    ended = run_cli("export", tiny_checkpoint, "--output", folder, "--precision", "float32")
    assert ended.code == 0, ended.err
    assert "float32" in ended.out
    assert "hidden.onnx" in ended.out
    assert f"--model {folder} --engine onnx" in ended.err
    recovered = [
        run_cli("invert", file, "--model", folder, "--engine", engine, "--json") for engine in ("onnx", "torch")
    ]
    assert [ended.code for ended in recovered] == [0, 0], recovered[0].err
    texts = [[json.loads(line)["text"] for line in ended.out.splitlines()] for ended in recovered]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3


def test_the_result_can_be_had_as_json(run_cli, tiny_checkpoint, monkeypatch):
    asked = []

    def pretend(source, folder, precision):
        asked.append((source, folder, precision))
        (folder / "logits.onnx").write_bytes(b"12345")
        return OnnxInfo(precision=precision, weights="", graphs={"logits.onnx": ""})

    monkeypatch.setattr("unembed.engine.onnx.export_onnx", pretend)
    ended = run_cli("export", tiny_checkpoint, "-o", tiny_checkpoint, "--json")
    assert ended.code == 0, ended.err
    assert asked == [(tiny_checkpoint, tiny_checkpoint, "int8")]
    said = {"output": str(tiny_checkpoint), "precision": "int8", "bytes": {"logits.onnx": 5}}
    assert json.loads(ended.out) == said


def test_what_is_no_inverter_cannot_be_exported(run_cli, tmp_path):
    ended = run_cli("export", tmp_path, "--output", tmp_path / "onnx")
    assert ended.code == 2
    assert "is not an inverter" in ended.err
    assert not (tmp_path / "onnx").exists()


def test_a_folder_without_graphs_is_an_error_with_the_command_to_type(run_cli, tiny_checkpoint, tmp_path):
    np.save(tmp_path / "vectors.npy", np.ones((1, 16)))
    ended = run_cli("invert", tmp_path / "vectors.npy", "--model", tiny_checkpoint, "--engine", "onnx")
    assert ended.code == 2
    assert f"unembed export {tiny_checkpoint}" in ended.err


def test_without_the_extra_the_command_says_what_to_install(run_cli, tiny_checkpoint, monkeypatch):
    monkeypatch.setattr("unembed.errors.find_spec", lambda name: None)
    ended = run_cli("export", tiny_checkpoint, "-o", tiny_checkpoint)
    assert ended.code == 2
    assert "pip install 'unembed[onnx]'" in ended.err
