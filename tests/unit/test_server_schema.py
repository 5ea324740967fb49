"""Whatever fits the OpenAPI description, and much that does not, is answered as the description says: never with a 500.

The server is a real one; schemathesis makes the requests.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from unembed.server import ServedModel

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
INVERSIONS = ["/api/invert", "/api/invert/batch", "/api/invert/stream"]
POSTS = ["/api/encode", "/api/fill", *INVERSIONS, "/api/invert/stop", "/api/words"]
GETS = ["/api/models", "/api/examples", "/api/queue", "/health", "/metrics"]
GOOD = {"vector": [0.5, *range(15)], "vectors": [[0.5, *range(15)]] * 3}


@pytest.fixture
def description(serve, make_speller, fake_encoder):
    """The server's own description, as schemathesis reads it."""
    client = serve([ServedModel("tiny", make_speller(), fake_encoder)])
    return schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")


def for_all(operation, mode, check, examples=30):
    """Check requests that fit an operation, or that do not."""

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def checked(case):
        check(case)

    checked()


def test_the_description_has_every_path(description):
    assert sorted(operation.ok().path for operation in description.get_all_operations()) == sorted(POSTS + GETS)


@pytest.mark.parametrize("path", POSTS)
def test_requests_that_fit_are_answered_as_described(description, path):
    for_all(description[path]["POST"], GenerationMode.POSITIVE, lambda case: case.call_and_validate(checks=CHECKS))


@pytest.mark.parametrize("path", POSTS)
def test_requests_that_do_not_fit_are_refused_as_described(description, path):
    checks = [*CHECKS, negative_data_rejection]
    for_all(description[path]["POST"], GenerationMode.NEGATIVE, lambda case: case.call_and_validate(checks=checks))


@pytest.mark.parametrize("path", GETS)
def test_questions_are_answered_as_described(description, path):
    for_all(description[path]["GET"], GenerationMode.POSITIVE, lambda case: case.call_and_validate(checks=CHECKS), 3)


@pytest.mark.parametrize("path", INVERSIONS)
def test_every_way_to_decode_a_good_vector_is_answered_as_described(description, path):
    """By themselves the requests hardly ever have a vector of the right dimension, or a model that exists."""
    statuses = set()

    def check(case):
        kept = {name: value for name, value in case.body.items() if name not in ("text", "texts", "model", "length")}
        name = "vectors" if path.endswith("batch") else "vector"
        for number in ("steps", "candidates", "rounds"):
            if kept.get(number) is not None:
                kept[number] = 1 + kept[number] % 4
        if kept.get("strategy") in ("guided", "surrogate") and kept.get("rounds") is None:
            kept["rounds"] = 4  # fifty can take ten seconds, and the client waits no longer
        case.body = kept | {name: GOOD[name]}
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    for_all(description[path]["POST"], GenerationMode.POSITIVE, check)
    assert 200 in statuses


def test_every_way_to_fill_a_good_template_is_answered_as_described(description):
    statuses = set()

    def check(case):
        kept = {name: case.body[name] for name in ("blind", "top", "seed", "defence") if name in case.body}
        given = list(case.body.get("candidates", {}).values())
        case.body = kept | {"template": "the {a} of {b}", "vector": GOOD["vector"], "calls": 20}
        case.body["candidates"] = dict(zip("ab", given, strict=False))
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    for_all(description["/api/fill"]["POST"], GenerationMode.POSITIVE, check)
    assert 200 in statuses
