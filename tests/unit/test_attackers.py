"""What attackers make of defended vectors, with a tiny inverter that has learnt nothing: vectors are what counts."""

import numpy as np
import pytest

from unembed.adaptation import OwnTexts
from unembed.defences import Chain, parse_chain
from unembed.defences.mixing import Mixing
from unembed.defending.attackers import Attackers, Case
from unembed.defending.encoder import DefendedEncoder
from unembed.defending.known_pairs import with_pairs, with_pairs_by_cell
from unembed.defending.unmixing import unmix
from unembed.inverter import Inverter
from unembed.measures.vectors import cosine, normalise

SOMEBODY = ("king", "queen", "cat", "dog", "boy", "girl", "teacher", "doctor", "bird", "horse", "woman", "man")
DOING = ("sleeps at home", "walks in the park", "drinks cold water", "reads a good book", "runs to the sea")
TEXTS = [f"the {who} {what}." for who in SOMEBODY for what in DOING]
OWN = [f"a {who} {what} today." for who in SOMEBODY for what in DOING]


@pytest.fixture(scope="module")
def clustered():
    """Unit vectors in eight groups."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(8, 32))
    return normalise((centres[random.integers(8, size=1000)] + 0.7 * random.normal(size=(1000, 32))).astype("f4"))


def test_as_many_pairs_as_dimensions_give_a_rotation_away_and_few_do_not(clustered):
    defended = Chain.fit(parse_chain("rotate"), clustered, seed=0).apply(clustered)
    near = [
        cosine(with_pairs(defended[:p], clustered[:p])(defended[500:]), clustered[500:]).mean() for p in (4, 16, 32)
    ]
    assert near[0] < near[1] < near[2]
    assert near[0] < 0.7
    assert near[2] > 0.999


def test_cells_need_pairs_of_their_own(clustered):
    defended = Chain.fit(parse_chain("rotate-cells:8"), clustered, seed=0).apply(clustered)

    def nearness(pairs):
        undo = with_pairs_by_cell(defended[:pairs], clustered[:pairs], defended, 8, np.random.default_rng(0))
        return cosine(undo(defended[500:]), clustered[500:]).mean()

    assert nearness(32) < nearness(500) - 0.1
    assert nearness(500) > 0.9


def test_mixing_is_undone_by_whoever_has_the_whole_store(clustered):
    mixed = Mixing(0.5, {}).apply(clustered)
    assert cosine(unmix(mixed, Mixing(0.5, {})), clustered).mean() > cosine(mixed, clustered).mean() + 0.02


@pytest.fixture
def build_case(fake_encoder):
    vectors = fake_encoder.encode(TEXTS)

    def build(text):
        chain = Chain.fit(parse_chain(text), vectors, seed=0) if text else Chain((), vectors.shape[1])
        stored = chain.apply(vectors)
        return Case(chain, stored[:4], vectors[:4], stored, np.arange(4), (stored[4:], vectors[4:]))

    return build


@pytest.fixture
def attackers(tiny_checkpoint, fake_encoder):
    inverter = Inverter.from_pretrained(tiny_checkpoint)
    ids = [fake_encoder.tokenizer.encode(text, add_special_tokens=False).ids for text in OWN]
    own = OwnTexts(ids, fake_encoder.encode(OWN), "test")
    return Attackers(inverter, fake_encoder, own, guided=2, calls=20)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["naive", "trained", "guided"]),
        ("int4", ["naive", "denoised", "trained", "guided"]),
        ("truncate:12,int4", ["naive", "denoised", "trained", "guided"]),
        ("noise-fresh:0.3", ["naive", "denoised", "trained", "averaged 16", "guided"]),
        ("mix:0.3", ["naive", "denoised", "trained", "unmixed", "guided"]),
        ("rotate", ["naive", "0 pairs", "10 pairs", "16 pairs", "key known"]),
    ],
)
def test_each_chain_meets_the_attackers_it_gives_a_chance(text, names, attackers, build_case):
    attempts = list(attackers.run(build_case(text)))
    assert [attempt.name for attempt in attempts] == names
    for attempt in attempts:
        if attempt.name == "0 pairs":
            assert "needs at least" in attempt.problem
        else:
            assert len(attempt.ids) == len(attempt.texts) == (2 if attempt.kind == "guided" else 4), attempt.problem


def test_whoever_has_the_key_reads_what_was_there_before(attackers, build_case):
    plain = next(iter(attackers.run(build_case(""))))
    attempts = {attempt.name: attempt for attempt in attackers.run(build_case("rotate"))}
    assert attempts["key known"].ids == plain.ids
    assert attempts["16 pairs"].ids == plain.ids
    assert attempts["naive"].ids != plain.ids


def test_only_the_attackers_asked_for_are_tried(tiny_checkpoint, attackers, build_case):
    few = Attackers(attackers.inverter, None, attackers.own, kinds=("naive", "guided"))
    assert [attempt.name for attempt in few.run(build_case("int8"))] == ["naive"]


def test_the_encoder_of_a_search_gives_what_the_store_would_hold(fake_encoder, build_case):
    chain = build_case("truncate:8,int4").chain
    defended = DefendedEncoder(fake_encoder, chain, fake_encoder.description, chain.lift)
    assert np.allclose(defended.encode(TEXTS[:3]), chain.apply(fake_encoder.encode(TEXTS[:3])))
    noisy = build_case("noise:0.5,int8").chain
    assert np.allclose(
        DefendedEncoder(fake_encoder, noisy, fake_encoder.description, noisy.lift).encode(TEXTS[:3]),
        build_case("int8").chain.apply(fake_encoder.encode(TEXTS[:3])),
    )
    assert not defended.supports_substitutions
    assert defended.quicker() is defended
