"""``kill -9`` at any moment costs no row and repeats none."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from unembed.store import Store, embed_texts

SHARD = 64
# Imports once what takes seconds; then each line that it reads becomes a process of its own.
PROGRAM = """
import json, os, sys
import sentence_transformers
from unembed.cli import main
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.argv = json.loads(line)
        main()
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture
def lines():
    parts = ("the cat", "my old dog", "a bird", "she", "the king of the hill"), ("sees", "likes", "has"), range(200)
    return [f"{who} {does} {number}." for who, does, number in itertools.product(*parts)]


@pytest.fixture
def starter():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    yield process
    process.stdin.close()
    process.wait()


def finished(folder):
    path = folder / "manifest.json"
    return len(json.loads(path.read_text())["shards"]) if path.is_file() else 0


def wait_until(condition):
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.001)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_store_killed_three_times_equals_one_made_in_one_go(minilm, tmp_path, lines, starter):
    assert len(lines) == 3000
    source, folder = tmp_path / "lines.txt", tmp_path / "killed"
    source.write_text("".join(f"{line}\n" for line in lines))
    command = ["unembed", "embed", source, "-o", folder, "--shard-lines", SHARD, "--batch-size", SHARD]
    embed_texts(lambda: iter(lines), tmp_path / "whole", minilm, shard_lines=SHARD, batch_size=SHARD)

    def start():
        starter.stdin.write(json.dumps([str(part) for part in command]) + "\n")
        return int(starter.stdout.readline())

    survived = []
    for moment in (
        lambda: (folder / "tokens-00000.npy").exists(),  # between the two arrays of the first shard, or just after
        lambda: finished(folder) >= 15,  # between two shards
        lambda: finished(folder) >= 25 and any(folder.glob(".*.tmp")),  # while a file is being written
    ):
        child = start()
        wait_until(moment)
        os.kill(child, signal.SIGKILL)
        assert int(starter.stdout.readline()) == signal.SIGKILL
        survived.append(finished(folder))
    assert survived[0] < survived[1] < survived[2] < 47
    start()
    assert [line for line in iter(starter.stdout.readline, "0\n") if line.isdecimal()] == []

    killed, whole = Store(folder, verify=True), Store(tmp_path / "whole", verify=True)
    every = np.arange(3000)
    assert killed.manifest == whole.manifest
    np.testing.assert_array_equal(killed.tokens(every), whole.tokens(every))
    np.testing.assert_array_equal(killed.embeddings(every), whole.embeddings(every))
    assert {path.name for path in folder.iterdir()} == {path.name for path in whole.folder.iterdir()}
