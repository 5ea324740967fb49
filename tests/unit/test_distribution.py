"""Shards on their way between processes, and what is said before any cluster is asked."""

import socket
from importlib.util import find_spec

import numpy as np
import pytest

from unembed import errors
from unembed.distribution import in_order, map_here
from unembed.distribution.packing import pack, pack_error, unpack
from unembed.errors import StoreError, UnembedError

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray")


def test_what_is_packed_comes_out_the_same():
    values = {
        "vectors": np.arange(6, dtype=np.float16).reshape(2, 3),
        "empty": np.empty((0, 4), dtype=np.float32),
        "ids": [7, "seven", "\ud800"],  # half of a character, as JSON can name it
        "texts": None,
        "share": 0.1 + 0.2,
    }
    number, unpacked = unpack(pack(3, values))
    assert number == 3
    assert set(unpacked) == set(values)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            assert unpacked[name].dtype == value.dtype
            np.testing.assert_array_equal(unpacked[name], value)
        else:
            assert unpacked[name] == value


def test_an_error_arrives_with_its_remedy():
    with pytest.raises(UnembedError) as caught:
        unpack(pack_error(StoreError("It is broken.", "Mend it.")))
    assert (caught.value.problem, caught.value.remedy) == ("It is broken.", "Mend it.")


def test_results_wait_for_those_before_them():
    came = [(1, {"n": 1}), (0, {"n": 0}), (3, {"n": 3}), (2, {"n": 2})]
    taken = []

    def arrive():
        for result in came:
            taken.append(result[0])
            yield result

    told = [(number, values["n"], len(taken)) for number, values in in_order(arrive())]
    assert told == [(0, 0, 2), (1, 1, 2), (2, 2, 4), (3, 3, 4)]


def test_in_one_process_a_shard_is_read_when_the_one_before_is_done():
    order = []

    def read():
        for number in range(3):
            order.append(f"read {number}")
            yield number, {"n": number}

    def work(values):
        order.append(f"work {values['n']}")
        return values

    assert [number for number, _ in map_here(read, lambda: work)] == [0, 1, 2]
    assert order == ["read 0", "work 0", "read 1", "work 1", "read 2", "work 2"]


@pytest.mark.parametrize("command", ["embed", "words", "audit"])
class TestMistakes:
    def test_a_missing_extra_is_named_with_what_to_type(self, run_cli, command, monkeypatch, tmp_path):
        monkeypatch.setattr(errors, "find_spec", lambda name: None if name == "ray" else object())
        ended = run_cli(command, tmp_path / "x.txt", "--output", tmp_path / "out", "--ray", "auto")
        assert ended.code == 2
        assert "pip install 'unembed[ray]'" in ended.err

    def test_workers_without_a_cluster_are_refused(self, run_cli, command, tmp_path):
        ended = run_cli(command, tmp_path / "x.txt", "--output", tmp_path / "out", "--workers", 2)
        assert ended.code == 2
        assert "--ray auto" in ended.err


@needs_ray
@pytest.mark.parametrize("address", ["nonsense", "ray://localhost:10001", "localhost:port"])
def test_what_is_no_address_is_refused(run_cli, readout_checkpoint, tmp_path, address):
    np.save(tmp_path / "vectors.npy", np.ones((3, 16)))
    ended = run_cli("words", tmp_path / "vectors.npy", "--model", readout_checkpoint, "--ray", address)
    assert ended.code == 2
    assert f"'{address}' is not the address of a Ray cluster" in ended.err
    assert "ray start --head" in ended.err


@needs_ray
def test_an_address_without_a_cluster_is_noticed_at_once(run_cli, readout_checkpoint, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    np.save(tmp_path / "vectors.npy", np.ones((3, 16)))
    ended = run_cli("words", tmp_path / "vectors.npy", "--model", readout_checkpoint, "--ray", address)
    assert ended.code == 2
    assert f"There is no Ray cluster at {address}" in ended.err


@needs_ray
@pytest.mark.parametrize("option", [("--probe", "health"), ("--clusters", 2)])
def test_what_needs_all_vectors_at_once_is_not_for_a_cluster(run_cli, tmp_path, option):
    ended = run_cli("words", tmp_path / "vectors.npy", *option, "--ray", "auto")
    assert ended.code == 2
    assert "--ray lists, finds and counts" in ended.err
