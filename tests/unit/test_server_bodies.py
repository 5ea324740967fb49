"""Bodies that would take long to refuse are refused at once, and everyone else is answered meanwhile."""

import asyncio
import gc
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from unembed.server import Limits, ServedModel, Settings, make_app

JSON = {"Content-Type": "application/json"}
BYTES = 4 << 20


def filled(start: str, item: str, end: str) -> bytes:
    """Repeat an item until the body has as many bytes as it may have."""
    return (start + ",".join([item] * ((BYTES - len(start) - len(end)) // (len(item) + 1))) + end).encode()


UNKNOWN_KEYS = ",".join(f'"key{number}":0' for number in range(300_000))
BODIES = {
    "empty vectors": ("/api/invert/batch", filled('{"vectors":[', "[]", "]}")),
    "strings in a vector": ("/api/invert", filled('{"vector":[', '"a"', "]}")),
    "unknown keys": ("/api/invert", f"{{{UNKNOWN_KEYS}}}".encode()),
    "vectors of one number": ("/api/invert/batch", filled('{"vectors":[', "[1]", "]}")),
    "objects in a batch": ("/api/invert/batch", filled('{"texts":[', '{"a":1}', "]}")),
    "unknown keys of a defence": ("/api/encode", f'{{"text":"a","defence":{{{UNKNOWN_KEYS}}}}}'.encode()),
    "fewer vectors than values may be": ("/api/invert/batch", b'{"vectors":[' + b",".join([b"[]"] * 128_000) + b"]}"),
    "right vectors, but far too many": ("/api/invert/batch", b'{"vectors":[' + b",".join([b"[1]"] * 128_000) + b"]}"),
    "fewer numbers than values may be": ("/api/invert", b'{"vector":[' + b",".join([b"1e9999"] * 128_000) + b"]}"),
    "candidates that are no texts": ("/api/fill", filled('{"template":"{a}","candidates":{"a":[', "0", "]}}")),
    "lists of candidates that are none": (
        "/api/fill",
        b'{"template":"{a}","candidates":{"a":[' + b",".join([b"[]"] * 128_000) + b"]}}",
    ),
    "candidates for slots that are not there": (
        "/api/fill",
        f'{{"template":"{{a}}","candidates":{{{UNKNOWN_KEYS.replace(":0", ":[]")}}}}}'.encode(),
    ),
    "brackets": ("/api/invert", b"[" * BYTES),
}


@pytest.fixture
def frozen():
    """Keeps the garbage collector from what is loaded already, as ``unembed serve`` does."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("kind", BODIES)
def test_a_body_of_many_mistakes_is_refused_within_50_milliseconds(make_inverter, kind):
    app = make_app(Settings(), [ServedModel("tiny", make_inverter())])
    path, body = BODIES[kind]

    async def send() -> tuple[httpx.Response, float]:
        # Without a network: all computing time is the event loop's. The best of three: a busy machine only adds to it.
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            await client.post(path, content=b"{}", headers=JSON)
            times = []
            for _ in range(3):
                began = time.thread_time()
                answer = await client.post(path, content=body, headers=JSON)
                times.append(time.thread_time() - began)
            return answer, min(times)

    answer, seconds = asyncio.run(send())
    assert answer.status_code in (413, 422)
    assert set(answer.json()) == {"message", "remedy"}
    assert len(answer.content) < 1000
    assert seconds < 0.05


@pytest.mark.parametrize("kind", ["empty vectors", "strings in a vector", "unknown keys"])
def test_health_is_answered_while_such_bodies_arrive(serve, kind):
    client = serve()
    path, body = BODIES[kind]
    with ThreadPoolExecutor(4) as pool:
        answers = [
            pool.submit(httpx.post, f"{client.base_url}{path}", content=body, headers=JSON, timeout=30)
            for _ in range(8)
        ]
        longest = 0.0
        while not all(answer.done() for answer in answers):
            began = time.perf_counter()
            assert client.get("/health").status_code == 200
            longest = max(longest, time.perf_counter() - began)
        assert {answer.result().status_code for answer in answers} <= {413, 422}
    assert longest < 1.0, "one such body used to block the server for seconds"


def test_the_first_mistakes_of_a_smaller_body_are_named(serve):
    client = serve()
    answer = client.post("/api/invert/batch", json={"vectors": [[]] * 4_000})
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("vectors.0: List should have at least 1 item")
    answer = client.post("/api/invert", json=dict.fromkeys(map(str, range(100)), 0))
    assert answer.status_code == 422
    assert "An object has 100 keys" in answer.json()["message"]


def test_the_largest_request_within_the_limits_is_read(serve, make_inverter, fake_encoder):
    client = serve([ServedModel("tiny", make_inverter(), fake_encoder)], limits=Limits(batch=3, text_characters=100))
    answer = client.post("/api/invert/batch", json={"texts": ["a," * 50] * 3})
    assert answer.status_code == 200
