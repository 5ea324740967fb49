"""Every mistake that a user can make: exit code 2, what was wrong, what to do, and no traceback."""

import gzip
import json
import shutil

import numpy as np
import pytest
import yaml
from torch import nn

from unembed.training.state import RUN_FILE, save_state


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.txt").write_text("the cat sleeps\na dog runs\n")
    (folder / "validation.txt").write_text("the king has a horse\n")
    return folder


@pytest.fixture
def fails(run_cli):
    """Runs a command that must end as a mistake does; ``problem`` and ``remedy`` must be said on stderr, in order."""

    def fails(*arguments, problem, remedy):
        ended = run_cli(*arguments)
        assert ended.code == 2, ended
        assert "Traceback" not in ended.err
        assert ended.out == ""
        said = " ".join(ended.err.split())
        assert problem in said, said
        assert remedy in said[said.index(problem) + len(problem) :], said
        assert "Error: " in said

    return fails


class TestEmbed:
    @pytest.fixture
    def store(self, tmp_path):
        return tmp_path / "store"

    @pytest.fixture(autouse=True)
    def _fake(self, monkeypatch, fake_encoder, request):
        if "encoder" not in request.node.name:
            monkeypatch.setattr("unembed.encoders.load_encoder", lambda *_, **__: fake_encoder)

    def test_missing_corpus(self, fails, tmp_path, store):
        fails("embed", tmp_path / "nowhere", "-o", store, problem="nowhere does not exist", remedy="unembed prepare")
        assert not store.exists()

    def test_empty_folder(self, fails, tmp_path, store):
        (tmp_path / "empty").mkdir()
        fails("embed", tmp_path / "empty", "-o", store, problem="train.txt does not exist", remedy="unembed prepare")

    def test_empty_corpus(self, fails, corpus, store):
        (corpus / "train.txt").write_text("")
        fails("embed", corpus, "-o", store, problem="train.txt is empty", remedy="unembed prepare")
        fails("embed", corpus / "train.txt", "-o", store, problem="is empty", remedy="unembed prepare")
        (corpus / "validation.txt").write_text("")
        fails("embed", corpus / "validation.txt", "-o", store, problem="is empty", remedy="unembed prepare")

    def test_corpus_of_blank_lines(self, fails, corpus, store):
        (corpus / "train.txt").write_text("\n  \n\n")
        fails("embed", corpus, "-o", store, problem="No line of the source", remedy="Check the source")

    def test_binary_file(self, fails, corpus, store):
        (corpus / "train.txt").write_bytes(bytes(range(256)) * 10)
        fails("embed", corpus, "-o", store, problem="train.txt is not", remedy="UTF-8")

    def test_file_of_an_unknown_kind(self, fails, tmp_path, store):
        (tmp_path / "book.pdf").write_bytes(b"%PDF")
        fails("embed", tmp_path / "book.pdf", "-o", store, problem="book.pdf", remedy=".txt")

    def test_truncated_gzip(self, fails, tmp_path, store):
        (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"the cat sleeps\n" * 999)[:-20])
        fails("embed", tmp_path / "x.txt.gz", "-o", store, problem="x.txt.gz is truncated", remedy="gzip -t")

    def test_unknown_encoder(self, fails, corpus, store):
        name = "all-MiniLM-L12-v2"
        fails("embed", corpus, "-o", store, "--encoder", name, problem=name, remedy="did you mean 'all-MiniLM-L6-v2'?")
        assert not store.exists()

    def test_folder_without_an_encoder(self, fails, corpus, store):
        fails("embed", corpus, "-o", store, "--encoder", corpus, problem="holds no model", remedy="Give a folder")

    def test_output_is_a_file(self, fails, corpus, store):
        store.write_text("mine")
        fails("embed", corpus, "-o", store, problem=str(store), remedy="Check the path")

    def test_another_corpus_into_the_same_store(self, fails, run_cli, corpus, store):
        assert run_cli("embed", corpus, "-o", store).code == 0
        (corpus / "train.txt").write_text("something else\n")
        fails("embed", corpus, "-o", store, problem="another source text", remedy="another --output")
        fails("embed", corpus, "-o", store, "--canvas-length", 8, problem="canvas length 32, not 8", remedy="--output")


class TestInvert:
    @pytest.fixture
    def vectors(self, tmp_path):
        def save(array):
            np.save(tmp_path / "vectors.npy", array)
            return tmp_path / "vectors.npy"

        return save

    @pytest.mark.parametrize("shape", [(3, 16, 2), ()])
    def test_wrong_shape(self, fails, tiny_checkpoint, vectors, shape):
        fails(
            "invert", vectors(np.ones(shape)), "-m", tiny_checkpoint, problem=f"has the shape {shape}", remedy="(n, d)"
        )

    @pytest.mark.parametrize("shape", [(3, 15), (15,)])
    def test_wrong_dimension(self, fails, tiny_checkpoint, vectors, shape):
        path = vectors(np.ones(shape))
        fails("invert", path, "-m", tiny_checkpoint, problem="reads 16 numbers each", remedy="trained for fake")

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, fails, tiny_checkpoint, vectors, value):
        array = np.ones((5, 16))
        array[3, 7] = value
        fails("invert", vectors(array), "-m", tiny_checkpoint, problem="not finite (rows 3)", remedy="Remove these")

    def test_zero(self, fails, tiny_checkpoint, vectors):
        array = np.ones((5, 16))
        array[[1, 4]] = 0
        fails("invert", vectors(array), "-m", tiny_checkpoint, problem="all zeros (rows 1, 4)", remedy="Remove these")

    def test_not_numbers(self, fails, tiny_checkpoint, vectors):
        path = vectors(np.array([["the", "cat"]]))
        fails("invert", path, "-m", tiny_checkpoint, problem="not numbers", remedy="(n, d)")

    def test_missing_vectors(self, fails, tiny_checkpoint, tmp_path):
        path = tmp_path / "nowhere.npy"
        fails("invert", path, "-m", tiny_checkpoint, problem="no file", remedy="Check the path")

    def test_pickled_objects(self, fails, tiny_checkpoint, vectors):
        path = vectors(np.array([{"a": 1}], dtype=object))
        fails("invert", path, "-m", tiny_checkpoint, problem="Cannot read", remedy="Give a .npy file")

    @pytest.mark.parametrize("content", [b"", b"the cat", b"\x93NUMPY\x01\x00"])
    def test_no_npy_file(self, fails, tiny_checkpoint, tmp_path, content):
        (tmp_path / "x.npy").write_bytes(content)
        fails("invert", tmp_path / "x.npy", "-m", tiny_checkpoint, problem="Cannot read", remedy="Give a .npy file")

    def test_an_archive_of_arrays(self, fails, tiny_checkpoint, tmp_path):
        np.savez(tmp_path / "x.npz", a=np.ones((2, 16)))
        shutil.move(tmp_path / "x.npz", tmp_path / "x.npy")
        fails("invert", tmp_path / "x.npy", "-m", tiny_checkpoint, problem="archive", remedy="numpy.save")

    def test_missing_checkpoint(self, fails, tmp_path):
        fails("invert", "text", "-m", tmp_path / "nowhere", problem="nowhere", remedy="hub id")
        (tmp_path / "empty").mkdir()
        fails("invert", "text", "-m", tmp_path / "empty", problem="not an inverter", remedy="unembed train")

    def test_foreign_checkpoint(self, fails, tiny_checkpoint):
        (tiny_checkpoint / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 768}))
        fails("invert", "text", "-m", tiny_checkpoint, problem="not the configuration", remedy="another program")

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [("config.json", "format: unembed-1"), ("model.safetensors", "again"), ("tokenizer.json", "again")],
    )
    def test_truncated_checkpoint(self, fails, tiny_checkpoint, name, remedy):
        content = (tiny_checkpoint / name).read_bytes()
        (tiny_checkpoint / name).write_bytes(content[: len(content) // 2])
        fails("invert", "text", "-m", tiny_checkpoint, problem=name, remedy=remedy)

    def test_weights_of_another_model(self, fails, tiny_checkpoint):
        config = json.loads((tiny_checkpoint / "config.json").read_text())
        config["model"]["layers"] = 3
        (tiny_checkpoint / "config.json").write_text(json.dumps(config))
        fails("invert", "text", "-m", tiny_checkpoint, problem="do not belong", remedy="again")

    def test_encoder_that_is_not_here(self, fails, tiny_checkpoint):
        fails("invert", "text", "-m", tiny_checkpoint, problem="Unknown encoder 'fake'", remedy="Packaged")

    def test_device_that_is_not_here(self, fails, tiny_checkpoint):
        arguments = ["invert", "text", "-m", tiny_checkpoint, "--device", "cuda:99"]
        fails(*arguments, problem="'cuda:99' cannot be used", remedy="--device cpu")


class TestTrain:
    @pytest.fixture
    def recipe(self, tmp_path, tiny_store):
        values = {
            "encoder": {"name": "fake"},
            "data": {"store": str(tiny_store), "canvas_length": 12},
            "model": {"layers": 1, "width": 16, "heads": 2, "feedforward": 32},
            "training": {"output": str(tmp_path / "run"), "steps": 4, "warmup_steps": 1, "batch_size": 4},
        }

        def write(**changes):
            for section, change in changes.items():
                values[section] = values.get(section, {}) | change
            path = tmp_path / "recipe.yaml"
            path.write_text(yaml.safe_dump(values))
            return path

        return write

    def test_missing_recipe(self, fails, tmp_path):
        fails("train", tmp_path / "nowhere.yaml", problem="Cannot read the recipe", remedy="configs: granite, ")

    def test_no_yaml(self, fails, tmp_path):
        (tmp_path / "x.yaml").write_text("model: [unclosed")
        fails("train", tmp_path / "x.yaml", problem="not valid YAML", remedy="configs: granite, ")
        (tmp_path / "x.yaml").write_text("")
        fails("train", tmp_path / "x.yaml", problem="is not a recipe", remedy="sections")

    def test_typing_mistake(self, fails, recipe):
        path = recipe(training={"lerning_rate": 1e-3})
        fails("train", path, problem="training.lerning_rate: unknown key", remedy="did you mean 'learning_rate'?")

    def test_impossible_value(self, fails, recipe):
        fails("train", recipe(model={"heads": 3}), problem="not a multiple of heads 3", remedy="Fix these keys")

    def test_missing_store(self, fails, recipe, tmp_path):
        fails("train", recipe(), "--store", tmp_path / "nowhere", problem="no store", remedy="unembed embed")

    def test_store_of_another_encoder(self, fails, recipe):
        path = recipe(encoder={"name": "all-MiniLM-L6-v2"})
        fails("train", path, problem="encoder is 'fake'", remedy="Change the recipe")

    def test_store_of_another_canvas(self, fails, recipe):
        fails("train", recipe(data={"canvas_length": 32}), problem="canvas_length is 12", remedy="Change the recipe")

    @pytest.mark.parametrize("split", ["train", "validation"])
    def test_corrupt_shard(self, fails, recipe, tiny_store, split):
        path = tiny_store / split / "embeddings-00000.npy"
        content = bytearray(path.read_bytes())
        content[-1] ^= 8
        path.write_bytes(content)
        fails("train", recipe(), problem=f"{split}/embeddings-00000.npy is missing or corrupt", remedy="unembed embed")

    def test_store_without_validation(self, fails, recipe, tiny_store):
        shutil.rmtree(tiny_store / "validation")
        fails("train", recipe(), problem="no store", remedy=f"--output {tiny_store / 'validation'}")

    def test_nothing_to_resume(self, fails, recipe):
        fails("train", recipe(), "--resume", problem="nothing to resume", remedy="without --resume")

    def test_a_run_in_the_way(self, fails, recipe, tmp_path):
        save_state(tmp_path / "run" / RUN_FILE, {"model": nn.Linear(1, 1)}, [], {"step": 3})
        fails("train", recipe(), problem="already holds a run", remedy="--resume")
