"""``unembed embed``, with an encoder without weights."""

import errno
import json
import os

import numpy as np
import pytest

from unembed import files
from unembed.store import Store

TRAIN = [f"the cat has {number} birds" for number in range(40)]
VALIDATION = [f"a dog has {number} flowers" for number in range(6)]


@pytest.fixture(autouse=True)
def asked(monkeypatch, fake_encoder):
    """The questions put to load_encoder, which here always gives the fake one."""
    questions = []

    def load(name, **options):
        questions.append({"name": name} | options)
        return fake_encoder

    monkeypatch.setattr("unembed.encoders.load_encoder", load)
    return questions


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, texts in (("train", TRAIN), ("validation", VALIDATION)):
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    return folder


def texts_of(folder):
    store = Store(folder, verify=True)
    tokens = store.tokens(np.arange(len(store)))
    return [store.tokenizer().decode(row[:length]) for row, length in zip(tokens, store.lengths, strict=True)]


def test_a_prepared_folder_becomes_a_store_for_training_and_one_for_validation(run_cli, corpus, tmp_path):
    ended = run_cli("embed", corpus, "-o", tmp_path / "store")
    assert ended.code == 0, ended.err
    assert texts_of(tmp_path / "store" / "train") == TRAIN
    assert texts_of(tmp_path / "store" / "validation") == VALIDATION
    assert "40" in ended.out
    assert "6" in ended.out


def test_json_is_all_there_is_on_stdout(run_cli, corpus, tmp_path):
    (corpus / "train.txt").write_text("the cat\n\n東京\n")
    ended = run_cli("embed", corpus, "-o", tmp_path / "store", "--json")
    facts = {"vocabulary": 236, "lost tokens": 0.0}
    assert json.loads(ended.out) == {
        str(tmp_path / "store" / "train"): {"rows": 1, "left out": 2} | facts | {"lost tokens": 0.5},
        str(tmp_path / "store" / "validation"): {"rows": 6, "left out": 0} | facts,
    }


def test_one_file_becomes_one_store(run_cli, corpus, tmp_path):
    ended = run_cli("embed", corpus / "train.txt", "-o", tmp_path / "store")
    assert ended.code == 0, ended.err
    assert texts_of(tmp_path / "store") == TRAIN


def test_the_options_reach_the_encoder_and_the_store(run_cli, corpus, tmp_path, asked):
    options = ["--encoder", "org/model", "--revision", "v2", "--prompt", "query: ", "--device", "cpu"]
    options += ["--task", "separation", "--truncate-dim", 8]
    sizes = ["--canvas-length", 4, "--shard-lines", 10]
    ended = run_cli("embed", corpus, "-o", tmp_path / "store", *options, *sizes)
    assert ended.code == 0, ended.err
    wanted = {"name": "org/model", "prompt": "query: ", "revision": "v2", "device": "cpu", "precision": "float32"}
    assert asked == [wanted | {"task": "separation", "truncate_dim": 8}]
    manifest = Store(tmp_path / "store" / "train").manifest
    assert (manifest.canvas_length, len(manifest.shards)) == (4, 4)


@pytest.mark.parametrize("state", ["empty", "missing"])
def test_without_validation_texts_there_is_a_store_for_training_only_and_a_note(run_cli, corpus, tmp_path, state):
    (corpus / "validation.txt").write_text("")
    if state == "missing":
        (corpus / "validation.txt").unlink()
    ended = run_cli("embed", corpus, "-o", tmp_path / "store", "--json")
    assert ended.code == 0, ended.err
    assert list(json.loads(ended.out)) == [str(tmp_path / "store" / "train")]
    assert not (tmp_path / "store" / "validation").exists()
    assert "validation.txt" in ended.err
    assert f"--output {tmp_path / 'store' / 'validation'}" in ended.err


def test_the_note_says_what_works(run_cli, corpus, tmp_path):
    (corpus / "validation.txt").unlink()
    (tmp_path / "other.txt").write_text("the king has a horse\n")
    run_cli("embed", corpus, "-o", tmp_path / "store")
    ended = run_cli("embed", tmp_path / "other.txt", "-o", tmp_path / "store" / "validation")
    assert ended.code == 0, ended.err
    assert texts_of(tmp_path / "store" / "validation") == ["the king has a horse"]


def test_the_same_command_again_goes_on(run_cli, corpus, tmp_path, fake_encoder, monkeypatch):
    encode = fake_encoder.encode

    def stop_in_the_third(texts, **options):
        if fake_encoder.calls == 2:
            raise KeyboardInterrupt
        return encode(texts, **options)

    with monkeypatch.context() as patch:
        patch.setattr(fake_encoder, "encode", stop_in_the_third)
        ended = run_cli("embed", corpus, "-o", tmp_path / "store", "--shard-lines", 10)
    assert ended.code == 1
    assert "Interrupted" in ended.err
    assert "Traceback" not in ended.err
    ended = run_cli("embed", corpus, "-o", tmp_path / "store", "--shard-lines", 10)
    assert ended.code == 0, ended.err
    assert fake_encoder.seen == TRAIN + VALIDATION


def test_a_full_disk_ends_with_2_and_the_command_can_be_given_again(run_cli, corpus, tmp_path, monkeypatch):
    def no_space(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", no_space)
        ended = run_cli("embed", corpus, "-o", tmp_path / "store")
    assert ended.code == 2
    assert "disk is full" in ended.err
    assert "same command again" in ended.err
    assert run_cli("embed", corpus, "-o", tmp_path / "store").code == 0


def test_a_disk_that_is_full_anywhere_else_is_named_too(run_cli, corpus, tmp_path, monkeypatch):
    def no_space(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/log")

    monkeypatch.setattr("unembed.store.embed_texts", no_space)
    ended = run_cli("embed", corpus, "-o", tmp_path / "store")
    assert ended.code == 2
    assert "disk is full while writing /some/log" in ended.err


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch, corpus, tmp_path):
    from unembed.cli import main

    monkeypatch.setattr("unembed.store.embed_texts", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("sys.argv", ["unembed", "embed", str(corpus), "-o", str(tmp_path / "store")])
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize("option", ["--canvas-length", "--batch-size", "--shard-lines"])
def test_sizes_below_one_are_refused(run_cli, corpus, tmp_path, option):
    ended = run_cli("embed", corpus, "-o", tmp_path / "store", option, 0)
    assert ended.code == 2
    assert option in ended.err
