"""The same results from a real Ray cluster of two workers, one of which is killed on the way."""

import json
import os
import signal
import sys
import time
from functools import partial

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from unembed.distribution import ray_cluster
from unembed.encoders import load_encoder
from unembed.errors import StoreError, UnembedError
from unembed.store import embed_texts

SHARD = 16
SHARDS = 12
LINES = [f"the {size} {animal} {verb} {number} times" for size in ("big", "old") for animal in ("cat", "dog", "bird")
         for verb in ("sleeps", "runs") for number in range(16)]  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """A cluster on this machine, which all of these tests use."""
    import ray

    # Workers cannot import the functions below from this file.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False,
        object_store_memory=256 << 20,
    )  # fmt: skip
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def read(count, log):
    for number in range(count):
        with log.open("a") as file:
            file.write(f"{number}\n")
        yield number, {"n": number}


def make_squarer(folder):
    def square(values):
        number = values["n"]
        (folder / f"{number}-{os.getpid()}").touch()
        if number == 5:  # the first who takes it dies
            try:
                (folder / "killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        time.sleep(0.05)
        return {"square": np.array([number**2]), "pid": os.getpid()}

    return square


def test_a_killed_worker_costs_no_shard_and_repeats_none(cluster, tmp_path):
    with ray_cluster(cluster, workers=2) as map_shards:
        results = list(map_shards(partial(read, 20, tmp_path / "log"), partial(make_squarer, tmp_path)))
    assert sorted((number, int(values["square"][0])) for number, values in results) == [(n, n * n) for n in range(20)]
    pids = {path.name.split("-")[1] for path in tmp_path.iterdir() if "-" in path.name}
    assert len(pids) == 3  # two, and the one that took the place of the dead
    assert len({values["pid"] for _, values in results}) >= 2
    assert len(list(tmp_path.glob("5-*"))) == 2
    assert (tmp_path / "log").read_text().split() == [str(number) for number in range(20)]  # read once


def fail_at_three(values):
    if values["n"] == 3:
        raise StoreError("Shard 3 is bad.", "Leave it out.")
    return values


def give(value):
    return value


def test_a_mistake_arrives_from_a_worker_as_it_is(cluster, tmp_path):
    with ray_cluster(cluster, workers=1) as map_shards, pytest.raises(UnembedError) as caught:
        list(map_shards(partial(read, 6, tmp_path / "log"), partial(give, fail_at_three)))
    assert (caught.value.problem, caught.value.remedy) == ("Shard 3 is bad.", "Leave it out.")


@pytest.fixture(scope="module")
def encoder_folder(build_encoder_folder):
    return build_encoder_folder("encoder")


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_store_that_was_stopped_on_the_cluster_goes_on_with_the_missing_shards(
    cluster, encoder_folder, tmp_path, run_cli
):
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"{line}\n" for line in LINES))
    assert len(LINES) == SHARD * SHARDS
    command = ("embed", source, "--encoder", encoder_folder, "--shard-lines", SHARD)
    assert run_cli(*command, "-o", tmp_path / "whole").code == 0

    def stop(shard):
        if len(list((tmp_path / "store").glob("embeddings-*"))) >= 4:
            raise KeyboardInterrupt

    load = partial(load_encoder, str(encoder_folder))
    with ray_cluster(cluster, workers=2) as map_shards, pytest.raises(KeyboardInterrupt):
        embed_texts(
            LINES.__iter__, tmp_path / "store", load(), shard_lines=SHARD, on_shard=stop, map_shards=map_shards,
            load_encoder=load,
        )  # fmt: skip
    listed = json.loads((tmp_path / "store" / "manifest.json").read_text())["shards"]
    assert 1 <= len(listed) < SHARDS
    before = {f"embeddings-{shard['number']:05d}.npy" for shard in listed}
    times = {name: (tmp_path / "store" / name).stat().st_mtime_ns for name in before}
    ended = run_cli(*command, "-o", tmp_path / "store", "--ray", cluster, "--workers", 1)
    assert ended.code == 0, ended.err
    assert content(tmp_path / "store") == content(tmp_path / "whole")
    assert times == {name: (tmp_path / "store" / name).stat().st_mtime_ns for name in before}


@pytest.fixture(scope="module")
def vectors(minilm, tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "vectors.jsonl"
    rows = [*zip(LINES, minilm.encode(LINES), strict=True)]
    records = [{"id": f"n{row}", "text": text, "embedding": vector.tolist()} for row, (text, vector) in enumerate(rows)]
    records[40]["embedding"] = [0.0] * 384
    records.append(records[40] | {"id": "last"})
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_words_are_the_same_and_a_run_without_ray_goes_on_with_it(cluster, vectors, tmp_path, run_cli, monkeypatch):
    monkeypatch.setattr(sys.modules["unembed.cli.words"], "_BATCH", 16)
    alone = run_cli("words", vectors, "--find", "cat", "--output", tmp_path / "alone.jsonl")
    assert alone.code == 0, alone.err
    # The first third without Ray, cut in the middle of a line; the rest on the cluster.
    lines = (tmp_path / "alone.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "ray.jsonl").write_bytes(b"".join(lines[: len(lines) // 3]) + lines[len(lines) // 3][:20])
    options = ("--output", tmp_path / "ray.jsonl", "--resume", "--ray", cluster, "--workers", 2)
    ended = run_cli("words", vectors, "--find", "cat", *options)
    assert ended.code == 0, ended.err
    assert len(lines) > 30
    assert (tmp_path / "ray.jsonl").read_bytes() == b"".join(lines)
    assert "Skipped: 2 vectors that are all zeros." in alone.err
    assert "Measured on" in ended.err


def test_an_audit_is_the_same(cluster, fake_encoder, tiny_checkpoint, tmp_path, run_cli, monkeypatch):
    monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 8, "guided": 1})
    source = tmp_path / "vectors.jsonl"
    pairs = enumerate(zip(LINES[:60], fake_encoder.encode(LINES[:60]).tolist(), strict=True))
    source.write_text("".join(f"{json.dumps({'id': f'n{n}', 'text': t, 'embedding': v})}\n" for n, (t, v) in pairs))
    options = ("--model", tiny_checkpoint, "--size", 40, "--bootstrap", 20)

    def rows(folder):
        (blind,) = json.loads((folder / "report.json").read_text())["attacks"]
        return [{name: value for name, value in row.items() if name != "seconds"} for row in blind["rows"]]

    run_cli("audit", source, *options, "--output", tmp_path / "alone")
    ended = run_cli("audit", source, *options, "--output", tmp_path / "ray", "--ray", cluster, "--workers", 1)
    assert ended.code in (0, 3, 4), ended.err
    assert len(rows(tmp_path / "ray")) == 40
    assert rows(tmp_path / "ray") == rows(tmp_path / "alone")
    assert not (tmp_path / "ray" / ".unfinished").exists()
