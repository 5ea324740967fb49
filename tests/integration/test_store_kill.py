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

from unembed.encoders import load_encoder
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
        time.sleep(0.003)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_store_killed_three_times_equals_one_made_in_one_go(build_encoder_folder, tmp_path, lines, starter):
    assert len(lines) == 3000
    source, folder = tmp_path / "lines.txt", tmp_path / "killed"
    source.write_text("".join(f"{line}\n" for line in lines))
    encoder = build_encoder_folder("encoder")
    command = ["unembed", "embed", source, "-o", folder, "--encoder", encoder, "--shard-lines", SHARD]
    embed_texts(lines.__iter__, tmp_path / "whole", load_encoder(str(encoder)), shard_lines=SHARD)

    def start():
        starter.stdin.write(json.dumps([str(part) for part in command]) + "\n")
        return int(starter.stdout.readline())

    survived = []
    for moment in (
        lambda: (folder / "tokens-00000.npy").exists(),  # between the two arrays of the first shard, or just after
        lambda: finished(folder) >= 15,  # between two shards
        # While a file is being written; on a disk that is too fast to see one, between two shards again.
        lambda: (finished(folder) >= 25 and any(folder.glob(".*.tmp"))) or finished(folder) >= 35,
    ):
        child = start()
        wait_until(moment)
        os.kill(child, signal.SIGKILL)
        assert int(starter.stdout.readline()) == signal.SIGKILL
        survived.append(finished(folder))
    assert survived[0] < survived[1] < survived[2] < 47
    start()
    assert next(line for line in starter.stdout if line.strip().isdecimal()) == "0\n"

    killed, whole = Store(folder, verify=True), Store(tmp_path / "whole", verify=True)
    every = np.arange(3000)
    assert killed.manifest == whole.manifest
    np.testing.assert_array_equal(killed.tokens(every), whole.tokens(every))
    np.testing.assert_array_equal(killed.embeddings(every), whole.embeddings(every))
    assert {path.name for path in folder.iterdir()} == {path.name for path in whole.folder.iterdir()}


def test_vectors_of_the_real_encoder_do_not_depend_on_where_it_was_stopped(minilm, tmp_path, lines):
    lines = lines[::12]

    def stop(shard):
        if shard.number == 1:
            raise KeyboardInterrupt

    embed_texts(lines.__iter__, tmp_path / "whole", minilm, shard_lines=SHARD)
    with pytest.raises(KeyboardInterrupt):
        embed_texts(lines.__iter__, tmp_path / "stopped", minilm, shard_lines=SHARD, on_shard=stop)
    embed_texts(lines.__iter__, tmp_path / "stopped", minilm, shard_lines=SHARD)
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "stopped" / path.name).read_bytes() == path.read_bytes()
