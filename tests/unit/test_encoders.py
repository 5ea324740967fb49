"""Finding encoders by name, without loading any."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import huggingface_hub.constants
import pytest

from unembed.encoders import load_encoder, loading
from unembed.errors import EncoderError, MissingExtraError


@pytest.fixture
def hub(monkeypatch):
    """A hub on this machine that answers every question with one status."""
    answer = {"status": 200, "code": "", "questions": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/api/models/"):
                answer["questions"].append(self.path)
            self.send_response(answer["status"])
            self.send_header("X-Error-Code", answer["code"])
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"id": "some/model"}')

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield answer
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("all-MiniLM-L6", "did you mean 'all-MiniLM-L6-v2'?"),
        ("all-minilm-l6-v2", "did you mean 'all-MiniLM-L6-v2'?"),
        ("gpt-5", "expected one of: all-MiniLM-L6-v2, all-mpnet-base-v2"),
        ("./no/such/folder", "all-MiniLM-L6-v2"),
        ("/no/folder", "all-MiniLM-L6-v2"),
        ("", "all-MiniLM-L6-v2"),
    ],
)
def test_an_unknown_name_gets_the_nearest_known_one(name, hint):
    with pytest.raises(EncoderError, match="Unknown encoder") as caught:
        load_encoder(name)
    assert hint in caught.value.remedy


def test_a_folder_without_a_model_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(EncoderError, match="holds no model") as caught:
        load_encoder(str(tmp_path))
    assert "sentence-transformers" in caught.value.remedy


def test_a_name_that_the_hub_would_not_accept_is_refused():
    with pytest.raises(EncoderError, match="is not a hub id") as caught:
        load_encoder("two words/model")
    assert "organisation/model" in caught.value.remedy


def test_a_model_that_the_hub_does_not_know_is_refused_at_once(hub):
    hub.update(status=404, code="RepoNotFound")
    with pytest.raises(EncoderError, match="Cannot fetch 'no-such/model' from the hub") as caught:
        load_encoder("no-such/model")
    assert "Check the name" in caught.value.remedy
    assert len(hub["questions"]) == 1


def test_a_revision_that_the_hub_does_not_know_is_refused(hub):
    hub.update(status=404, code="RevisionNotFound")
    with pytest.raises(EncoderError, match="some/model") as caught:
        load_encoder("some/model", revision="v99")
    assert "revision" in caught.value.remedy
    assert "v99" in hub["questions"][0]


def test_a_model_behind_a_licence_says_how_to_log_in(hub):
    hub.update(status=403, code="GatedRepo")
    with pytest.raises(EncoderError, match="some/model") as caught:
        load_encoder("some/model")
    assert "hf auth login" in caught.value.remedy


def test_a_model_that_the_hub_knows_is_asked_for_once(hub):
    assert loading._is_on_the_hub("some/model", None)
    assert hub["questions"] == ["/api/models/some/model"]


def test_a_hub_that_is_down_or_out_of_reach_leaves_the_copies_on_this_disk(hub, monkeypatch):
    hub.update(status=503)
    assert not loading._is_on_the_hub("some/model", None)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    assert not loading._is_on_the_hub("some/model", None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert not loading._is_on_the_hub("some/model", None)


def test_without_the_extra_the_command_to_install_it_is_given(monkeypatch):
    monkeypatch.setattr("unembed.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="sentence_transformers") as caught:
        load_encoder()
    assert caught.value.remedy == "Run: pip install 'unembed[encoders]'"


class TestFingerprint:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "1_Pooling").mkdir()
        (tmp_path / "model.safetensors").write_bytes(b"weights")
        (tmp_path / "1_Pooling" / "config.json").write_text("{}")
        return tmp_path

    def test_it_is_the_same_for_the_same_files_wherever_they_lie(self, folder, tmp_path_factory):
        moved = tmp_path_factory.mktemp("elsewhere") / "model"
        before = loading._fingerprint(folder)
        os.rename(folder, moved)  # noqa: PTH104
        assert loading._fingerprint(moved) == before
        assert before.startswith("folder-")

    @pytest.mark.parametrize("name", ["model.safetensors", "1_Pooling/config.json"])
    def test_it_changes_with_any_file_that_decides_the_vectors(self, folder, name):
        before = loading._fingerprint(folder)
        (folder / name).write_text("other")
        assert loading._fingerprint(folder) != before

    def test_it_does_not_change_with_the_readme(self, folder):
        before = loading._fingerprint(folder)
        (folder / "README.md").write_text("words")
        assert loading._fingerprint(folder) == before
