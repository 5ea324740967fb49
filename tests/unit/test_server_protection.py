"""What keeps a server safe: limits, the key, origins, headers, and silence about texts and vectors."""

import logging
import re
import shutil
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

import unembed.server
from unembed.server import Limits, ServedModel
from unembed.server.page import Page

SECRET = "my doctor says that i have zebrafever"
VECTOR = [float(number) for number in np.random.default_rng(0).normal(size=16)]
KEY = "correct horse battery staple"
JSON = {"Content-Type": "application/json"}


def test_a_body_that_says_it_is_too_large_is_refused(serve):
    answer = serve(limits=Limits(body_bytes=1000)).post("/api/invert", content=b" " * 1001, headers=JSON)
    assert answer.status_code == 413
    assert "more than 1000 bytes" in answer.json()["message"]


def test_a_refused_body_is_counted_under_its_own_path(serve):
    client = serve(limits=Limits(body_bytes=1000))
    client.post("/api/encode", content=b" " * 1001, headers=JSON)
    client.post("/api/made/up", content=b" " * 1001, headers=JSON)
    counted = client.get("/metrics").text
    assert 'unembed_requests_total{path="/api/encode",status="413"} 1.0' in counted
    assert 'unembed_requests_total{path="other",status="413"} 1.0' in counted


def test_a_chunked_body_that_turns_out_too_large_is_refused(serve):
    client = serve(limits=Limits(body_bytes=1000))

    def chunks():
        for _ in range(20):
            yield b" " * 100

    answer = client.post("/api/invert", content=chunks(), headers=JSON)
    assert answer.status_code == 413
    assert "more than 1000 bytes" in answer.json()["message"]


def test_a_body_within_the_limit_is_read_chunked_or_not(serve):
    client = serve(limits=Limits(body_bytes=1000))
    body = str({"vector": [1.0] * 16}).replace("'", '"').encode()
    assert client.post("/api/invert", content=body, headers=JSON).status_code == 200
    assert client.post("/api/invert", content=iter([body[:10], body[10:]]), headers=JSON).status_code == 200


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "LOCALHOST.", "127.0.0.1:1", "[::1]:8080", "192.168.1.7", "demo.example"]
)
def test_the_server_answers_to_addresses_and_to_its_own_names(serve, host):
    client = serve(allowed_hosts=("demo.example",))
    assert client.get("/api/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "a@b@c", "[::1"]
)
def test_a_name_that_somebody_else_let_point_here_is_refused(serve, host):
    client = serve(allowed_hosts=("demo.example",))
    for path in ("/", "/health", "/api/models"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "--allow-host" in answer.json()["remedy"]
    assert serve(allowed_hosts=("*",)).get("/", headers={"Host": "evil.example"}).status_code == 200


def connect(client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: loc"])
def test_a_connection_that_never_finishes_its_headers_is_closed(serve, sent):
    with connect(serve(header_seconds=0.3)) as half_open:
        half_open.sendall(sent)
        assert half_open.recv(100) == b"", "closed by the server"


def test_a_connection_whose_second_request_stays_unfinished_is_closed(serve):
    with connect(serve(header_seconds=0.5)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /health HT")
        assert connection.recv(100) == b""


def test_a_request_may_take_longer_than_its_headers(serve, gated):
    client = serve([ServedModel("gated", gated)], header_seconds=0.2)
    threading.Timer(0.8, gated.engine.gate.set).start()
    assert client.post("/api/invert", json={"vector": VECTOR}).status_code == 200


def test_a_body_that_never_arrives_is_given_up(serve):
    with connect(serve(body_seconds=0.3)) as slow:
        slow.sendall(
            b"POST /api/invert HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        answer = slow.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive in time" in answer


def test_the_page_and_health_can_be_asked_for_their_headers_alone(serve):
    client = serve()
    for path in ("/", "/health"):
        answer = client.head(path)
        assert answer.status_code == 200
        assert answer.content == b""
        assert answer.headers["content-type"] == client.get(path).headers["content-type"]


def test_browsers_keep_the_pages_files_until_they_change(serve, monkeypatch, tmp_path):
    client = serve()
    page = client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    files = re.findall(r'"(static/[^"]+)"', page.text)
    assert files
    for path in files:
        answer = client.get(f"/{path}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    folder = shutil.copytree(Path(unembed.server.__file__).parent / "static", tmp_path / "static")
    monkeypatch.setattr("unembed.server.page._FOLDER", folder)
    assert Page().html == page.text
    (folder / "main.js").write_text("changed")
    assert Page().html != page.text, "another content, another path"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": "Bearer"},
        {"X-API-Key": KEY[:-1]},
        {"Authorization": f"Bearer {KEY[::-1]}"},
        {"X-API-Key": KEY[::-1]},
        {"X-API-Key": KEY[:-1] + "x"},
        {"X-API-Key": "x" + KEY[1:]},
        {"X-API-Key": KEY.upper()},
        {"X-API-Key": "schlüssel".encode()},
    ],
)
def test_who_does_not_know_the_key_is_turned_away(serve, headers):
    client = serve(api_key=KEY)
    for path in ("/api/models", "/api/queue", "/metrics", "/api/nothing"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert set(answer.json()) == {"message", "remedy"}
    assert client.post("/api/invert", content=b"not even json", headers=headers | JSON).status_code == 401


@pytest.mark.parametrize("headers", [{"Authorization": f"Bearer {KEY}"}, {"X-API-Key": KEY}])
def test_who_knows_the_key_is_answered(serve, headers):
    client = serve(api_key=KEY)
    assert client.post("/api/invert", json={"vector": VECTOR}, headers=headers).status_code == 200
    assert client.get("/metrics", headers=headers).status_code == 200


def test_the_page_and_health_need_no_key_and_the_description_names_it(serve):
    client = serve(api_key=KEY)
    assert client.get("/health").status_code == 200
    description = client.get("/openapi.json").json()
    assert len(description["components"]["securitySchemes"]) == 2
    assert description["paths"]["/api/invert"]["post"]["security"]
    assert KEY not in client.get("/openapi.json").text


def test_other_origins_are_not_allowed_by_default(serve):
    client = serve()
    origin = {"Origin": "https://example.org"}
    assert "access-control-allow-origin" not in client.get("/api/models", headers=origin).headers
    asked = client.options("/api/invert", headers=origin | {"Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in asked.headers


def test_an_allowed_origin_must_match_exactly(serve):
    client = serve(allowed_origins=("https://example.org",), api_key=KEY)
    wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    asked = client.options("/api/invert", headers=wanted | {"Origin": "https://example.org"})
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == "https://example.org"
    refused = client.get("/api/models", headers={"Origin": "https://example.org"})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://example.org", "a page can read why"
    for other in ("http://example.org", "https://example.org.evil.com", "https://sub.example.org", "null"):
        asked = client.options("/api/invert", headers=wanted | {"Origin": other})
        assert "access-control-allow-origin" not in asked.headers


@pytest.mark.parametrize("path", ["/", "/api/models", "/api/nothing", "/health", "/openapi.json"])
def test_every_answer_has_the_security_headers(serve, path):
    headers = serve().get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers or "unembed" not in headers["server"]
    if path.startswith("/api"):
        assert headers["cache-control"] == "no-store"


def test_a_form_of_another_site_cannot_post(serve):
    """A page elsewhere can send text/plain without asking first; JSON it cannot."""
    answer = serve().post("/api/invert", content=b'{"vector": [1]}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 422


@pytest.mark.parametrize("path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py"])
def test_only_the_pages_own_files_are_given_out(serve, path):
    assert serve().get(f"{Page().static_path}/{path}").status_code == 404


def test_no_text_and_no_vector_is_logged(serve, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    client = serve()
    numbers = [0.123456789, *VECTOR[1:]]
    for path in ("/api/invert", "/api/invert/stream"):
        assert client.post(path, json={"text": SECRET}).status_code == 200
        assert client.post(path, json={"vector": numbers}).status_code == 200
        client.post(path, json={"text": SECRET, "steps": SECRET})
        client.post(path, json={"vector": [*numbers, 1.0]})
        client.post(path, json={SECRET: SECRET})
    client.post("/api/encode", json={"text": SECRET * 100})
    client.post("/api/invert/batch", json={"texts": [SECRET], "strategy": "guided", "rounds": 1})
    logged = caplog.text + "".join(capfd.readouterr())
    assert "zebrafever" not in logged
    assert "0.1234567" not in logged
