"""Which texts are seen twice, which validate, and how sources are mixed."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unembed.corpus import Deduplicator, Source, mix, parse_source, split
from unembed.corpus.split import position
from unembed.errors import CorpusError

MANY = [f"text number {number}" for number in range(5000)]


def validating(texts, **options):
    return {text for text, validates in split(texts, **options) if validates}


def test_a_text_is_new_once_whatever_its_case():
    seen = Deduplicator()
    assert [seen.is_new(text) for text in ("Straße", "other", "STRASSE", "straße", "Other ")] == [
        True,
        True,
        False,
        False,
        True,
    ]


@given(st.permutations(MANY[:30]), st.integers())
def test_the_split_does_not_depend_on_the_order(shuffled, seed):
    options = {"validation_share": 0.2, "seed": seed}
    assert validating(shuffled, **options) == validating(MANY[:30], **options)


@given(st.text(max_size=20), st.integers())
def test_a_position_lies_between_0_and_1_and_ignores_case(text, seed):
    assert 0 <= position(text, seed=seed) < 1
    assert position(text.casefold(), seed=seed) == position(text, seed=seed)


def test_a_text_stays_on_its_side_when_the_corpus_grows():
    assert validating(MANY[:2500]) == validating(MANY) & set(MANY[:2500])


def test_a_larger_share_only_adds_to_validation():
    assert validating(MANY, validation_share=0.01) < validating(MANY, validation_share=0.02)


def test_the_share_is_about_what_was_asked_for_and_another_seed_chooses_others():
    first, second = validating(MANY, validation_share=0.1), validating(MANY, validation_share=0.1, seed=1)
    assert 400 < len(first) < 600
    assert first != second


def test_splitting_keeps_every_text_and_the_order_of_all_but_those_held_back():
    texts = [text for text, _ in split(MANY)]
    assert sorted(texts) == sorted(MANY)
    smallest_so_far = list(itertools.accumulate(map(position, MANY), min))
    held_back = {text for text, smallest in zip(MANY, smallest_so_far, strict=True) if position(text) == smallest}
    assert len(held_back) < 20
    assert [text for text in texts if text not in held_back] == [text for text in MANY if text not in held_back]


def test_a_tiny_corpus_has_one_text_to_validate_on_whatever_the_order():
    sides = [validating(texts, validation_share=1e-9) for texts in itertools.permutations(MANY[:4])]
    assert all(side == sides[0] and len(side) == 1 for side in sides)


def test_a_single_text_trains_and_a_share_of_zero_leaves_nothing_to_validate():
    assert list(split(["alone"], validation_share=0.99)) == [("alone", False)]
    assert validating(MANY[:10], validation_share=0.0) == set()
    assert list(split([])) == []


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ("a.txt", Source("a.txt", 1.0)),
        ("a.txt@2.5", Source("a.txt", 2.5)),
        ("hf:allenai/c4:fr@3", Source("hf:allenai/c4:fr", 3.0)),
        ("me@home.txt", Source("me@home.txt", 1.0)),
        ("me@home.txt@2", Source("me@home.txt", 2.0)),
    ],
)
def test_a_source_is_a_location_and_perhaps_a_weight(written, source):
    assert parse_source(written) == source


def test_a_file_whose_name_looks_like_a_weight_is_a_file(tmp_path):
    path = tmp_path / "version@2"
    path.touch()
    assert parse_source(path) == Source(str(path))


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "two", ""])
def test_a_weight_that_is_no_positive_number_is_refused(tmp_path, weight):
    path = tmp_path / "a.txt"
    path.touch()
    with pytest.raises(CorpusError, match="is not a weight for") as caught:
        parse_source(f"{path}@{weight}")
    assert f"{path}@2" in caught.value.remedy


@given(st.lists(st.tuples(st.lists(st.text(max_size=3), max_size=8), st.floats(0.1, 10)), max_size=4), st.integers())
def test_mixing_takes_every_text_once_and_keeps_the_order_within_a_source(sources, seed):
    streams = [([(index, text) for text in texts], weight) for index, (texts, weight) in enumerate(sources)]
    mixed = list(mix(streams, seed=seed))
    for index, (texts, _) in enumerate(sources):
        assert [text for origin, text in mixed if origin == index] == texts


def test_the_first_texts_of_a_mix_hold_the_proportions_of_the_weights():
    mixed = mix([(["a"] * 5000, 3.0), (["b"] * 5000, 1.0)], seed=0)
    counts = Counter(itertools.islice(mixed, 4000))
    assert 2850 < counts["a"] < 3150


def test_the_same_seed_gives_the_same_mix_and_another_seed_another():
    def mixed(seed):
        return list(mix([("a" * 50, 1.0), ("b" * 50, 1.0)], seed=seed))

    assert mixed(0) == mixed(0) != mixed(1)
