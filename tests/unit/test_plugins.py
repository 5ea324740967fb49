"""Encoders and connectors of other packages: a tiny one, installed as pip would, offers both."""

import sys

import numpy as np
import pytest

from unembed.connectors import is_vector_uri, open_vectors
from unembed.encoders import EncoderDescription, load_described_encoder, load_encoder, sends_texts
from unembed.errors import ConfigError, EncoderError, UnembedError, VectorError

MODULE = """
import numpy as np
from unembed.connectors import StorageInfo, VectorBatch, VectorSource
from unembed.encoders import EncoderDescription, EncoderPlugin

class Letters:
    tokenizer = None

    def __init__(self, name, prompt=None):
        self.prompt = prompt or ""
        self.description = EncoderDescription(
            name=name, revision="1", dim=2, prompt=prompt, pooling="none", normalised=False
        )

    def encode(self, sentences, *, batch_size=32, show_progress_bar=False):
        return np.array([[len(self.prompt + text), 1.0] for text in sentences], dtype=np.float32)

local = EncoderPlugin(Letters, sends_texts=False)
remote = EncoderPlugin(Letters)
wrong = Letters
no_encoder = EncoderPlugin(lambda name: None)

def open_numbers(location, part, column, batch_rows):
    vectors = np.full((int(location), 3), float(part or 1))
    return VectorSource(f"numbers:{location}", len(vectors), iter([VectorBatch(range(len(vectors)), vectors)]),
                        storage=StorageInfo("numbers"))
"""
ENTRY_POINTS = """
[unembed.encoders]
letters = tiny_plugin:local
far-letters = tiny_plugin:remote
wrong = tiny_plugin:wrong
broken = tiny_plugin_that_is_not_there:load
no-encoder = tiny_plugin:no_encoder
all-MiniLM-L6-v2 = tiny_plugin:local

[unembed.connectors]
numbers = tiny_plugin:open_numbers
chroma = tiny_plugin:open_numbers
wrong = tiny_plugin:MODULE
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    (tmp_path / "tiny_plugin.py").write_text(f"{MODULE}\nMODULE = 'no connector'\n")
    metadata = tmp_path / "tiny_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("tiny_plugin", None)


def described(name):
    return EncoderDescription(name=name, revision="1", dim=2, prompt=None, pooling="none", normalised=False)


def test_an_encoder_of_a_plugin_is_loaded_by_its_name():
    encoder = load_encoder("letters")
    assert encoder.encode(["the", "cat sleeps"]).tolist() == [[3.0, 1.0], [10.0, 1.0]]
    assert load_encoder("letters:large", prompt="query: ").encode(["a"])[0, 0] == 8
    assert load_encoder("letters:large").description.name == "letters:large"


def test_an_option_that_the_plugin_does_not_have_is_refused():
    for options in ({"task": "retrieval"}, {"truncate_dim": 1}, {"device": "cuda"}, {"precision": "bfloat16"}):
        (option,) = options
        with pytest.raises(ConfigError, match=f"does not support {option}"):
            load_encoder("letters", **options)
    assert load_encoder("letters", precision="auto").description.precision == "float32"


def test_a_checkpoint_may_name_a_plugin_only_if_no_text_leaves_the_machine():
    assert load_described_encoder(described("letters")).description.name == "letters"
    assert sends_texts("far-letters")
    with pytest.raises(EncoderError, match="Texts would be sent to 'far-letters:large'"):
        load_described_encoder(described("far-letters:large"))
    assert load_described_encoder(described("far-letters"), location="far-letters").description.name == "far-letters"


def test_a_plugin_cannot_take_a_name_that_is_known_here(tmp_path):
    assert not sends_texts("all-MiniLM-L6-v2")
    assert type(load_encoder("all-MiniLM-L6-v2", device="cpu")).__name__ == "SentenceTransformerEncoder"
    with pytest.raises(VectorError, match="no Chroma database"):
        open_vectors(f"chroma:{tmp_path}")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("wrong", "is not an unembed.encoders.EncoderPlugin"),
        ("broken", "of the package tiny-plugin cannot be loaded: No module named"),
        ("no-encoder", "does not return an encoder"),
    ],
)
def test_a_plugin_that_does_not_work_is_named(name, problem):
    with pytest.raises(UnembedError, match=problem) as caught:
        load_encoder(name)
    assert "ninstall" in caught.value.remedy


def test_two_packages_that_offer_one_name_are_both_named(package):
    other = package / "other_plugin-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-plugin\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[unembed.encoders]\nletters = tiny_plugin:remote\n")
    with pytest.raises(UnembedError, match="other-plugin, tiny-plugin"):
        load_encoder("letters")


def test_a_connector_of_a_plugin_opens_its_own_addresses():
    assert is_vector_uri("numbers:4")
    assert not is_vector_uri("letters:4")
    source = open_vectors("numbers:4#2")
    assert source.storage.kind == "numbers"
    np.testing.assert_array_equal(next(source.batches), np.full((4, 3), 2.0))
    with pytest.raises(VectorError, match="is not a connector"):
        open_vectors("wrong:4")


def test_the_command_line_lists_and_uses_plugins(run_cli, tmp_path, tiny_tokenizer):
    assert "letters  (plugin)" in run_cli("encoders").out
    tiny_tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "texts.txt").write_text("the cat\nthe dog runs\n")
    ended = run_cli(
        *("embed", tmp_path / "texts.txt", "-o", tmp_path / "store", "--encoder", "letters"),
        *("--tokenizer", tmp_path / "tokenizer.json"),
    )
    assert ended.code == 0, ended.err
