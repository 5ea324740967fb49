import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from unembed.canvas import CanvasVocabulary, close_canvas
from unembed.training.batches import BatchPlan, step_generator

lengths = st.lists(st.integers(1, 8), min_size=1, max_size=60).map(np.array)


@given(lengths=lengths, batch_size=st.integers(1, 9), one_length=st.booleans())
def test_an_epoch_holds_every_row_once(lengths, batch_size, one_length):
    plan = BatchPlan(lengths, batch_size, seed=3, one_length=one_length)
    for epoch in range(2):
        numbers = range(epoch * plan.per_epoch, (epoch + 1) * plan.per_epoch)
        rows = np.concatenate([plan.rows(number) for number in numbers])
        assert sorted(rows) == list(range(len(lengths)))


@given(lengths=lengths, batch_size=st.integers(1, 9))
def test_a_batch_of_exact_canvases_has_one_length(lengths, batch_size):
    plan = BatchPlan(lengths, batch_size, seed=3, one_length=True)
    for number in range(plan.per_epoch):
        rows = plan.rows(number)
        assert len(rows) <= batch_size
        assert len(set(lengths[rows])) == 1


def test_a_batch_is_a_function_of_its_number():
    lengths = np.random.default_rng(0).integers(1, 6, 100)
    forward, backward = (BatchPlan(lengths, 8, seed=1, one_length=True) for _ in range(2))
    wanted = [forward.rows(number).tolist() for number in range(40)]
    assert [backward.rows(number).tolist() for number in reversed(range(40))] == wanted[::-1]


def test_epochs_differ_in_order():
    plan = BatchPlan(np.full(64, 5), 8, seed=1, one_length=True)
    assert plan.rows(0).tolist() != plan.rows(plan.per_epoch).tolist()


def test_a_fixed_canvas_is_closed_with_an_end_where_there_is_room():
    vocabulary = CanvasVocabulary(40)
    tokens = np.array([[5, 6, vocabulary.pad, vocabulary.pad], [5, 6, 7, 8]])
    closed = close_canvas(tokens, np.array([2, 4]), vocabulary)
    assert closed.tolist() == [[5, 6, vocabulary.eos, vocabulary.pad], [5, 6, 7, 8]]
    assert tokens[0, 2] == vocabulary.pad


def test_the_randomness_of_a_step_depends_on_seed_step_and_process_only():
    draws = {
        key: torch.rand(4, generator=step_generator(*key)).tolist()
        for key in [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    }
    assert torch.rand(4, generator=step_generator(0, 1, 0)).tolist() == draws[0, 1, 0]
    assert len({tuple(values) for values in draws.values()}) == 4
