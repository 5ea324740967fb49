"""The queue: what waits is decoded together, what nobody waits for is not, and nothing waits for ever."""

import gc
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from servers import running
from unembed.server import Limits, ServedModel, Settings, make_app

VECTORS = np.random.default_rng(0).normal(size=(24, 16)).tolist()


def until(condition, seconds=10.0):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def client(serve, gated):
    """A client of a server with one worker, whose passes wait for ``gated.engine.gate``."""
    return serve([ServedModel("gated", gated)], coalesce_seconds=0.05)


@pytest.fixture
def ask(client, gated):
    """Sends requests from threads of their own, each on a connection of its own."""
    with ThreadPoolExecutor(32) as pool:

        def send(path="/api/invert", **body):
            return pool.submit(httpx.post, f"{client.base_url}{path}", json=body, timeout=30)

        yield send
        gated.engine.gate.set()


def waiting(client):
    return client.get("/api/queue").json()["waiting"]


def test_requests_that_wait_are_decoded_together_with_the_same_texts(client, ask, gated, make_inverter):
    first = ask(vector=VECTORS[0], length=3)
    until(lambda: gated.engine.passes == 1)
    others = [ask(vector=vector, length=6) for vector in VECTORS[1:]]
    until(lambda: waiting(client) == len(others))
    gated.engine.gate.set()
    texts = [answer.result().json()["text"] for answer in [first, *others]]
    assert max(gated.engine.batches) == len(others)
    alone = make_inverter()
    expected = [alone.invert(vector, lengths=[6])[0].text for vector in VECTORS[1:]]
    assert texts[1:] == expected
    assert len(set(expected)) > 1


def test_only_what_can_share_a_pass_is_decoded_together(client, ask, gated):
    first = ask(vector=VECTORS[0], length=3)
    until(lambda: gated.engine.passes == 1)
    kinds = [{"length": 5}, {"length": 6}, {"length": 6, "seed": 1}, {"length": 6, "strategy": "adaptive"}]
    others = [ask(vector=vector, **kind) for kind in kinds for vector in VECTORS[:3]]
    until(lambda: waiting(client) == len(others))
    gated.engine.gate.set()
    assert all(answer.result().status_code == 200 for answer in [first, *others])
    assert max(gated.engine.batches) == 3


def test_a_batch_is_not_larger_than_allowed(serve, gated):
    client = serve([ServedModel("gated", gated)], largest_batch=4, coalesce_seconds=0.05)
    gated.engine.gate.set()
    assert client.post("/api/invert/batch", json={"vectors": VECTORS, "length": 6}).status_code == 200
    assert max(gated.engine.batches) == 4


def test_every_stream_of_a_batch_sees_its_own_passes(client, ask, gated, make_inverter):
    gated.engine.gate.set()
    bodies = [{"vector": vector, "length": 6, "steps": 3} for vector in VECTORS]
    answers = [ask("/api/invert/stream", **body) for body in bodies]
    alone = make_inverter()
    for vector, answer in zip(VECTORS, answers, strict=True):
        events = [json.loads(line[6:]) for line in answer.result().text.splitlines() if line.startswith("data: ")]
        steps, done = [event for event in events if "pass" in event], events[-1]
        assert [step["pass"] for step in steps] == [1, 2, 3]
        assert done["text"] == alone.invert(vector, steps=3, lengths=[6])[0].text
        assert [token["text"] for token in steps[-1]["tokens"]] == [token["text"] for token in done["tokens"]]
    assert max(gated.engine.batches) > 1


def test_a_full_queue_refuses_and_says_when_to_come_again(serve, gated):
    client = serve([ServedModel("gated", gated)], limits=Limits(queue=2), coalesce_seconds=0.0)
    with ThreadPoolExecutor(4) as pool:
        url = f"{client.base_url}/api/invert"
        taken = [pool.submit(httpx.post, url, json={"vector": VECTORS[0], "length": 3}, timeout=30)]
        until(lambda: gated.engine.passes == 1)
        taken += [pool.submit(httpx.post, url, json={"vector": v, "length": 4}, timeout=30) for v in VECTORS[:2]]
        until(lambda: waiting(client) == 2)
        for path in ("/api/invert", "/api/invert/stream"):
            answer = client.post(path, json={"vector": VECTORS[3]})
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert "2 of 2 places are taken" in answer.json()["message"]
        state = client.get("/api/queue").json()
        assert state == {"running": 1, "waiting": 2, "capacity": 2, "workers": 1}
        gated.engine.gate.set()
        assert all(answer.result().status_code == 200 for answer in taken)
    assert client.post("/api/invert", json={"vector": VECTORS[3]}).status_code == 200


def test_a_batch_finds_room_as_a_whole_or_not_at_all(serve, gated):
    client = serve([ServedModel("gated", gated)], limits=Limits(queue=3))
    assert client.post("/api/invert/batch", json={"vectors": VECTORS[:4]}).status_code == 503
    assert waiting(client) == 0


def test_a_stream_tells_its_place_in_the_queue(client, ask, gated):
    ask(vector=VECTORS[0], length=3)
    until(lambda: gated.engine.passes == 1)
    ask(vector=VECTORS[1], length=4)
    until(lambda: waiting(client) == 1)
    with client.stream("POST", "/api/invert/stream", json={"vector": VECTORS[2], "length": 5}) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: queued"
        assert next(lines) == 'data: {"position":2}'
        gated.engine.gate.set()
        names = [line[7:] for line in lines if line.startswith("event: ")]
    assert names[0] in ("queued", "start")
    assert names[-1] == "done"


def test_health_answers_while_decoding(client, ask, gated):
    answer = ask(vector=VECTORS[0])
    until(lambda: gated.engine.passes == 1)
    begun = time.monotonic()
    assert client.get("/health").status_code == 200
    assert time.monotonic() - begun < 2.0
    assert not answer.done()


@pytest.mark.parametrize("path", ["/api/invert", "/api/invert/stream"])
def test_a_client_that_goes_away_stops_its_work(client, gated, path, caplog):
    body = {"vector": VECTORS[0], "strategy": "sequential", "length": 12}
    gone = httpx.Client(base_url=client.base_url, timeout=0.5)
    with pytest.raises(httpx.ReadTimeout), gone.stream("POST", path, json=body) as response:
        response.read()
    gone.close()
    assert gated.engine.passes == 1
    gated.engine.gate.set()
    until(lambda: client.get("/api/queue").json()["running"] == 0)
    assert gated.engine.passes <= 3, "all twelve passes were taken for nobody"
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_client_that_goes_away_leaves_the_queue(client, ask, gated):
    ask(vector=VECTORS[0], length=3)
    until(lambda: gated.engine.passes == 1)
    with httpx.Client(base_url=client.base_url, timeout=0.3) as gone, pytest.raises(httpx.ReadTimeout):
        gone.post("/api/invert/batch", json={"vectors": VECTORS[:5]})
    until(lambda: waiting(client) == 0)


def test_others_of_the_batch_do_not_suffer_when_a_client_goes_away(client, ask, gated, make_inverter):
    ask(vector=VECTORS[0], length=3)
    until(lambda: gated.engine.passes == 1)
    stays = ask(vector=VECTORS[1], length=6)
    until(lambda: waiting(client) == 1)
    leaving = threading.Thread(target=_leave, args=(client.base_url, {"vector": VECTORS[2], "length": 6}))
    leaving.start()
    until(lambda: waiting(client) == 2)
    gated.engine.gate.set()
    leaving.join()
    assert stays.result().json()["text"] == make_inverter().invert(VECTORS[1], lengths=[6])[0].text


def _leave(base_url, body):
    with httpx.Client(base_url=base_url, timeout=0.5) as gone:
        try:
            gone.post("/api/invert", json=body)
        except httpx.ReadTimeout:
            return


def test_waiting_has_a_time_out_of_its_own(serve, gated):
    client = serve([ServedModel("gated", gated)], wait_seconds=0.4, coalesce_seconds=0.0)
    with ThreadPoolExecutor(1) as pool:
        url = f"{client.base_url}/api/invert"
        working = pool.submit(httpx.post, url, json={"vector": VECTORS[0], "length": 3}, timeout=30)
        until(lambda: gated.engine.passes == 1)
        answer = client.post("/api/invert", json={"vector": VECTORS[1], "length": 4})
        assert answer.status_code == 503
        assert "waited for 0.4 seconds" in answer.json()["message"]
        assert int(answer.headers["retry-after"]) > 0
        streamed = client.post("/api/invert/stream", json={"vector": VECTORS[1], "length": 4}).text
        assert "event: error" in streamed
        assert '"status":503' in streamed
        until(lambda: waiting(client) == 0)
        gated.engine.gate.set()
        assert working.result().status_code == 200, "what is worked on no longer waits"


def test_work_has_a_time_out_of_its_own(serve, gated):
    client = serve([ServedModel("gated", gated)], work_seconds=0.2)
    threading.Timer(0.5, gated.engine.gate.set).start()
    answer = client.post("/api/invert", json={"vector": VECTORS[0], "strategy": "sequential", "length": 12})
    assert answer.status_code == 504
    assert "longer than 0.2 seconds" in answer.json()["message"]
    assert gated.engine.passes == 1
    gated.engine.gate.clear()
    threading.Timer(0.5, gated.engine.gate.set).start()
    streamed = client.post("/api/invert/stream", json={"vector": VECTORS[0], "length": 12}).text
    assert '"status":504' in streamed


def test_one_worker_stays_free_of_searches(serve, gated, fake_encoder):
    client = serve([ServedModel("gated", gated, fake_encoder)], workers=2, coalesce_seconds=0.0)
    with ThreadPoolExecutor(4) as pool:
        url = f"{client.base_url}/api/invert"
        bodies = [{"vector": v, "strategy": "guided", "rounds": 1, "seed": n} for n, v in enumerate(VECTORS[:2])]
        searches = [pool.submit(httpx.post, url, json=body, timeout=30) for body in bodies]
        until(lambda: client.get("/api/queue").json()["running"] == 1 and waiting(client) == 1)
        blind = pool.submit(httpx.post, url, json={"vector": VECTORS[0], "length": 3}, timeout=30)
        until(lambda: client.get("/api/queue").json()["running"] == 2)
        gated.engine.gate.set()
        assert all(answer.result().status_code == 200 for answer in [*searches, blind])


def test_a_failure_of_ours_is_told_without_quoting_the_request(serve, gated, caplog):
    def fail(*_arguments):
        raise RuntimeError("the secret text")

    gated.engine.hidden = fail
    client = serve([ServedModel("gated", gated)])
    answer = client.post("/api/invert", json={"vector": VECTORS[0]})
    assert answer.status_code == 500
    assert answer.json()["message"] == "The server failed."
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    assert client.get("/health").status_code == 200


def test_shutting_down_turns_away_what_waits(gated):
    # Not through the fixture: the end of the server is what is looked at.
    app = make_app(Settings(workers=1), [ServedModel("gated", gated)])
    with running(app) as (server, address), ThreadPoolExecutor(2) as pool:
        answers = [
            pool.submit(httpx.post, f"{address}/api/invert", json={"vector": v, "length": 4 + n}, timeout=30)
            for n, v in enumerate(VECTORS[:2])
        ]
        until(lambda: gated.engine.passes == 1)
        server.should_exit = True
        time.sleep(0.2)
        gated.engine.gate.set()
        assert {answer.result().status_code for answer in answers} <= {200, 503}
