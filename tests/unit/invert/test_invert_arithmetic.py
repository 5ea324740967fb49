"""Sums, differences and means of vectors: what is inverted is what they say, and what does not fit is refused."""

import numpy as np
import pytest


@pytest.fixture
def save(tmp_path):
    def save(name, vectors):
        np.save(tmp_path / f"{name}.npy", np.asarray(vectors, dtype=np.float32))
        return tmp_path / f"{name}.npy"

    return save


def texts(found):
    return [record["text"] for record in found]


def test_one_vector_is_taken_from_every_row(records, save, vectors):
    expected = texts(records(save("difference", vectors[:4] - vectors[4])))
    assert texts(records(save("a", 3 * vectors[:4]), "--minus", save("b", vectors[4:]))) == expected


def test_as_many_vectors_are_added_row_by_row(records, save, vectors):
    other = vectors[::-1]
    found = records(save("a", vectors), "--plus", save("b", 0.5 * other))
    assert texts(found) == texts(records(save("sum", vectors + other)))
    assert [record["row"] for record in found] == [0, 1, 2, 3, 4]


def test_several_are_added_and_taken_away(records, save, vectors):
    a, b, c = vectors[:1], vectors[1:2], vectors[2:3]
    found = records(save("a", a), "--plus", save("b", b), "--minus", save("c", c))
    assert texts(found) == texts(records(save("all", a + b - c)))


def test_the_mean_is_one_text(records, save, vectors):
    (found,) = records(save("a", vectors), "--mean")
    assert found["id"] == "mean of 5"
    assert found["text"] == records(save("mean", vectors.mean(0)))[0]["text"]


def test_texts_can_take_part(records, fake_encoder, save):
    a, b = fake_encoder.encode(["the king sleeps.", "the cat"])
    (found,) = records("the king sleeps.", "--minus", "the cat")
    assert found["text"] == records(save("difference", a - b))[0]["text"]
    assert found["id"] == "the king sleeps."
    assert "original" not in found


@pytest.mark.parametrize(
    ("rows", "dim", "problem"),
    [
        (3, 16, "holds 3 vectors, but there are at least 5"),
        (7, 16, "holds 7 vectors, but there are 5"),
        (1, 8, "holds vectors of 8 numbers; the others have 16"),
        (0, 16, "holds no vectors"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(refused, save, vectors, rows, dim, problem):
    said = refused(save("a", vectors), "--minus", save("b", np.ones((rows, dim))))
    assert problem in said
    assert "Give" in said


def test_vectors_that_cancel_out_are_refused(refused, save, vectors):
    assert "Nothing is left of row 2" in refused(save("a", vectors), "--minus", save("b", vectors[2:3]))


def test_a_sum_is_not_continued(refused, save, vectors, tmp_path):
    assert "cannot be continued" in refused(save("a", vectors), "--mean", "--output", tmp_path / "x", "--resume")
