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


def test_a_stream_shows_its_position_in_the_queue(client, ask, gated):
    ask(vector=VECTORS[0], length=3)
    until(lambda: gated.engine.passes == 1)
    ask(vector=VECTORS[1], length=4)
    until(lambda: waiting(client) == 1)
    with client.stream("POST", "/api/invert/stream", json={"vector": VECTORS[2], "length": 5}) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: queued"
        assert next(lines) == 'data: {"position":2,"seconds":null}', "nothing was decoded yet that it could tell by"
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
    # The server's loop, which answers these, has then also read that the connection is closed.
    for _ in range(3):
        client.get("/health")
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


class SlowEncoder:
    """An encoder that takes its time, so that a search is never over before the test has looked."""

    def __init__(self, encoder, seconds: float) -> None:
        self._encoder, self._seconds = encoder, seconds

    def __getattr__(self, name: str):
        return getattr(self._encoder, name)

    def encode(self, sentences, **options):
        time.sleep(self._seconds)
        return self._encoder.encode(sentences, **options)


class SlowEngine:
    """A denoiser that takes its time."""

    def __init__(self, engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str):
        return getattr(self._engine, name)

    def hidden(self, *arguments):
        time.sleep(0.02)
        return self._engine.hidden(*arguments)


@pytest.fixture
def searching(serve, make_inverter, fake_encoder):
    """Starts servers whose guided searches take at least so many seconds per round."""

    def start(seconds=0.1, inverter=None, **settings):
        model = ServedModel("slow", inverter or make_inverter(), SlowEncoder(fake_encoder, seconds))
        return serve([model], coalesce_seconds=0.0, turn_seconds=0.01, **settings)

    return start


@pytest.fixture
def send():
    """Sends requests from threads of their own; the answers come with the time when they were there."""
    with ThreadPoolExecutor(32) as pool:

        def post(client, path="/api/invert", **body):
            def timed():
                return httpx.post(f"{client.base_url}{path}", json=body, timeout=60), time.monotonic()

            return pool.submit(timed)

        yield post


GUIDED = {"strategy": "guided", "rounds": 6}


def test_guided_searches_that_arrive_one_after_another_go_on_side_by_side(searching, send):
    client = searching(wait_seconds=1.0)
    searches = []
    for number, vector in enumerate(VECTORS[:4]):
        searches.append(send(client, vector=vector, seed=number, **GUIDED))
        until(lambda number=number: client.get("/api/queue").json()["running"] == number + 1)
        assert not searches[0].done(), "the first one is still under way"
    assert [answer.result()[0].status_code for answer in searches] == [200] * 4


def test_searches_side_by_side_find_what_they_find_alone(searching, send, make_inverter, fake_encoder):
    client = searching()
    searches = [send(client, vector=vector, seed=number, **GUIDED) for number, vector in enumerate(VECTORS[:3])]
    for number, search in enumerate(searches):
        alone = make_inverter().invert(
            VECTORS[number], strategy="guided", seed=number, guided={"rounds": 6}, encoder=fake_encoder
        )
        assert search.result()[0].json()["text"] == alone[0].text


def test_a_blind_request_goes_between_the_rounds_of_a_search(searching, send):
    client = searching(seconds=0.4)  # twenty rounds are long enough for three answers, on a busy machine too
    search = send(client, vector=VECTORS[0], **GUIDED | {"rounds": 20})
    until(lambda: client.get("/api/queue").json()["running"] == 1)
    blind = [send(client, vector=vector) for vector in VECTORS[1:4]]
    assert all(answer.result()[0].status_code == 200 for answer in blind)
    assert not search.done()
    assert search.result()[0].status_code == 200


def test_a_search_goes_on_although_new_requests_keep_coming(serve, make_inverter, fake_encoder, send):
    slow = make_inverter()
    slow.engine = SlowEngine(slow.engine)  # slower than the clients are to ask again
    client = serve([ServedModel("slow", slow, fake_encoder)], turn_seconds=0.01)
    search = send(client, vector=VECTORS[0], strategy="guided", rounds=2, steps=1)
    until(lambda: client.get("/api/queue").json()["running"] == 1)
    requests = [send(client, vector=VECTORS[1], seed=seed, steps=1) for seed in range(16)]
    end = time.monotonic() + 15
    while not search.done() and time.monotonic() < end:  # whoever is answered asks again: something always waits
        requests = [
            send(client, vector=VECTORS[1], seed=seed, steps=1) if request.done() else request
            for seed, request in enumerate(requests)
        ]
        time.sleep(0.001)
    assert search.done(), "it never had its turn"
    assert search.result()[0].status_code == 200


def test_a_search_that_waits_is_told_its_position_and_how_long(searching, send):
    client = searching(seconds=0.5, searches=1)  # on a busy machine, too, the second comes while the first is searched
    send(client, vector=VECTORS[0], strategy="guided", rounds=3).result()
    first = send(client, vector=VECTORS[1], **GUIDED)
    until(lambda: client.get("/api/queue").json()["running"] == 1)
    second = {"vector": VECTORS[2], "strategy": "guided", "rounds": 1}
    with client.stream("POST", "/api/invert/stream", json=second) as response:
        lines = [line for line in response.iter_lines() if line]
    queued = json.loads(lines[lines.index("event: queued") + 1].removeprefix("data: "))
    assert queued["position"] == 1
    assert 1 <= queued["seconds"] <= 60
    assert first.result()[0].status_code == 200
    assert lines[-2] == "event: done"


def test_one_request_cannot_take_all_the_room_for_searches(searching, send):
    client = searching(searches=6)
    batch = send(client, "/api/invert/batch", vectors=VECTORS[:8], **GUIDED)
    until(lambda: client.get("/api/queue").json()["running"] >= 1)
    single = send(client, vector=VECTORS[0], strategy="guided", rounds=2, seed=1)
    assert single.result()[0].status_code == 200
    assert not batch.done()


@pytest.mark.parametrize(("count", "options"), [(64, {"candidates": 4}), (16, {"strategy": "guided", "rounds": 1})])
def test_the_largest_batch_is_answered_although_it_takes_longer_than_requests_may_wait(
    serve, make_inverter, fake_encoder, count, options
):
    model = ServedModel("slow", make_inverter(), SlowEncoder(fake_encoder, 0.05))
    client = serve([model], wait_seconds=0.5, limits=Limits(batch=count))
    vectors = np.random.default_rng(3).normal(size=(count, 16)).tolist()
    began = time.monotonic()
    answer = client.post("/api/invert/batch", json={"vectors": vectors, **options})
    assert answer.status_code == 200
    assert len(answer.json()["results"]) == count
    assert time.monotonic() - began > 0.5, "it proves nothing: the whole batch was faster than the time-out"


def test_a_small_request_does_not_wait_behind_a_large_batch(serve, make_inverter, send):
    slow = make_inverter()
    slow.engine = SlowEngine(slow.engine)
    client = serve([ServedModel("slow", slow)], largest_batch=4, turn_seconds=0.05, coalesce_seconds=0.0)
    batch = send(client, "/api/invert/batch", vectors=VECTORS, strategy="sequential", length=12)
    until(lambda: client.get("/api/queue").json()["running"] == 4)
    small = send(client, vector=VECTORS[0], steps=2, length=4)
    assert small.result()[0].status_code == 200
    assert client.get("/api/queue").json()["waiting"] >= len(VECTORS) - 8, "most of the batch still waits"
    assert batch.result()[0].status_code == 200


def test_work_has_a_time_out_that_counts_its_own_computing_only(searching, send):
    client = searching(seconds=0.2, work_seconds=2.5)
    searches = [send(client, vector=v, strategy="guided", rounds=3, seed=n) for n, v in enumerate(VECTORS[:4])]
    assert [answer.result()[0].status_code for answer in searches] == [200] * 4


@pytest.fixture
def filling(searching, make_speller):
    """Starts servers whose fillings take at least so many seconds per step."""
    return lambda seconds, **settings: searching(seconds, make_speller(), **settings)


SLOW_FILLING = {"template": "the door of {n} is open.", "candidates": {"n": "digits:4"}, "calls": 2000}


def test_a_request_goes_between_the_steps_of_a_filling(filling, send):
    client = filling(seconds=0.3)
    slow = send(client, "/api/fill", vector=VECTORS[0], **SLOW_FILLING)
    until(lambda: client.get("/api/queue").json()["running"] == 1)
    others = [send(client, vector=vector) for vector in VECTORS[1:4]]
    assert all(answer.result()[0].status_code == 200 for answer in others)
    assert not slow.done()
    assert slow.result()[0].json()["encoder_calls"] > 1000


def test_fillings_and_searches_go_on_side_by_side_and_find_what_they_find_alone(
    filling, send, make_speller, fake_encoder
):
    client = filling(seconds=0.05)
    search = send(client, vector=VECTORS[0], **GUIDED)
    slow = [send(client, "/api/fill", vector=vector, **SLOW_FILLING) for vector in VECTORS[1:3]]
    until(lambda: client.get("/api/queue").json()["running"] == 3)
    for vector, answer in zip(VECTORS[1:3], slow, strict=True):
        (alone,) = make_speller().fill(
            SLOW_FILLING["template"], vector, SLOW_FILLING["candidates"], encoder=fake_encoder, calls=2000
        )
        assert answer.result()[0].json()["answers"][0]["values"] == alone.answers[0].values
    assert search.result()[0].status_code == 200


def test_a_client_that_goes_away_stops_its_filling(filling, fake_encoder):
    client = filling(seconds=0.2)
    with httpx.Client(base_url=client.base_url, timeout=0.7) as gone, pytest.raises(httpx.ReadTimeout):
        gone.post("/api/fill", json={"vector": VECTORS[0], **SLOW_FILLING})
    until(lambda: client.get("/api/queue").json()["running"] == 0)
    assert 0 < len(fake_encoder.seen) < 1000, "texts were embedded for nobody"


def test_a_filling_has_the_time_out_of_other_work(filling):
    answer = filling(seconds=0.2, work_seconds=0.5).post("/api/fill", json={"vector": VECTORS[0], **SLOW_FILLING})
    assert answer.status_code == 504
    assert "Filling took longer than 0.5 seconds" in answer.json()["message"]
    assert "fewer candidates" in answer.json()["remedy"]


def test_a_filling_is_counted(filling):
    client = filling(seconds=0.0)
    body = {"template": "the {x}", "candidates": {"x": ["dog"]}, "vector": VECTORS[0]}
    assert client.post("/api/fill", json=body).status_code == 200
    until(lambda: client.get("/api/queue").json()["running"] == 0)
    text = client.get("/metrics").text
    assert 'unembed_requests_total{path="/api/fill",status="200"} 1.0' in text
    assert 'unembed_decode_seconds_count{strategy="fill"} 1.0' in text


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


def test_shutting_down_answers_what_waits_and_what_is_worked_on(gated, caplog):
    # Not through the fixture: the end of the server is what is looked at.
    app = make_app(Settings(workers=1), [ServedModel("gated", gated)])
    with running(app) as (server, address), ThreadPoolExecutor(3) as pool:
        answers = [
            pool.submit(httpx.post, f"{address}/api/invert", json={"vector": v, "length": 4 + n}, timeout=30)
            for n, v in enumerate(VECTORS[:2])
        ]
        until(lambda: gated.engine.passes == 1)
        stream = pool.submit(httpx.post, f"{address}/api/invert/stream", json={"vector": VECTORS[2]}, timeout=30)
        until(lambda: httpx.get(f"{address}/api/queue").json()["waiting"] == 2)
        server.should_exit = True
        for answer in answers:  # one is worked on, the other waits; neither has to wait for the pass
            assert answer.result().status_code == 503
            assert answer.result().json()["message"] == "The server is shutting down."
            assert int(answer.result().headers["retry-after"]) > 0
        assert stream.result().text.rstrip().splitlines()[-2] == "event: error"
        assert '"status":503' in stream.result().text
        gated.engine.gate.set()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
