"""An OpenAI-compatible endpoint, played by a server on this machine."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from unembed.encoders import (
    EncoderDescription,
    can_substitute,
    endpoint,
    known_tokenizer,
    load_described_encoder,
    load_encoder,
)
from unembed.errors import ConfigError, EncoderError
from unembed.training.pretrained import start_from_encoder


@pytest.fixture
def server(monkeypatch):
    """Answers with vectors that tell text and dimension; ``answers`` are statuses to give first."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("UNEMBED_API_KEY", "OPENAI_API_KEY", "UNEMBED_REQUESTS_PER_MINUTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(endpoint, "_FIRST_PAUSE", 0.01)
    with running_endpoint() as state:
        yield state


@contextmanager
def running_endpoint():
    state = {
        "requests": [],
        "headers": [],
        "answers": [],
        "retry_after": None,
        "location": None,
        "body": None,
        "error": b"no",
    }
    state["clients"] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            state["clients"].add(self.client_address)
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
            content = json.dumps(body).encode() if status == 200 else state["error"]
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            if state["retry_after"]:
                self.send_header("Retry-After", state["retry_after"])
            if state["location"]:
                self.send_header("Location", state["location"])
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state["address"] = f"http://127.0.0.1:{serving.server_port}/v1#small"
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
    assert times[-1] - times[0] > 0.2  # three pauses of a tenth; the first request may have been slow to arrive
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


def test_a_key_with_a_line_end_works_as_without(server, monkeypatch):
    monkeypatch.setenv("UNEMBED_API_KEY", "secret\r\n")
    load_encoder(server["address"])
    assert server["headers"][0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("key", ["top\nsecret", "top secrét", "top\x1bsecret"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_quoted(server, monkeypatch, key):
    monkeypatch.setenv("UNEMBED_API_KEY", key)
    with pytest.raises(ConfigError, match="UNEMBED_API_KEY has characters") as refused:
        load_encoder(server["address"])
    assert "secr" not in str(refused.value)
    assert not server["requests"]


def test_a_key_is_not_sent_in_the_clear(monkeypatch):
    monkeypatch.setenv("UNEMBED_API_KEY", "secret")
    with pytest.raises(ConfigError, match="never sent over plain http"):
        load_encoder("http://embeddings.example.com/v1#small")


def test_an_address_without_a_model_is_refused():
    with pytest.raises(ConfigError, match="does not name a model"):
        load_encoder("https://api.openai.com/v1")


def test_it_has_neither_tokenizer_nor_gradient_and_says_so(server):
    encoder = load_encoder(server["address"])
    assert encoder.tokenizer is None
    assert not can_substitute(encoder)
    with pytest.raises(EncoderError, match="tokenizer .* is not known") as caught:
        known_tokenizer(encoder)
    assert "`tokenizer=" in caught.value.remedy


def test_all_requests_share_a_connection(server):
    load_encoder(server["address"]).encode(["a", "b", "c", "d"], batch_size=1)
    assert len(server["requests"]) == 5
    assert len(server["clients"]) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_gets_neither_text_nor_key(server, monkeypatch, status):
    monkeypatch.setenv("UNEMBED_API_KEY", "secret")
    with running_endpoint() as other:
        encoder = load_encoder(server["address"])
        server.update(answers=[status], location=other["address"].replace("#small", "/embeddings"))
        with pytest.raises(EncoderError, match="redirects to http://127.0.0.1") as caught:
            encoder.encode(["my private diagnosis"])
        assert "give it instead" in caught.value.remedy
        assert other["requests"] == []
    assert len(server["requests"]) == 2


def test_a_password_in_the_address_is_refused():
    with pytest.raises(ConfigError, match="holds a user name or a password") as caught:
        load_encoder("https://me:secret@example.com/v1#small")
    assert "secret" not in str(caught.value)


def test_what_a_server_says_cannot_control_the_terminal(server):
    encoder = load_encoder(server["address"])
    server.update(answers=[404], error=b"no \x1b[2Jsuch model")
    with pytest.raises(EncoderError, match=r"no .x1b.2Jsuch model"):
        encoder.encode(["a"])


def test_a_recipe_cannot_have_the_key_sent_to_an_address(server, monkeypatch, build_model, tiny_tokenizer):
    monkeypatch.setenv("UNEMBED_API_KEY", "secret")
    with pytest.raises(ConfigError, match="it runs elsewhere"):
        start_from_encoder(build_model(), server["address"], tiny_tokenizer)
    assert not server["requests"]


class TestNamedByACheckpoint:
    """An inverter whose ``config.json`` names an address: nothing may be sent there unless the user names it, too."""

    @pytest.fixture
    def checkpoint(self, server, tiny_checkpoint, tmp_path, monkeypatch):
        monkeypatch.setenv("UNEMBED_API_KEY", "secret")
        folder = tmp_path / "inverter"
        shutil.copytree(tiny_checkpoint, folder)
        config = json.loads((folder / "config.json").read_text())
        config["encoder"] |= {"name": server["address"]}
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def description(self, **changes):
        known = {"name": "fake", "revision": "1", "dim": 4, "prompt": None, "pooling": "mean", "normalised": True}
        return EncoderDescription(**(known | changes))

    def test_the_library_refuses_it(self, server):
        with pytest.raises(EncoderError, match="Texts would be sent to 'http://127.0.0.1") as caught:
            load_described_encoder(self.description(name=server["address"]))
        assert "`encoder=ADDRESS`" in caught.value.remedy
        assert server["requests"] == []

    def test_the_user_may_name_it(self, server):
        described = self.description(name=server["address"], prompt="query: ", truncate_dim=3)
        encoder = load_described_encoder(described, location=server["address"])
        assert encoder.encode(["a"]).tolist() == [[8.0, 1.0, 1.0]]

    @pytest.mark.parametrize(
        "command",
        [
            ("invert", "my private diagnosis", "--no-animation"),
            ("evaluate", "TEXTS", "--output", "OUTPUT"),
            ("audit", "VECTORS", "--output", "OUTPUT"),
        ],
    )
    def test_no_command_sends_anything_there(self, server, checkpoint, run_cli, tmp_path, command):
        (tmp_path / "texts.txt").write_text("my private diagnosis\n" * 30)
        np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(30, 16)))
        places = {"TEXTS": tmp_path / "texts.txt", "VECTORS": tmp_path / "vectors.npy", "OUTPUT": tmp_path / "output"}
        ended = run_cli(*(places.get(word, word) for word in command), "--model", checkpoint)
        assert ended.code == 2
        assert "Texts would be sent to" in ended.err
        assert server["requests"] == []

    def test_a_server_does_without_its_encoder(self, server, checkpoint, capsys):
        from unembed.cli.invert import EngineName
        from unembed.cli.serve import _load

        assert _load("mine", str(checkpoint), None, EngineName.torch, "cpu").encoder is None
        assert "Texts would be sent to" in capsys.readouterr().err
        assert server["requests"] == []

    def test_a_command_uses_it_when_the_user_names_it(self, server, checkpoint, run_cli):
        ended = run_cli("invert", "a text", "--model", checkpoint, "--encoder", server["address"])
        assert "reads vectors of" in ended.err  # it was asked for its vectors, and they have another dimension
        assert len(server["requests"]) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], {}),
        (["./minilm"], {"a": "./minilm"}),
        (["b=https://host/v1?x=y#m"], {"b": "https://host/v1?x=y#m"}),
        (["https://host/v1?x=y#m", "b=org/model"], {"a": "https://host/v1?x=y#m", "b": "org/model"}),
    ],
)
def test_encoders_of_served_models_are_given_by_the_models_names(given, expected):
    from unembed.cli.serve import _encoder_locations

    assert _encoder_locations(given, ["a", "b"]) == expected


GUIDED = """
import sys, numpy as np
from unembed.encoders import load_described_encoder
from unembed.inverter import Inverter
inverter = Inverter.from_pretrained(sys.argv[1])
encoder = load_described_encoder(inverter.info.encoder, location=sys.argv[2])
vectors = np.random.default_rng(0).normal(size=(1, 16))
print(inverter.invert(vectors, encoder=encoder, strategy="guided", guided={"rounds": 1})[0].encoder_calls)
"""


@pytest.mark.parametrize("seed", range(4))
def test_guided_decoding_works_whatever_the_order_of_hashes(server, tiny_checkpoint, tmp_path, seed):
    folder = tmp_path / "inverter"
    shutil.copytree(tiny_checkpoint, folder)
    config = json.loads((folder / "config.json").read_text())
    config["encoder"] |= {"name": server["address"], "truncate_dim": 16}
    (folder / "config.json").write_text(json.dumps(config))
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-c", GUIDED, str(folder), server["address"]]
    ended = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 0


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
