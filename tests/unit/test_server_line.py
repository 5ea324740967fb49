"""The order in which waiting vectors have their turn."""

import asyncio
from types import SimpleNamespace

import pytest

from unembed.config import DecodingConfig
from unembed.server.jobs import Job
from unembed.server.line import Line
from unembed.server.settings import Settings

BLIND, GUIDED = DecodingConfig(), DecodingConfig(strategy="guided")


@pytest.fixture
def make():
    """Makes the jobs of a request; they are ready to be decoded."""

    def jobs(count, options=BLIND, *, ready=True) -> list[Job]:
        async def on_a_loop() -> list[Job]:
            prepared = SimpleNamespace(length=None) if ready else None
            model = SimpleNamespace(name="tiny")
            return [Job(model, options, None, None, prepared=prepared) for _ in range(count)]

        return asyncio.run(on_a_loop())

    return jobs


@pytest.fixture
def line():
    return Line(Settings(workers=1, largest_batch=2, searches=6))


def take(line, decoded=()):
    batch = line.next_batch(decoded)
    line.take(batch)
    return batch


def test_a_single_vector_goes_ahead_of_most_of_an_earlier_batch(line, make):
    batch, (single,) = make(10), make(1)
    line.join(batch)
    assert take(line) == batch[:2]
    line.join([single])
    assert single in take(line)


def test_a_batch_is_not_overtaken_for_ever(line, make):
    batch = make(4)
    line.join(batch)
    taken = []
    for _ in range(8):
        line.join(make(2))  # as many as one turn can take
        taken += take(line)
    assert set(batch) <= set(taken)


def test_vectors_are_made_first_but_do_not_keep_decoding_waiting(line, make):
    (waiting,) = make(1)
    line.join([waiting])
    taken = []
    for _ in range(9):
        line.join(make(1, None, ready=False))  # somebody embeds one text after the other
        taken.append(take(line))
    assert 1 <= taken.index([waiting]) < 8


def test_vectors_are_made_for_as_long_as_nothing_can_be_decoded(line, make):
    texts = make(20, None, ready=False)
    line.join(texts)
    taken = [job for _ in range(10) for job in take(line)]
    assert taken == texts


def test_a_request_does_not_begin_more_batches_than_there_are_workers(line, make):
    large, (single,) = make(6), make(1, DecodingConfig(seed=1))
    line.join(large)
    first = take(line)
    assert line.next_batch([first]) == []
    line.join([single])
    assert line.next_batch([first]) == [single]
    assert line.next_batch([]) != []


def test_there_is_room_for_a_few_searches_and_one_request_cannot_take_it_all(make):
    line = Line(Settings(workers=4, searches=6))
    large, others = make(9, GUIDED), [make(1, GUIDED) for _ in range(3)]
    line.join(large)
    first = take(line)
    assert first == large[:4]
    assert line.next_batch([first]) == []
    for other in others:
        line.join(other)
    assert line.next_batch([first]) == [others[0][0], others[1][0]]


def test_searches_and_other_vectors_do_not_wait_for_one_another(line, make):
    searches, blind = make(3, GUIDED), make(1)
    line.join(searches)
    line.join(blind)
    assert line.before(blind[0]) == []
    assert line.before(searches[2]) == searches[:2]
    line.leave(blind)
    assert line.before(blind[0]) is None
