"""``unembed serve`` in a process of its own."""

import gc
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest


@pytest.fixture
def start(tiny_checkpoint):
    """Starts a server at a free port; returns the process, its address and what it said before."""
    running = []

    def run(*options, **environment):
        command = [sys.executable, "-m", "unembed", "serve", "--model", str(tiny_checkpoint), "--port", "0", *options]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment
        )
        running.append(process)
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"unembed is at (http://\S+)", line):
                _answers(found[1])
                return process, found[1], "".join(said)
        raise AssertionError("".join(said))

    yield run
    for process in running:
        process.kill()
        process.communicate()


def _answers(address):
    for _ in range(200):
        try:
            return httpx.get(f"{address}/health")
        except httpx.ConnectError:
            time.sleep(0.05)
    raise AssertionError("it does not answer")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(start, number):
    process, address, said = start()
    assert httpx.get(f"{address}/health").json()["models"] == ["tiny-checkpoint"]
    answer = httpx.post(f"{address}/api/invert", json={"vector": [1.0] * 16})
    assert answer.status_code == 200
    assert "server" not in answer.headers
    assert "vectors only" in said, "its encoder cannot be loaded"
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == (0 if number == signal.SIGINT else -number)
    assert "Traceback" not in out + err


def test_sigterm_during_work_answers_every_request(start):
    process, address, _ = start("--workers", "1")
    directions = np.random.default_rng(0).normal(size=(64, 16))
    vectors = (directions / np.linalg.norm(directions, axis=1, keepdims=True)).tolist()
    options = {"strategy": "euler", "steps": 64, "candidates": 16}
    with ThreadPoolExecutor(8) as pool:
        batches = [
            pool.submit(httpx.post, f"{address}/api/invert/batch", json={"vectors": vectors, **options}, timeout=60)
            for _ in range(3)
        ]
        streams = [
            pool.submit(httpx.post, f"{address}/api/invert/stream", json={"vector": vector, **options}, timeout=60)
            for vector in vectors[:3]
        ]
        # All have been read: a connection that the server has not seen yet is reset when it stops listening.
        while (queue := httpx.get(f"{address}/api/queue").json())["running"] + queue["waiting"] < 3 * 64:
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        answers = [batch.result() for batch in batches]
        events = [stream.result().text for stream in streams if stream.result().status_code == 200]
    assert [answer.status_code for answer in answers] == [503] * 3
    assert all(answer.json()["message"] == "The server is shutting down." for answer in answers)
    assert events
    assert all("event: error" in text or "event: done" in text for text in events)
    assert any('"status":503' in text for text in events)
    assert process.returncode == -signal.SIGTERM
    assert err == ""
    assert out == ""


def test_hosts_can_be_allowed(start, run_cli, tiny_checkpoint):
    _, address, _ = start("--allow-host", "demo.example")
    assert httpx.get(f"{address}/health", headers={"Host": "demo.example"}).status_code == 200
    assert httpx.get(f"{address}/health", headers={"Host": "other.example"}).status_code == 421
    for host in ("https://demo.example", "demo.example/x", ""):
        ended = run_cli("serve", "--model", tiny_checkpoint, "--port", "0", "--allow-host", host)
        assert ended.code == 2
        assert "is not a host name" in ended.err


def test_models_have_names_and_the_key_comes_from_the_environment(start, tiny_checkpoint):
    _, address, said = start("--model", f"second={tiny_checkpoint}", UNEMBED_SERVER_KEY="open sesame")
    assert httpx.get(f"{address}/api/models").status_code == 401
    known = httpx.get(f"{address}/api/models", headers={"X-API-Key": "open sesame"}).json()
    assert [model["name"] for model in known["models"]] == ["tiny-checkpoint", "second"]
    assert "sesame" not in said


def test_an_address_that_others_can_reach_needs_a_word(run_cli, tiny_checkpoint):
    ended = run_cli("serve", "--model", tiny_checkpoint, "--host", "0.0.0.0")
    assert ended.code == 2
    assert "--public" in ended.err


def test_a_port_that_is_taken_is_told_before_anything_is_loaded(run_cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = run_cli("serve", "--model", "no/such/folder", "--port", taken.getsockname()[1])
    assert ended.code == 2
    assert "Cannot listen on 127.0.0.1" in ended.err


def test_the_garbage_collector_passes_over_what_was_loaded(run_cli, tiny_checkpoint, monkeypatch):
    before, during = len(gc.get_objects()), []
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: during.append(len(gc.get_objects())))
    try:
        assert run_cli("serve", "--model", tiny_checkpoint, "--port", "0").code == 0
    finally:
        gc.unfreeze()
    assert during[0] < before / 10, "a full collection would keep every request waiting"


@pytest.mark.parametrize("origin", ["*", "example.org", "https://example.org/page", "https://*.example.org"])
def test_what_is_not_an_origin_is_refused(run_cli, tiny_checkpoint, origin):
    ended = run_cli("serve", "--model", tiny_checkpoint, "--port", "0", "--allow-origin", origin)
    assert ended.code == 2
    assert "is not an origin" in ended.err


def test_two_models_of_one_name_are_refused(run_cli, tiny_checkpoint):
    ended = run_cli("serve", "--model", tiny_checkpoint, "--model", tiny_checkpoint, "--port", "0")
    assert ended.code == 2
    assert "NAME=FOLDER" in ended.err
