"""What chains of defences do to vectors, and what undoes them."""

import stat

import numpy as np
import pytest

from unembed.defences import TRANSFORMS, Chain, parse_chain, read_chain, refuse_useless, write_chain
from unembed.defences.key import identity_of
from unembed.errors import ConfigError, VectorError
from unembed.measures.vectors import cosine, normalise

EXAMPLES = {
    "noise": "noise:0.3",
    "noise-fresh": "noise-fresh:0.3",
    "laplace": "laplace:200",
    "mix": "mix:0.4",
    "int": "int8",
    "binary": "binary",
    "pq": "pq:8",
    "truncate": "truncate:24",
    "pca": "pca:24",
    "learned": "learned:24",
    "rotate": "rotate",
    "rotate-cells": "rotate-cells:4",
}


@pytest.fixture(scope="module")
def vectors():
    """Unit vectors in six groups, as the texts of a collection lie."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(6, 32))
    return normalise((centres[random.integers(6, size=400)] + 0.7 * random.normal(size=(400, 32))).astype(np.float32))


def fit(text, vectors, seed=0):
    return Chain.fit(parse_chain(text), vectors, seed=seed)


def test_there_is_an_example_of_every_transform():
    assert EXAMPLES.keys() == TRANSFORMS.keys()
    for name, text in EXAMPLES.items():
        assert TRANSFORMS[name].threat
        assert str(Chain.fit(parse_chain(text), np.eye(32), seed=0)) == text


@pytest.mark.parametrize("text", EXAMPLES.values())
def test_vectors_stay_recognisable_and_the_given_ones_are_not_changed(text, vectors):
    chain = fit(text, vectors)
    given = vectors.copy()
    defended = chain.apply(given)
    assert np.array_equal(given, vectors)
    assert defended.dtype == np.float32
    assert defended.shape == (400, chain.layout.numbers if "pq" not in text else 32)
    lifted = chain.lift(defended)
    assert lifted.shape == vectors.shape
    assert cosine(lifted, vectors).mean() > 0.7
    assert 0 < chain.bytes_per_vector <= 4 * 32


@pytest.mark.parametrize("text", EXAMPLES.values())
def test_the_same_seed_gives_the_same_vectors(text, vectors):
    assert np.array_equal(fit(text, vectors).apply(vectors), fit(text, vectors).apply(vectors))


@pytest.mark.parametrize("text", ["noise:0.3", "laplace:200", "rotate", "rotate-cells:4"])
def test_another_seed_and_no_seed_give_others(text, vectors):
    known = fit(text, vectors).apply(vectors)
    assert not np.allclose(known, fit(text, vectors, seed=1).apply(vectors), atol=1e-3)
    assert not np.allclose(fit(text, vectors, seed=None).apply(vectors), fit(text, vectors, seed=None).apply(vectors))


@pytest.mark.parametrize("text", EXAMPLES.values())
def test_a_query_finds_its_own_vector(text, vectors):
    chain = fit(text, vectors)
    scores = (normalise(chain.queries(vectors)) @ normalise(chain.apply(vectors)).T).max(1)
    assert (scores.argmax(1) == np.arange(400)).mean() > 0.5


@pytest.mark.parametrize("text", ["rotate", "rotate-cells:4", "rotate,rotate-cells:3"])
def test_the_key_gives_the_vectors_back(text, vectors):
    chain = fit(text, vectors)
    defended = chain.apply(vectors)
    assert cosine(defended, vectors).mean() < 0.5
    back = chain.undo(defended)
    assert (np.abs(back - vectors).max(1) < 1e-4).mean() > 0.99


@pytest.mark.parametrize("rounding", ["int8", "int4", "noise:0.3"])
def test_rounding_after_the_key_does_not_hide_the_cell(rounding):
    """The vectors of encoders lie in few directions; those between two cells are the hard ones."""
    random = np.random.default_rng(0)
    topics = random.normal(size=(12, 96)) * np.linspace(1, 0.1, 96)
    vectors = normalise(topics[random.integers(12, size=2000)] + random.normal(size=(2000, 96)) * np.linspace(1, 0, 96))
    chain = fit(f"rotate-cells:8,{rounding}", vectors.astype(np.float32))
    assert cosine(chain.undo(chain.apply(vectors)), vectors).min() > 0.8


def test_another_key_does_not(vectors):
    defended = fit("rotate", vectors).apply(vectors)
    assert cosine(fit("rotate", vectors, seed=1).undo(defended), vectors).mean() < 0.5


def test_what_was_lost_before_the_key_stays_lost(vectors):
    chain = fit("truncate:24,rotate,int8", vectors)
    back = chain.undo(chain.apply(vectors))
    assert back.shape == (400, 24)
    assert cosine(back, vectors[:, :24]).min() > 0.99
    assert chain.lift(chain.apply(vectors)).shape == (400, 32)


def test_a_rotation_keeps_distances(vectors):
    defended = fit("rotate", vectors).apply(vectors)
    assert np.allclose(defended @ defended.T, vectors @ vectors.T, atol=1e-5)


def test_noise_is_as_long_as_asked_for_and_the_same_for_each_release(vectors):
    chain = fit("noise:0.5", vectors)
    noise = chain.apply(vectors) - vectors
    assert np.linalg.norm(noise, axis=1).mean() == pytest.approx(0.5, rel=0.05)
    assert np.array_equal(chain.apply(vectors, release=0), chain.apply(vectors, release=1))


def test_fresh_noise_is_averaged_away_over_releases(vectors):
    chain = fit("noise-fresh:0.5", vectors)
    once = chain.apply(vectors)
    assert not np.allclose(once, chain.apply(vectors, release=1))
    mean = np.mean([chain.apply(vectors, release=release) for release in range(16)], axis=0)
    lengths = [np.linalg.norm(each - vectors, axis=1).mean() for each in (once, mean)]
    assert lengths[1] == pytest.approx(lengths[0] / 4, rel=0.1)


def test_laplace_noise_has_the_length_that_epsilon_says(vectors):
    noise = fit("laplace:64", vectors).apply(vectors) - vectors
    assert np.linalg.norm(noise, axis=1).mean() == pytest.approx(32 / 64, rel=0.05)


def test_integers_have_as_many_levels_as_bits_allow(vectors):
    chain = fit("int3", vectors)
    assert len(np.unique(chain.apply(vectors)[0])) <= 7
    codes = chain.transforms[-1].codes(chain.apply(vectors))
    assert codes.dtype == np.int8
    assert np.abs(codes).max() == 3
    assert cosine(codes.astype(np.float32), chain.apply(vectors)).min() > 0.9999


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("int8", 36), ("int4", 20), ("binary", 4), ("pq:8", 8), ("truncate:16", 64), ("truncate:16,int8", 20)),
        *(("rotate", 128), ("int8,rotate", 128), ("pca:8", 32), ("noise:1", 128)),
    ],
)
def test_storage_is_counted(text, size, vectors):
    assert fit(text, vectors).bytes_per_vector == size


def test_mixing_moves_towards_neighbours_only(vectors):
    mixed = fit("mix:1", vectors).apply(vectors)
    nearness = vectors @ vectors.T
    np.fill_diagonal(nearness, -1)
    nearest = np.argsort(-nearness[0])[:8]
    assert np.allclose(mixed[0], vectors[nearest].mean(0), atol=1e-6)
    assert np.array_equal(fit("mix:0.5", vectors).apply(vectors[:1]), vectors[:1])


def test_more_parts_of_a_quantisation_are_nearer(vectors):
    few, many = (cosine(fit(f"pq:{parts}", vectors).apply(vectors), vectors).mean() for parts in (2, 16))
    assert few < many


def test_principal_components_keep_more_than_leading_numbers(vectors):
    few, many = (
        cosine(c.lift(c.apply(vectors)), vectors).mean() for c in (fit("truncate:8", vectors), fit("pca:8", vectors))
    )
    assert few < many


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("trunkate:256", "did you mean 'truncate'"),
        ("noise", "no value"),
        ("noise:loud", "no value"),
        ("rotate:3", "takes no value"),
        ("noise:0", "longer than 0"),
        ("noise:-1", "longer than 0"),
        ("noise:nan", "longer than 0"),
        ("laplace:0", "greater than 0"),
        ("int9", "from 2 to 8"),
        ("truncate:33", "from 1 to 32"),
        ("truncate:16,truncate:20", "from 1 to 16"),
        ("pca:1.5", "whole number"),
        ("pq:inf", "whole number"),
        ("mix:1.5", "between 0 and 1"),
        ("rotate-cells:1", "from 2"),
    ],
)
def test_what_cannot_be_is_refused(text, says, vectors):
    with pytest.raises(ConfigError, match=says):
        fit(text, vectors)


def test_vectors_of_another_dimension_are_refused(vectors):
    with pytest.raises(VectorError, match="32 numbers"):
        fit("int8", vectors).apply(vectors[:, :16])


def test_a_chain_that_makes_all_vectors_equal_is_refused(vectors):
    positive = np.abs(vectors) + 0.1
    chain = fit("binary", positive)
    with pytest.raises(ConfigError, match="makes all 400 vectors equal"):
        refuse_useless(chain, positive, chain.apply(positive))
    refuse_useless(chain, positive[:1], chain.apply(positive[:1]))
    refuse_useless(fit("binary", vectors), vectors, fit("binary", vectors).apply(vectors))


def test_zeros_do_not_become_nan(vectors):
    for text in EXAMPLES.values():
        assert np.isfinite(fit(text, vectors).apply(np.zeros((3, 32)))).all()


@pytest.mark.parametrize("text", ["rotate-cells:4,int8", "pca:24,rotate", "pq:4", "noise:0.2"])
def test_a_chain_is_written_for_its_owner_only_and_read_again(text, vectors, tmp_path):
    chain = fit(text, vectors)
    write_chain(tmp_path / "key", chain)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    again = read_chain(tmp_path / "key")
    assert str(again) == text
    assert np.array_equal(again.apply(vectors), chain.apply(vectors))
    assert identity_of(again) == identity_of(chain) != identity_of(fit(text, vectors, seed=1))


def test_what_is_no_key_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no key file"):
        read_chain(tmp_path / "none")
    for content in (b"", b"hello", np.random.default_rng(0).bytes(200)):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(ConfigError, match="not a key file"):
            read_chain(tmp_path / "key")
