from functools import partial

import numpy as np
import pytest

from unembed.alignment import align_unpaired, unpaired
from unembed.alignment.anchors import first_map, match
from unembed.errors import AlignmentError, VectorError
from unembed.measures.vectors import normalise

CLUSTERS, LATENT, WIDE = 40, 32, 48


def topics(rows, seed, *, world=0):
    """Draw vectors of a world of topics: some near to one another, some common, some rare."""
    shape = np.random.default_rng(world)
    families = shape.normal(size=(8, LATENT))
    centres = families[shape.integers(8, size=CLUSTERS)] + 0.7 * shape.normal(size=(CLUSTERS, LATENT))
    shares = shape.dirichlet(np.full(CLUSTERS, 2.0))
    draw = np.random.default_rng(seed)
    return centres[draw.choice(CLUSTERS, rows, p=shares)] + 0.5 * draw.normal(size=(rows, LATENT))


def other_encoder(latent, seed=5):
    """See the same topics in another space: turned, shifted, of another dimension and scale, with noise."""
    turn = np.linalg.qr(np.random.default_rng(7).normal(size=(WIDE, WIDE)))[0][:LATENT]
    noise = np.random.default_rng(seed).normal(size=(len(latent), WIDE))
    return (latent @ turn + 0.15 * noise) * 3 + 1


def cosines(left, right):
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.fixture(scope="module")
def spaces():
    return normalise(other_encoder(topics(3000, seed=1))), normalise(topics(3000, seed=2))


@pytest.fixture(scope="module")
def alignment(spaces):
    return align_unpaired(*spaces, seed=0)


def test_vectors_land_where_our_encoder_would_have_put_them(alignment):
    truth = topics(500, seed=3)
    mapped = alignment.there.map_array(normalise(other_encoder(truth, seed=4)))
    assert mapped.shape == (500, LATENT)
    assert cosines(mapped, truth).mean() > 0.9
    assert cosines(mapped, np.roll(truth, 1, axis=0)).mean() < 0.5


def test_the_way_back_leads_to_where_a_vector_came_from(alignment, spaces):
    there = alignment.there.map_array(spaces[0][:500])
    again = alignment.back.map_array(there)
    mean = spaces[0].mean(0)
    assert cosines(again - mean, spaces[0][:500] - mean).mean() > 0.8


def test_it_says_how_far_its_two_estimates_agree(alignment):
    assert alignment.iterations == unpaired._ITERATIONS
    assert 0.9 < alignment.agreement <= 1
    assert 0 < alignment.mutual_share <= 1


def test_what_it_maps_has_unit_norm(alignment, spaces):
    assert np.linalg.norm(alignment.there.map_array(spaces[0][:9]), axis=1) == pytest.approx(1, abs=1e-5)


@pytest.fixture
def hasty(monkeypatch):
    """Let an alignment make few attempts, each of them short: too few to find a map, enough to see what is done."""
    monkeypatch.setattr(unpaired, "_STARTS", 1)
    monkeypatch.setattr(unpaired, "first_map", partial(first_map, clusterings=3))


def test_the_same_seed_gives_the_same_map_and_progress_is_told_of_every_round(hasty, spaces):
    told = []
    options = {"seed": 3, "minimum_agreement": -1.0}
    once = align_unpaired(*spaces, progress=lambda label, done, total: told.append(done), **options)
    again = align_unpaired(*spaces, **options)
    assert np.array_equal(again.there.matrix, once.there.matrix)
    assert again.agreement == once.agreement
    rounds = unpaired._START.rounds + unpaired._CLIMB.rounds + unpaired._SETTLE.rounds
    assert sum(told) == 2 * rounds + unpaired._FINISH.rounds + unpaired._TURNS


def test_it_refuses_spaces_that_have_nothing_in_common(hasty, spaces):
    with pytest.raises(AlignmentError, match="two independent estimates agree to"):
        align_unpaired(spaces[0], topics(3000, seed=2, world=1))


def test_it_refuses_vectors_without_structure(hasty):
    noise = np.random.default_rng(0).normal(size=(2, 3000, LATENT))
    with pytest.raises(AlignmentError, match="deserves trust"):
        align_unpaired(noise[0], noise[1])


def test_it_refuses_too_few_vectors(spaces):
    with pytest.raises(VectorError, match="The target holds 1,500 different vectors"):
        align_unpaired(spaces[0], spaces[1][:1500])


def test_repetitions_do_not_count_as_vectors(spaces):
    with pytest.raises(VectorError, match=r"The source holds 1,000 different vectors \(3,000 in all\)"):
        align_unpaired(np.tile(spaces[0][:1000], (3, 1)), spaces[1])


def test_it_refuses_vectors_that_are_not_finite(spaces):
    broken = spaces[0].copy()
    broken[[3, 5], 0] = np.nan, np.inf
    with pytest.raises(VectorError, match="2 of the 3,000 source vectors hold NaN or infinity"):
        align_unpaired(broken, spaces[1])


def test_it_refuses_arrays_that_are_not_rows_of_vectors(spaces):
    with pytest.raises(VectorError, match=r"shape \(48,\)"):
        align_unpaired(spaces[0][0], spaces[1])


def test_clusters_are_matched_by_their_similarities():
    generator = np.random.default_rng(0)
    points = generator.normal(size=(16, 5))
    left = points @ points.T
    hidden = generator.permutation(16)
    found = match(left, left[hidden][:, hidden], generator)
    assert hidden[found].tolist() == list(range(16))
