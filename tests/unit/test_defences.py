"""What the defences do to vectors."""

import numpy as np
import pytest
from pydantic import ValidationError

from unembed.defences import DEFENCES, Defence, apply, neighbours_kept, words_leaked

KINDS = [kind for kind in DEFENCES if kind != "none"]


@pytest.fixture
def vectors():
    random = np.random.default_rng(0).normal(size=(8, 48)).astype(np.float32)
    return random / np.linalg.norm(random, axis=1, keepdims=True)


def cosines(one, other):
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


@pytest.mark.parametrize("kind", DEFENCES)
def test_a_defended_vector_has_the_same_shape_and_type_and_the_original_stays(vectors, kind):
    before = vectors.copy()
    defended = apply(vectors, Defence(kind=kind, strength=1.0))
    assert defended.shape == vectors.shape
    assert defended.dtype == np.float32
    assert np.isfinite(defended).all()
    assert np.array_equal(vectors, before)


@pytest.mark.parametrize("kind", KINDS)
def test_more_strength_moves_a_vector_further_away(vectors, kind):
    weak, middle, strong = (cosines(vectors, apply(vectors, Defence(kind=kind, strength=s))) for s in (0.0, 0.5, 1.0))
    assert (weak > 0.999).all()
    assert weak.mean() > middle.mean() > strong.mean()


@pytest.mark.parametrize("kind", DEFENCES)
def test_the_same_seed_gives_the_same_vectors_however_they_are_batched(vectors, kind):
    defence = Defence(kind=kind, strength=0.7, seed=3)
    one_by_one = np.concatenate([apply(row[None], defence) for row in vectors])
    assert np.allclose(one_by_one, apply(vectors, defence), atol=1e-6)


@pytest.mark.parametrize("kind", ["noise", "binary", "rotation"])
def test_another_seed_gives_other_vectors(vectors, kind):
    one, other = (apply(vectors, Defence(kind=kind, strength=0.5, seed=seed)) for seed in (0, 1))
    assert not np.allclose(one, other, atol=1e-3)


def test_no_defence_changes_nothing(vectors):
    assert np.array_equal(apply(vectors, Defence(strength=1.0)), vectors)


def test_noise_has_the_length_that_its_parameter_says(vectors):
    many = np.repeat(vectors, 50, axis=0) * np.linspace(0.5, 2.0, 400, dtype=np.float32)[:, None]
    noise = apply(many, Defence(kind="noise", strength=0.5)) - many
    ratio = np.linalg.norm(noise, axis=1) / np.linalg.norm(many, axis=1)
    assert ratio.mean() == pytest.approx(DEFENCES["noise"].parameter(0.5), rel=0.05)


@pytest.mark.parametrize(("strength", "levels"), [(0.0, 255), (0.5, 31), (1.0, 3)])
def test_integers_have_as_many_levels_as_their_bits_say(strength, levels):
    vector = np.linspace(-1.0, 1.0, 5000, dtype=np.float32)[None]
    assert len(np.unique(apply(vector, Defence(kind="int8", strength=strength)))) == levels


def test_full_strength_keeps_nothing_but_signs(vectors):
    defended = apply(vectors, Defence(kind="binary", strength=1.0))
    assert np.array_equal(np.sign(defended), np.where(vectors < 0, -1.0, 1.0))
    assert all(len(np.unique(np.abs(row))) == 1 for row in defended)


def test_truncation_zeroes_the_tail_and_keeps_the_head(vectors):
    defended = apply(vectors, Defence(kind="truncation", strength=0.5))
    kept = round((1 - DEFENCES["truncation"].parameter(0.5)) * 48)
    assert np.array_equal(defended[:, :kept], vectors[:, :kept])
    assert not defended[:, kept:].any()


def test_truncation_keeps_at_least_one_number():
    assert apply(np.ones((1, 4)), Defence(kind="truncation", strength=1.0))[0, 0] == 1.0


@pytest.mark.parametrize("dimension", [48, 47])
def test_a_rotation_turns_by_its_angle_and_keeps_all_distances(dimension):
    vectors = np.random.default_rng(1).normal(size=(6, dimension)).astype(np.float32)
    turned = apply(vectors, Defence(kind="rotation", strength=0.5))
    assert np.allclose(turned @ turned.T, vectors @ vectors.T, atol=1e-3)
    if dimension % 2 == 0:
        assert np.allclose(cosines(vectors, turned), np.cos(np.radians(45.0)), atol=1e-4)


def test_a_zero_vector_is_no_trouble(vectors):
    for kind in DEFENCES:
        assert np.isfinite(apply(np.zeros((1, 8)), Defence(kind=kind, strength=1.0))).all()


@pytest.mark.parametrize("wrong", [{"kind": "hope"}, {"strength": 1.5}, {"strength": float("nan")}, {"seed": -1}])
def test_what_is_no_defence_is_refused(wrong):
    with pytest.raises(ValidationError):
        Defence(**wrong)


@pytest.mark.parametrize("kind", DEFENCES)
def test_what_a_search_keeps_is_known_from_the_weakest_to_the_strongest(kind):
    shares = neighbours_kept()[kind]
    assert len(shares) == 11
    assert shares == sorted(shares, reverse=True)
    assert 0.9 < shares[0] <= 1.0
    assert shares[-1] == 1.0 if kind in ("none", "rotation") else shares[-1] < 0.8


@pytest.mark.parametrize("kind", DEFENCES)
def test_what_attackers_read_is_known_and_who_adapts_reads_no_less_in_all(kind):
    leakage = words_leaked()[kind]
    assert len(leakage.naive) == len(leakage.adaptive) == 6
    assert all(0.0 <= share <= 1.0 for share in (*leakage.naive, *leakage.adaptive))
    assert sum(leakage.adaptive) >= sum(leakage.naive) - 0.3
    if kind not in ("none", "rotation"):
        assert leakage.adaptive[-1] < leakage.adaptive[0]
    if kind == "rotation":
        assert leakage.naive[-1] < 0.2 < leakage.adaptive[-1], "known pairs undo it"
