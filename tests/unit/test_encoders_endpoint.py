"""An OpenAI-compatible endpoint, played by a server on this machine."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from unembed.encoders import endpoint, load_encoder
from unembed.errors import ConfigError, EncoderError


@pytest.fixture
def server(monkeypatch):
    """Answers with vectors that tell text and dimension; ``answers`` are statuses to give first."""
    state = {"requests": [], "headers": [], "answers": [], "retry_after": None, "shuffle": False, "body": None}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state["requests"].append((self.path, question, time.monotonic()))
            state["headers"].append(dict(self.headers))
            status = state["answers"].pop(0) if state["answers"] else 200
            size = question.get("dimensions", 4)
            rows = [
                {"index": place, "embedding": [float(len(text)), *[1.0] * (size - 1)]}
                for place, text in enumerate(question["input"])
            ]
            body = state["body"] or {"data": rows[::-1]}  # in any order
            self.send_response(status)
            if state["retry_after"]:
                self.send_header("Retry-After", state["retry_after"])
            self.end_headers()
            self.wfile.write(json.dumps(body if status == 200 else {"error": "no"}).encode())

        def log_message(self, *_):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state["address"] = f"http://127.0.0.1:{serving.server_port}/v1#small"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("UNEMBED_API_KEY", "OPENAI_API_KEY", "UNEMBED_REQUESTS_PER_MINUTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(endpoint, "_FIRST_PAUSE", 0.01)
    yield state
    serving.shutdown()
    serving.server_close()
    thread.join()


def test_texts_go_out_in_batches_and_vectors_come_back_in_order(server):
    encoder = load_encoder(server["address"])
    vectors = encoder.encode(["a", "bb", "ccc", "dddd", "eeeee"], batch_size=2)
    assert vectors[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert vectors.dtype == np.float32
    path, question, _ = server["requests"][-1]
    assert (path, question["model"], question["input"]) == ("/v1/embeddings", "small", ["eeeee"])
    assert len(server["requests"]) == 1 + 3  # one to learn the dimension
    description = encoder.description
    assert (description.name, description.dim, description.normalised) == (server["address"], 4, False)


def test_prompt_and_dimension_are_passed_on_and_recorded(server):
    encoder = load_encoder(server["address"], prompt="query: ", truncate_dim=3)
    assert encoder.encode(["a"]).tolist() == [[8.0, 1.0, 1.0]]
    assert (encoder.description.prompt, encoder.description.truncate_dim) == ("query: ", 3)


def test_it_tries_again_while_the_server_is_busy(server):
    encoder = load_encoder(server["address"])
    server["answers"] += [429, 503, 500]
    assert encoder.encode(["a"]).shape == (1, 4)
    assert len(server["requests"]) == 1 + 4


def test_it_waits_as_long_as_the_server_asks(server):
    encoder = load_encoder(server["address"])
    server.update(answers=[429], retry_after="0.3")
    begun = time.monotonic()
    encoder.encode(["a"])
    assert time.monotonic() - begun > 0.3


def test_it_gives_up_with_the_reason(server, monkeypatch):
    monkeypatch.setattr(endpoint, "_ATTEMPTS", 3)
    encoder = load_encoder(server["address"])
    server["answers"] += [503] * 3
    with pytest.raises(EncoderError, match="did not answer in 3 attempts: 503") as caught:
        encoder.encode(["a"])
    assert "run the same command again" in caught.value.remedy
    monkeypatch.setattr(endpoint, "_ATTEMPTS", 1)
    with pytest.raises(EncoderError, match="did not answer"):
        load_encoder("http://127.0.0.1:9/v1#small")


@pytest.mark.parametrize(("status", "remedy"), [(401, "UNEMBED_API_KEY"), (404, "model's name")])
def test_a_refusal_is_not_tried_again(server, status, remedy):
    encoder = load_encoder(server["address"])
    server["answers"] += [status]
    with pytest.raises(EncoderError, match=f"refused: {status}") as caught:
        encoder.encode(["a"])
    assert remedy in caught.value.remedy
    assert len(server["requests"]) == 2


@pytest.mark.parametrize("body", [{"data": []}, {"nothing": 1}, {"data": [{"index": 0, "embedding": "text"}]}])
def test_an_answer_that_is_no_list_of_vectors_is_refused(server, body):
    encoder = load_encoder(server["address"])
    server["body"] = body
    with pytest.raises(EncoderError, match="gave"):
        encoder.encode(["a"])


def test_requests_stay_below_the_limit(server, monkeypatch):
    monkeypatch.setenv("UNEMBED_REQUESTS_PER_MINUTE", "600")
    load_encoder(server["address"]).encode(["a", "b", "c"], batch_size=1)
    times = [when for _, _, when in server["requests"]]
    assert np.diff(times).min() > 0.08
    monkeypatch.setenv("UNEMBED_REQUESTS_PER_MINUTE", "many")
    with pytest.raises(ConfigError, match="UNEMBED_REQUESTS_PER_MINUTE is 'many'"):
        load_encoder(server["address"])


def test_the_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("UNEMBED_API_KEY", "secret")
    load_encoder(server["address"])
    assert server["headers"][-1]["Authorization"] == "Bearer secret"


def test_the_key_for_openai_goes_to_openai_only(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    load_encoder(server["address"])
    assert "Authorization" not in server["headers"][-1]
    assert endpoint._authorisation("https://api.openai.com/v1") == {"Authorization": "Bearer secret"}


def test_a_key_is_not_sent_in_the_clear(monkeypatch):
    monkeypatch.setenv("UNEMBED_API_KEY", "secret")
    with pytest.raises(ConfigError, match="in the clear"):
        load_encoder("http://embeddings.example.com/v1#small")


def test_an_address_without_a_model_is_refused():
    with pytest.raises(ConfigError, match="names no model"):
        load_encoder("https://api.openai.com/v1")


def test_it_has_no_tokenizer_of_its_own(server):
    with pytest.raises(EncoderError, match="not known") as caught:
        _ = load_encoder(server["address"]).tokenizer
    assert "--tokenizer" in caught.value.remedy


def test_a_corpus_is_embedded_after_the_estimate_was_shown(server, run_cli, tmp_path, tiny_tokenizer):
    tiny_tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "texts.txt").write_text("the cat\nthe dog runs\n")
    ended = run_cli(
        *("embed", tmp_path / "texts.txt", "-o", tmp_path / "store", "--encoder", server["address"]),
        *("--tokenizer", tmp_path / "tokenizer.json", "--price", 1000, "--json"),
    )
    assert ended.code == 0, ended.err
    assert "About 5 tokens in 1 requests" in ended.err
    assert "0.005 at 1000 a million" in ended.err
    assert json.loads(ended.out)[str(tmp_path / "store")]["rows"] == 2
