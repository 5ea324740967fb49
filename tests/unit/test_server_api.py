"""What the HTTP API answers, over real HTTP."""

import json
import time

import numpy as np
import pytest
import torch

from unembed.defences import DEFENCES, Defence, apply
from unembed.measures import token_f1
from unembed.server import ServedModel

TEXT = "the cat sleeps on the warm mat."
VECTOR = [float(number) for number in np.random.default_rng(0).normal(size=16)]


def events_of(response) -> list[tuple[str, dict]]:
    """Read a stream of server-sent events."""
    parts = [part.split("\n") for part in response.read().decode().split("\n\n") if part.startswith("event:")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def stream(client, **body):
    with client.stream("POST", "/api/invert/stream", json=body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return events_of(response)


def test_a_text_is_embedded(serve, fake_encoder):
    answer = serve().post("/api/encode", json={"text": TEXT}).json()
    assert np.allclose(answer["vector"], fake_encoder.encode([TEXT])[0])
    assert answer["tokens"] == ["the", "cat", "sleeps", "on", "the", "warm", "mat", "."]
    assert answer["cut"] is False
    statistics = answer["statistics"]
    assert statistics["dimension"] == 16
    assert statistics["norm"] == pytest.approx(1.0)
    assert statistics["minimum"] == pytest.approx(min(answer["vector"]))
    assert sum(statistics["histogram"]["counts"]) == 16
    assert len(statistics["histogram"]["edges"]) == len(statistics["histogram"]["counts"]) + 1


def test_a_text_longer_than_the_canvas_is_cut(serve):
    answer = serve().post("/api/encode", json={"text": "the dog runs in the park. " * 5}).json()
    assert answer["cut"] is True
    assert len(answer["tokens"]) == 12


def test_a_vector_is_inverted_as_the_inverter_does_it(serve, make_inverter):
    answer = serve().post("/api/invert", json={"vector": VECTOR, "strategy": "adaptive", "steps": 4}).json()
    expected = make_inverter().invert([VECTOR], strategy="adaptive", steps=4)[0]
    assert answer["text"] == expected.text
    assert [token["text"] for token in answer["tokens"]] == expected.tokens
    assert answer["passes"] == expected.passes
    assert answer["score"] == pytest.approx(expected.score)
    assert answer["strategy"] == "adaptive"
    assert answer["model"] == "tiny"
    assert answer["reference"] is None
    assert answer["measures"] is None
    assert answer["statistics"]["dimension"] == 16


def test_a_text_is_inverted_and_compared(serve, fake_encoder, tiny_tokenizer):
    answer = serve().post("/api/invert", json={"text": TEXT}).json()
    assert answer["reference"] == {
        "text": TEXT,
        "tokens": ["the", "cat", "sleeps", "on", "the", "warm", "mat", "."],
        "cut": False,
        "notices": [],
    }
    ids = [
        [tiny_tokenizer.token_to_id(token) for token in tokens]
        for tokens in ([token["text"] for token in answer["tokens"]], answer["reference"]["tokens"])
    ]
    assert answer["measures"]["token_f1"] == pytest.approx(token_f1(*ids))
    again, original = fake_encoder.encode([answer["text"], TEXT])
    assert answer["cosine"] == pytest.approx(float(again @ original), abs=1e-5)


def test_a_defence_is_applied_before_inversion_and_the_cosine_is_with_the_undefended_vector(
    serve, make_inverter, fake_encoder
):
    defence = {"kind": "noise", "strength": 0.8, "seed": 5}
    client = serve()
    answer = client.post("/api/invert", json={"text": TEXT, "defence": defence}).json()
    original = fake_encoder.encode([TEXT])
    expected = make_inverter().invert(apply(original, Defence(**defence)))[0]
    assert answer["text"] == expected.text
    again = fake_encoder.encode([answer["text"]])[0]
    assert answer["cosine"] == pytest.approx(float(again @ original[0]), abs=1e-5)
    encoded = client.post("/api/encode", json={"text": TEXT, "defence": defence}).json()
    assert np.allclose(encoded["vector"], apply(original, Defence(**defence))[0], atol=1e-6)


def test_guided_decoding_asks_the_encoder(serve):
    answer = serve().post("/api/invert", json={"text": TEXT, "strategy": "guided", "rounds": 2}).json()
    assert answer["encoder_calls"] > 0
    assert answer["score"] == pytest.approx(answer["cosine"], abs=1e-4)


def test_a_batch_gives_what_single_requests_give_in_their_order(serve):
    client = serve()
    vectors = np.random.default_rng(1).normal(size=(7, 16)).tolist()
    options = {"strategy": "euler", "steps": 3, "seed": 4}
    answer = client.post("/api/invert/batch", json={"vectors": vectors, **options}).json()
    single = [client.post("/api/invert", json={"vector": vector, **options}).json() for vector in vectors]
    assert [result["text"] for result in answer["results"]] == [result["text"] for result in single]
    assert len({result["text"] for result in single}) > 1


def test_a_batch_of_texts_is_compared(serve):
    answer = serve().post("/api/invert/batch", json={"texts": [TEXT, "a bird sings."]}).json()
    assert [result["reference"]["text"] for result in answer["results"]] == [TEXT, "a bird sings."]


def test_a_stream_tells_the_start_every_pass_and_the_result(serve):
    client = serve()
    events = stream(client, text=TEXT, steps=4, length=8)
    assert [name for name, _ in events] == ["start", "step", "step", "step", "step", "done"]
    start, *steps, done = (event for _, event in events)
    assert start["model"] == "tiny"
    assert start["length"] == 8
    assert len(start["vector"]) == 16
    assert start["reference"]["text"] == TEXT
    assert [step["pass"] for step in steps] == [1, 2, 3, 4]
    assert [step["mask_rate"] for step in steps] == [0.75, 0.5, 0.25, 0.0]
    for step in steps:
        assert sum(token["masked"] for token in step["tokens"]) == 8 * step["mask_rate"]
        assert sum(token["changed"] for token in step["tokens"]) == 2
        assert all((token["text"] == "") == token["masked"] for token in step["tokens"])
    assert [step["score"] is None for step in steps] == [True, True, True, False]
    assert [token["text"] for token in steps[-1]["tokens"]] == [token["text"] for token in done["tokens"]]
    whole = client.post("/api/invert", json={"text": TEXT, "steps": 4, "length": 8}).json()
    assert done["text"] == whole["text"]


def test_of_several_hypotheses_a_stream_shows_the_first_and_then_the_one_kept(serve):
    events = stream(serve(), vector=VECTOR, candidates=3, steps=2)
    assert dict(events)["start"]["length"] is None
    steps = [event for name, event in events if name == "step"]
    assert len({len(step["tokens"]) for step in steps[:-1]}) == 1
    assert [token["text"] for token in steps[-1]["tokens"]] == [token["text"] for token in events[-1][1]["tokens"]]


def test_a_guided_stream_shows_the_search(serve):
    events = stream(serve(), text=TEXT, strategy="guided", rounds=3)
    searched = [event for name, event in events if name == "step" and event["texts_embedded"]]
    scores = [step["score"] for step in searched]
    assert len(searched) >= 2
    assert scores == sorted(scores)
    assert events[-1][0] == "done"


def test_a_fixed_canvas_can_be_watched_too(serve, make_inverter):
    client = serve([ServedModel("fixed", make_inverter(canvas="fixed"))])
    events = stream(client, vector=VECTOR, steps=3)
    assert len(events[1][1]["tokens"]) == 12
    assert events[-1][0] == "done"


def test_a_model_with_a_surrogate_searches_without_an_encoder(serve, make_inverter):
    inverter = make_inverter(freeze_token_embeddings=True, surrogate={"layers": 1})
    client = serve([ServedModel("one", inverter)])
    assert "surrogate" in client.get("/api/models").json()["models"][0]["strategies"]
    answer = client.post("/api/invert", json={"vector": VECTOR, "strategy": "surrogate", "rounds": 2}).json()
    assert (answer["strategy"], answer["encoder_calls"]) == ("surrogate", 0)
    assert answer["surrogate_calls"] > 0


def test_a_model_with_a_writer_offers_it_and_no_other_does(serve, make_inverter):
    inverter = make_inverter(freeze_token_embeddings=True, writer={"layers": 1})
    client = serve([ServedModel("one", inverter), ServedModel("two", make_inverter())])
    one, two = (model["strategies"] for model in client.get("/api/models").json()["models"])
    assert "writer" in one
    assert "writer" not in two
    asked = {"vector": VECTOR, "strategy": "writer"}
    assert client.post("/api/invert", json=asked).json()["strategy"] == "writer"
    refused = client.post("/api/invert", json=asked | {"model": "two"})
    assert (refused.status_code, "no writer" in refused.text) == (422, True)


def test_a_longer_text_than_the_model_writes_is_noticed_and_is_no_reason_for_doubt(serve, make_inverter):
    inverter = make_inverter(extent={"longest": 60, "width": 8})
    with torch.no_grad():  # all texts seem to have 50 to 60 tokens
        inverter.model.extent.out.weight.zero_()
        inverter.model.extent.out.bias.copy_(torch.where(inverter.model.extent.bounds < 50, -50.0, 0.0))
    vector = (np.array(VECTOR) / np.linalg.norm(VECTOR)).tolist()
    answer = serve([ServedModel("one", inverter)]).post("/api/invert", json={"vector": vector}).json()
    assert answer["warnings"] == []
    (notice,) = answer["notices"]
    assert notice.startswith("This text probably has 5")
    assert answer["reliability"]["level"] == "unknown"


def test_the_models_are_described(serve, make_inverter, fake_encoder):
    metrics = {"token_f1": 0.5, "step": 7, "note": "not a number", "elbo": float("nan")}
    client = serve([ServedModel("one", make_inverter(metrics), fake_encoder), ServedModel("two", make_inverter())])
    answer = client.get("/api/models").json()
    one, two = answer["models"]
    assert (one["name"], one["default"], one["guided"]) == ("one", True, True)
    assert (two["name"], two["default"], two["guided"]) == ("two", False, False)
    assert (one["encoder"], one["dimension"], one["canvas_length"]) == ("fake", 16, 12)
    assert one["metrics"] == {"token_f1": 0.5, "step": 7.0}
    assert one["parameters"] > 0
    assert "guided" in one["strategies"]
    assert "guided" not in two["strategies"]
    assert "surrogate" not in one["strategies"]
    assert [defence["kind"] for defence in answer["defences"]] == list(DEFENCES)
    assert answer["limits"]["batch"] == 64


def test_a_model_is_chosen_by_its_name(serve, make_inverter):
    client = serve([ServedModel("one", make_inverter()), ServedModel("two", make_inverter(seed=3))])
    assert client.post("/api/invert", json={"vector": VECTOR}).json()["model"] == "one"
    two = client.post("/api/invert", json={"vector": VECTOR, "model": "two"}).json()
    assert two["model"] == "two"
    assert two["text"] == make_inverter(seed=3).invert([VECTOR])[0].text


def test_there_are_easy_and_hard_examples(serve):
    examples = serve().get("/api/examples").json()["examples"]
    assert {example["difficulty"] for example in examples} == {"easy", "hard"}
    assert all(example["text"] for example in examples)


def test_health_tells_the_models(serve):
    answer = serve().get("/health").json()
    assert (answer["status"], answer["models"]) == ("ok", ["tiny"])


def test_metrics_count_requests_batches_and_seconds(serve):
    client = serve()
    client.post("/api/invert/batch", json={"vectors": [VECTOR, VECTOR], "length": 5})
    client.post("/api/invert", json={"vector": []})
    client.get("/no/such/path")
    while client.get("/api/queue").json()["running"]:  # a batch is counted just after its last answer
        time.sleep(0.01)
    text = client.get("/metrics").text
    assert 'unembed_requests_total{path="/api/invert/batch",status="200"} 1.0' in text
    assert 'unembed_requests_total{path="/api/invert",status="422"} 1.0' in text
    assert 'unembed_requests_total{path="other",status="404"} 1.0' in text
    assert 'unembed_batch_size_bucket{le="2.0"} 1.0' in text
    assert "unembed_batch_size_sum 2.0" in text
    assert 'unembed_decode_seconds_count{strategy="confidence"} 1.0' in text
    assert "unembed_queue_waiting 0.0" in text
    assert "process_resident_memory_bytes" in text


def test_everything_is_described(serve):
    description = serve().get("/openapi.json").json()
    for path, operations in description["paths"].items():
        for operation in operations.values():
            assert operation.get("description"), path
            assert "200" in operation["responses"], path
    assert {"/api/encode", "/api/fill", "/api/invert", "/api/invert/stream", "/api/invert/batch"} <= set(
        description["paths"]
    )
    for name, schema in description["components"]["schemas"].items():
        assert schema.get("description") or schema.get("enum"), name


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "exactly one of text and vector"),
        ({"text": TEXT, "vector": VECTOR}, "exactly one of text and vector"),
        ({"vector": VECTOR[:5]}, "5 numbers, not 16"),
        ({"vector": [0.0] * 16}, "all zeros"),
        ({"vector": [*VECTOR[:15], float("nan")]}, "vector.15: Input should be a finite number"),
        ({"vector": [*VECTOR[:15], float("inf")]}, "vector.15: Input should be a finite number"),
        ({"vector": [*VECTOR[:15], 10**400]}, "vector.15"),
        ({"vector": [*VECTOR[:15], 1e39]}, "norm is 1e+39; expected"),
        ({"vector": [1e-40] * 16}, "norm is 4e-40; expected"),
        ({"vector": "1, 2, 3"}, "vector: Input should be a valid list"),
        ({"vector": VECTOR, "model": "tinny"}, "There is no model 'tinny': did you mean 'tiny'?"),
        ({"vector": VECTOR, "strategy": "magic"}, "'sequential', 'euler'"),
        ({"vector": VECTOR, "steps": 0}, "steps: Input should be greater than or equal to 1"),
        ({"vector": VECTOR, "steps": 65}, "steps is 65; expected at most 64"),
        ({"vector": VECTOR, "candidates": 17}, "candidates is 17; expected at most 16"),
        ({"vector": VECTOR, "strategy": "guided", "rounds": 51}, "rounds is 51; expected at most 50"),
        ({"vector": VECTOR, "rounds": 5}, "rounds is for the strategies surrogate and guided"),
        ({"vector": VECTOR, "length": 13}, "lengths from 1 to 12"),
        ({"vector": VECTOR, "temperature": 1e-9}, "temperature: expected 0, or at least 0.01"),
        ({"vector": VECTOR, "stepps": 3}, "stepps: Extra inputs are not permitted"),
        ({"vector": VECTOR, "defence": {"kind": "hope"}}, "defence.kind: Input should be 'none', 'noise'"),
        ({"vector": VECTOR, "defence": {"kind": "noise", "strength": 2}}, "defence.strength"),
        ({"vector": [0.0] * 15 + [1.0], "defence": {"kind": "truncation", "strength": 1}}, "all zeros"),
        ({"text": ""}, "text: String should have at least 1 character"),
        ({"text": "x" * 2001}, "2001 characters; expected at most 2000"),
        ({"text": "\u0007"}, "no tokens"),
    ],
)
def test_a_mistake_is_answered_with_what_was_expected(serve, body, expected):
    client = serve()
    content = json.dumps(body)  # httpx's own refuses NaN
    for path in ("/api/invert", "/api/invert/stream"):
        answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
        if path.endswith("stream") and answer.status_code == 200:
            (name, problem) = events_of(answer)[-1]
            assert (name, problem["status"]) == ("error", 422)
        else:
            assert answer.status_code == 422
            problem = answer.json()
        assert expected in problem["message"]
        assert problem["remedy"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"text": "\\ud800"}', b'{"\\ud800": 1}']
)
def test_a_body_that_is_no_request_is_a_mistake_of_the_client(serve, content):
    answer = serve().post("/api/invert", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert set(answer.json()) == {"message", "remedy"}


def test_a_vector_that_does_not_look_like_the_encoders_is_warned_of_every_time(serve, fake_encoder):
    client = serve()
    good = fake_encoder.encode([TEXT])[0]
    for _ in range(2):
        (warning,) = client.post("/api/invert", json={"vector": (3 * good).tolist()}).json()["warnings"]
        assert "The vector does not look like those of fake" in warning
        assert "has the length 3" in warning
    done = stream(client, vector=(3 * good).tolist())[-1][1]
    assert done["warnings"] == [warning]
    answer = client.post("/api/invert/batch", json={"vectors": [good.tolist(), (3 * good).tolist()]}).json()
    assert [result["warnings"] for result in answer["results"]] == [[], [warning]]


def test_a_text_is_not_warned_of_whatever_its_defence_does(serve):
    body = {"text": TEXT, "defence": {"kind": "noise", "strength": 1}}
    assert serve().post("/api/invert", json=body).json()["warnings"] == []


def test_without_the_encoder_texts_and_guided_decoding_are_refused_and_vectors_are_not(serve, make_inverter):
    client = serve([ServedModel("blind", make_inverter())])
    for body in ({"text": TEXT}, {"vector": VECTOR, "strategy": "guided"}):
        answer = client.post("/api/invert", json=body)
        assert answer.status_code == 422
        assert "needs the encoder 'fake'" in answer.json()["message"]
    answer = client.post("/api/invert", json={"vector": VECTOR})
    assert answer.status_code == 200
    assert answer.json()["cosine"] is None


def test_a_mistake_in_a_batch_names_its_index(serve):
    client = serve()
    answer = client.post("/api/invert/batch", json={"vectors": [VECTOR, VECTOR[:3]]})
    assert answer.status_code == 422
    assert "Number 1 of the batch: The vector has 3 numbers" in answer.json()["message"]
    answer = client.post("/api/invert/batch", json={"vectors": [VECTOR] * 65})
    assert "65 in the batch; expected at most 64" in answer.json()["message"]


def test_what_does_not_exist_is_told_as_any_other_mistake(serve):
    client = serve()
    assert client.get("/api/nothing").status_code == 404
    assert set(client.get("/api/nothing").json()) == {"message", "remedy"}
    assert client.get("/api/invert").status_code == 405


def test_the_words_of_a_vector_come_with_its_start_and_its_result(serve):
    client = serve()
    events = stream(client, text=TEXT, length=8)
    start, done = events[0][1], events[-1][1]
    assert start["words"] == done["words"]
    said = {"cat", "sleeps", "warm", "mat"}
    assert {word["text"] for word in start["words"] if word["fate"] == "same"} <= said
    assert all(word["fate"] in ("same", "near", "lost") for word in start["words"])
    from_vector = client.post("/api/invert", json={"vector": VECTOR}).json()
    assert [word["fate"] for word in from_vector["words"]] == [None] * len(from_vector["words"])
    assert from_vector["headline"] is None


def test_the_headline_counts_content_words_beside_what_the_model_says_without_the_vector(serve):
    answer = serve().post("/api/invert", json={"text": TEXT}).json()
    headline = answer["headline"]
    assert [word["text"] for word in headline["words"]] == ["cat", "sleeps", "warm", "mat"]
    assert headline["same"] == sum(word["fate"] == "same" for word in headline["words"])
    assert headline["near"] == sum(word["fate"] == "near" for word in headline["words"])
    assert headline["without_vector"]["text"]
    other = serve().post("/api/invert", json={"text": "a bird sings in the old tree."}).json()
    assert len(TEXT.split()) == len(other["reference"]["text"].split())
    assert other["headline"]["without_vector"]["text"] == headline["without_vector"]["text"], "it sees no vector"


def test_a_leak_is_named_when_it_comes_back(serve, make_inverter, fake_encoder):
    from unembed.canvas import fit_text
    from unembed.server.headline import write_headline

    inverter = make_inverter()
    trip = fit_text("maria has diabetes.", inverter.tokenizer, 40)
    model = ServedModel("tiny", inverter, fake_encoder)
    model._guesses[len(trip.ids)] = "the cat"
    headline = write_headline("the diabetes of maria", trip, model)
    assert {leak.kind: leak.text for leak in headline.leaks} == {"names": "maria", "medical terms": "diabetes"}
    assert {leak.name for leak in headline.leaks} == {"a name", "an illness or medical term"}
    assert write_headline("a cat", trip, model).leaks == []


def test_words_alone_are_named_for_many_vectors(serve):
    client = serve()
    vectors = np.random.default_rng(3).normal(size=(5, 16)).tolist()
    answer = client.post("/api/words", json={"vectors": vectors}).json()
    assert len(answer["results"]) == 5
    single = client.post("/api/invert", json={"vector": vectors[4]}).json()
    assert answer["results"][4]["words"] == [word["text"] for word in single["words"]]
    wrong = client.post("/api/words", json={"vectors": [[1.0, 2.0]]})
    assert wrong.status_code == 422
    assert "Number 0 of the batch: The vector has 2 numbers, not 16." in wrong.json()["message"]


def test_a_search_is_stopped_and_gives_its_best_text(serve, fake_encoder, monkeypatch):
    encode = fake_encoder.encode
    monkeypatch.setattr(fake_encoder, "encode", lambda *given, **more: time.sleep(0.1) or encode(*given, **more))
    client = serve(workers=1)
    body = {"text": TEXT, "strategy": "guided", "rounds": 50}
    events = []
    with client.stream("POST", "/api/invert/stream", json=body) as response:
        lines = response.iter_lines()
        for line in lines:
            if line.startswith("event:"):
                events.append(line.removeprefix("event: "))
            if line.startswith("data:") and events[-1] == "start":
                start = json.loads(line.removeprefix("data: "))
            if line.startswith("data:") and events[-1] == "step" and json.loads(line[6:])["texts_embedded"]:
                break
        assert client.post("/api/invert/stop", json={"id": start["id"]}).json() == {"stopped": True}
        rest = [line for line in lines if line.startswith(("event:", "data:"))]
    assert rest[-2] == "event: done"
    result = json.loads(rest[-1].removeprefix("data: "))
    assert result["text"]
    assert sum(line == "event: step" for line in rest) <= 3, "it ended soon"
    assert client.post("/api/invert/stop", json={"id": start["id"]}).json() == {"stopped": False}
    assert client.post("/api/invert/stop", json={"id": "é"}).json() == {"stopped": False}


def test_a_text_in_another_language_or_too_long_gets_a_notice(serve, make_inverter, fake_encoder):
    inverter = make_inverter()
    inverter.info = inverter.info.model_copy(update={"languages": ("en",)})
    client = serve([ServedModel("tiny", inverter, fake_encoder)])
    german = client.post("/api/invert", json={"text": "ich bin nicht das und die"}).json()
    assert any("German" in notice and "English" in notice for notice in german["reference"]["notices"])
    long = client.post("/api/invert", json={"text": "the dog runs in the park. " * 5}).json()
    assert any("up to 12" in notice for notice in long["reference"]["notices"])
    assert client.get("/api/models").json()["models"][0]["languages"] == ["English"]
    assert client.get("/api/models").json()["models"][0]["lower_case"] is True
