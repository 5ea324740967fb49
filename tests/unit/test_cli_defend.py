"""``unembed defend apply`` and ``undo``: what is written, kept and refused."""

import json
import stat
from collections import Counter

import numpy as np
import pytest

import stores
from unembed.connectors import open_vectors
from unembed.measures.vectors import cosine, normalise

TEXTS = [f"text number {row}" for row in range(200)]


@pytest.fixture(scope="module")
def vectors():
    """With a mean direction, as the vectors of encoders have."""
    return normalise(np.random.default_rng(0).normal(loc=np.linspace(0, 2, 16), size=(200, 16)).astype(np.float32))


@pytest.fixture
def source(tmp_path, vectors):
    return stores.jsonl(tmp_path / "store", vectors, TEXTS)


def read(address):
    batches = list(open_vectors(str(address)).usable(Counter()))
    texts = [text for batch in batches for text in batch.texts or [None] * len(batch)]
    return np.concatenate([batch.vectors for batch in batches]), [i for batch in batches for i in batch.ids], texts


def test_a_rotated_copy_is_undone_with_its_key(run_cli, source, vectors, tmp_path):
    before = stores.contents(tmp_path / "store")
    ended = run_cli("defend", "apply", source, "--with", "rotate", "--output", tmp_path / "new.npy")
    assert ended.code == 0, ended.err
    assert stores.contents(tmp_path / "store") == before
    defended = np.load(tmp_path / "new.npy")
    assert cosine(defended, vectors).mean() < 0.9
    key = tmp_path / "new.npy.key"
    assert str(key) in ended.out
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    note = json.loads((tmp_path / "new.npy.defence.json").read_text())
    assert note["chain"] == "rotate"
    ended = run_cli("defend", "undo", tmp_path / "new.npy", "--key", key, "--output", tmp_path / "back.npy")
    assert ended.code == 0, ended.err
    assert np.allclose(np.load(tmp_path / "back.npy"), vectors, atol=1e-5)


def test_two_keys_are_never_the_same(run_cli, source, tmp_path):
    for name in ("a", "b"):
        run_cli("defend", "apply", source, "--with", "rotate", "--output", tmp_path / f"{name}.npy")
    assert not np.allclose(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"), atol=0.1)


@pytest.mark.parametrize("name", ["new.jsonl", "new.parquet", "new.faiss", "chroma:new#docs", "lancedb:new#docs"])
def test_every_kind_of_copy_can_be_read_again(name, run_cli, source, vectors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run_cli("defend", "apply", source, "--with", "truncate:12,int8", "--output", name, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["bytes_per_vector"] == 16
    again, ids, texts = read(name)
    order = np.argsort([int(identifier) for identifier in ids])
    assert again.shape == (200, 12)
    assert cosine(again[order], vectors[:, :12]).min() > 0.999
    assert not any(texts)
    assert not list(tmp_path.glob(".*"))


def test_texts_are_kept_only_if_asked_for(run_cli, source, tmp_path):
    run_cli("defend", "apply", source, "--with", "int8", "--keep-texts", "--output", tmp_path / "new.jsonl")
    assert read(tmp_path / "new.jsonl")[2] == TEXTS
    assert run_cli("defend", "apply", source, "--with", "int8", "--output", tmp_path / "o.npy").code == 0
    ended = run_cli(
        "defend",
        "apply",
        stores.npy(tmp_path / "n", np.eye(4), []),
        "--with",
        "int8",
        "--keep-texts",
        "--output",
        tmp_path / "p.npy",
    )
    assert ended.code == 2
    assert "holds no texts" in ended.err


def test_integers_are_stored_as_such(run_cli, source, tmp_path):
    run_cli("defend", "apply", source, "--with", "int8", "--output", tmp_path / "new.npy")
    assert np.load(tmp_path / "new.npy").dtype == np.int8
    assert not (tmp_path / "new.npy.key").exists()


@pytest.mark.parametrize("existing", ["new.npy", "new.npy.key"])
def test_nothing_is_overwritten(existing, run_cli, source, tmp_path):
    (tmp_path / existing).write_text("mine")
    ended = run_cli("defend", "apply", source, "--with", "rotate", "--output", tmp_path / "new.npy")
    assert ended.code == 2
    assert "exists already" in ended.err
    assert (tmp_path / existing).read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([existing, "store"])


def test_the_chain_of_a_key_is_applied_to_further_vectors(run_cli, source, tmp_path):
    run_cli("defend", "apply", source, "--with", "noise:0.2,rotate", "--output", tmp_path / "a.npy")
    run_cli("defend", "apply", source, "--key", tmp_path / "a.npy.key", "--output", tmp_path / "b.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_the_key_does_not_hold_the_seed_of_fresh_noise(run_cli, source, tmp_path):
    run_cli("defend", "apply", source, "--with", "noise-fresh:0.2", "--output", tmp_path / "a.npy")
    run_cli("defend", "apply", source, "--key", tmp_path / "a.npy.key", "--output", tmp_path / "b.npy")
    run_cli("defend", "apply", source, "--key", tmp_path / "a.npy.key", "--output", tmp_path / "c.npy")
    copies = [np.load(tmp_path / f"{name}.npy") for name in "abc"]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not np.allclose(copies[one], copies[other], atol=1e-3)


def test_a_rotation_after_fresh_noise_is_undone(run_cli, source, vectors, tmp_path):
    run_cli("defend", "apply", source, "--with", "noise-fresh:0.1,rotate", "--output", tmp_path / "a.npy")
    key = ("--key", tmp_path / "a.npy.key")
    ended = run_cli("defend", "undo", tmp_path / "a.npy", *key, "--output", tmp_path / "back.npy")
    assert ended.code == 0, ended.err
    assert cosine(np.load(tmp_path / "back.npy"), vectors).min() > 0.97


def test_a_copy_that_cannot_be_written_leaves_no_key_behind(run_cli, source, tmp_path):
    (tmp_path / ".new.unfinished").mkdir()
    ended = run_cli("defend", "apply", source, "--with", "rotate", "--output", f"chroma:{tmp_path / 'new'}#docs")
    assert ended.code == 2
    assert "Remove it" in ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".new.unfinished", "store"]


@pytest.mark.parametrize(
    ("ids", "output", "says"),
    [(["a", "a", "b"], "chroma:new#docs", "1 vectors have an id"), (["a", "b", "c"], "chroma:new#x", "does not write")],
)
def test_what_a_database_refuses_is_explained(ids, output, says, run_cli, vectors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": each, "embedding": vector.tolist()} for each, vector in zip(ids, vectors[:3], strict=True)]
    (tmp_path / "given.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ended = run_cli("defend", "apply", "given.jsonl", "--with", "rotate", "--output", output)
    assert ended.code == 2, ended.err
    assert says in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["given.jsonl"]


def test_vectors_that_the_key_cannot_turn_back_are_counted(run_cli, source, tmp_path):
    apply = ("defend", "apply", source, "--json", "--with")
    exact = run_cli(*apply, "rotate", "--output", tmp_path / "a.npy")
    noisy = run_cli(*apply, "rotate-cells:16,noise:3", "--output", tmp_path / "b.npy")
    assert json.loads(exact.out)["not_undone"] == 0
    assert json.loads(noisy.out)["not_undone"] > 0.1


def test_a_wrong_key_is_noticed_with_and_without_the_note(run_cli, source, tmp_path):
    for name in ("a", "b"):
        run_cli("defend", "apply", source, "--with", "rotate", "--output", tmp_path / f"{name}.npy")
    undo = ("defend", "undo", tmp_path / "a.npy", "--key", tmp_path / "b.npy.key", "--output", tmp_path / "back.npy")
    ended = run_cli(*undo)
    assert ended.code == 2
    assert "is not the key of" in ended.err
    (tmp_path / "a.npy.defence.json").unlink()
    ended = run_cli(*undo)
    assert ended.code == 2
    assert "is not the key of" in ended.err
    assert not (tmp_path / "back.npy").exists()


def test_what_has_no_key_cannot_be_undone(run_cli, source, tmp_path):
    run_cli("defend", "apply", source, "--with", "noise:0.2", "--output", tmp_path / "a.npy")
    ended = run_cli(
        "defend", "undo", tmp_path / "a.npy", "--key", tmp_path / "a.npy.key", "--output", tmp_path / "b.npy"
    )
    assert ended.code == 2
    assert "no secret rotation" in ended.err


def test_a_defended_copy_is_not_defended_again(run_cli, source, tmp_path):
    run_cli("defend", "apply", source, "--with", "int8", "--output", tmp_path / "a.npy")
    ended = run_cli("defend", "apply", tmp_path / "a.npy", "--with", "rotate", "--output", tmp_path / "b.npy")
    assert ended.code == 2
    assert "defended already, with 'int8'" in ended.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--with", "trunkate:3", "--output", "new.npy"), "did you mean 'truncate'"),
        (("--with", "truncate:99", "--output", "new.npy"), "from 1 to 16"),
        (("--output", "new.npy"), "no chain of defences"),
        (("--with", "int8", "--output", "new.xlsx"), "nothing that can be written"),
        (("--key", "none", "--output", "new.npy"), "no key file"),
    ],
)
def test_mistakes_are_explained(options, says, run_cli, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run_cli("defend", "apply", source, *options)
    assert ended.code == 2, ended.err
    assert says in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_chain_that_makes_all_vectors_equal_writes_nothing(run_cli, vectors, tmp_path):
    source = stores.npy(tmp_path / "store", np.abs(vectors) + 0.1, [])
    ended = run_cli("defend", "apply", source, "--with", "binary", "--output", tmp_path / "new.npy")
    assert ended.code == 2
    assert "makes all 200 vectors equal" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
