"""From text to a canvas: what is stored says exactly what was embedded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from unembed.canvas import CanvasVocabulary, fit_to_canvas, tokenizer_hash

# Words it knows, words it must spell, and whatever a keyboard, a phone or another script gives.
PIECES = st.one_of(
    st.sampled_from(["the cat", "Dogs", "xylophone", "don't", "[MASK]", "[SEP]", "[UNK]", "##ing", "3.14", "e.g."]),
    st.text(max_size=8),
    st.sampled_from(["🙂", "👩‍👩‍👧", "Ünïcödé", "naïve", "東京", "\u200b", "\ufffd", "\u00a0", "İ", "ﬁ", "…", "½"]),
)
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from([" ", "", "\t", "-"])), max_size=12).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)


@pytest.fixture(scope="module")
def byte_tokenizer():
    """A byte-level BPE without merges: most characters take several tokens, and a cut can fall between them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(["</s>", *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>"])
    return tokenizer


def read(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@given(texts=st.lists(TEXTS, max_size=6), length=st.integers(1, 12))
def test_reading_a_stored_text_gives_the_stored_ids(tiny_tokenizer, texts, length):
    ids, said, rows = fit_to_canvas(texts, tiny_tokenizer, length)
    special = set(CanvasVocabulary.of(tiny_tokenizer).special)
    assert [read(tiny_tokenizer, text) for text in said] == ids
    assert all(1 <= len(row) <= length and not special & set(row) for row in ids)
    assert rows == sorted(set(rows))
    assert all(0 <= row < len(texts) for row in rows)


@given(texts=st.lists(TEXTS, max_size=6), length=st.integers(1, 12))
def test_it_also_does_when_a_character_takes_several_tokens(byte_tokenizer, texts, length):
    ids, said, _ = fit_to_canvas(texts, byte_tokenizer, length)
    assert [read(byte_tokenizer, text) for text in said] == ids
    assert all(1 <= len(row) <= length and 0 not in row for row in ids)


@given(text=TEXTS, length=st.integers(1, 12))
def test_a_text_is_fitted_alike_alone_and_in_company(tiny_tokenizer, text, length):
    alone = fit_to_canvas([text], tiny_tokenizer, length)
    together = fit_to_canvas(["the cat sleeps", text, ""], tiny_tokenizer, length)
    assert together[0][1:] == alone[0]
    assert together[1][1:] == alone[1]


def test_a_plain_text_keeps_its_words(tiny_tokenizer):
    ids, said, rows = fit_to_canvas(["The cat, and the DOG."], tiny_tokenizer, 12)
    assert [tiny_tokenizer.id_to_token(i) for i in ids[0]] == ["the", "cat", ",", "and", "the", "dog", "."]
    assert said == ["the cat, and the dog."]
    assert rows == [0]


def test_a_long_text_is_cut_to_the_canvas(tiny_tokenizer):
    ids, said, _ = fit_to_canvas(["the cat sleeps on the warm mat"], tiny_tokenizer, 4)
    assert said == ["the cat sleeps on"]
    assert len(ids[0]) == 4


def test_a_cut_never_falls_within_a_character(byte_tokenizer):
    _, said, rows = fit_to_canvas(["ab東京", "🙂🙂"], byte_tokenizer, 6)
    assert said == ["ab東", "🙂"]
    assert rows == [0, 1]


def test_texts_without_a_token_are_left_out_and_the_others_keep_their_number(tiny_tokenizer):
    texts = ["", "the cat", "   ", "[MASK] [SEP]", "東京", "a dog"]
    _, said, rows = fit_to_canvas(texts, tiny_tokenizer, 12)
    assert said == ["the cat", "a dog"]
    assert rows == [1, 5]
    assert fit_to_canvas([], tiny_tokenizer, 12) == ([], [], [])


@pytest.mark.parametrize("typed", ["[MASK]", "[SEP]", "[CLS]", "[PAD]", "[UNK]", "東"])
def test_a_special_token_typed_in_a_text_is_never_stored(tiny_tokenizer, typed):
    ids, said, _ = fit_to_canvas([f"the {typed} cat"], tiny_tokenizer, 12)
    assert said == ["the cat"]
    assert ids == [read(tiny_tokenizer, "the cat")]


def test_spaces_around_a_text_are_no_part_of_it(byte_tokenizer):
    assert fit_to_canvas(["  a b \n"], byte_tokenizer, 12)[1] == ["a b"]


def test_half_a_character_does_not_stop_the_others(tiny_tokenizer):
    _, said, rows = fit_to_canvas(["the \ud83d cat", "a dog"], tiny_tokenizer, 12)
    assert said == ["the? cat", "a dog"]
    assert rows == [0, 1]


def test_a_text_that_reads_back_longer_than_its_canvas_is_not_taken_for_settled(tiny_tokenizer):
    """The first three ids agree, but the encoder would read a fourth that the canvas does not hold."""
    plain = tiny_tokenizer.to_str()
    tokenizer = Tokenizer.from_str(plain)
    tokenizer.decoder = decoders.Sequence([decoders.WordPiece(), decoders.Replace("!", "! the")])
    _, said, _ = fit_to_canvas(["a cat!"], tokenizer, 3)
    assert all(len(read(tokenizer, text)) <= 3 for text in said)


class TestCanvasVocabulary:
    def test_its_own_ids_lie_behind_all_of_the_tokenizer(self, tiny_tokenizer):
        vocabulary = CanvasVocabulary.of(tiny_tokenizer)
        theirs = set(tiny_tokenizer.get_vocab().values())
        assert theirs.isdisjoint({vocabulary.eos, vocabulary.pad, vocabulary.mask})
        assert vocabulary.size == len(theirs)
        assert (vocabulary.eos, vocabulary.pad, vocabulary.mask) == tuple(range(len(theirs), len(theirs) + 3))
        assert vocabulary.total == len(theirs) + 3

    def test_they_do_even_when_the_tokenizer_has_holes(self):
        tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "cat": 1, "dog": 9}, unk_token="[UNK]"))
        vocabulary = CanvasVocabulary.of(tokenizer)
        assert {vocabulary.eos, vocabulary.pad, vocabulary.mask}.isdisjoint(tokenizer.get_vocab().values())
        assert vocabulary.size == 10

    def test_a_text_ends_at_the_first_end_token_and_holds_no_id_of_ours(self):
        vocabulary = CanvasVocabulary(40)
        eos, pad, mask = vocabulary.eos, vocabulary.pad, vocabulary.mask
        assert vocabulary.text_ids([5, 6, eos, 7, eos, pad]) == [5, 6]
        assert vocabulary.text_ids([5, mask, 6, pad]) == [5, 6]
        assert vocabulary.text_ids([eos, 5]) == []

    def test_special_tokens_are_the_tokenizers_own(self, tiny_tokenizer):
        assert CanvasVocabulary.of(tiny_tokenizer).special == (0, 1, 2, 3, 4)

    def test_the_unknown_token_is_special_even_when_nobody_declared_it(self):
        tokenizer = Tokenizer(models.WordPiece({"cat": 0, "[UNK]": 1}, unk_token="[UNK]"))
        assert CanvasVocabulary.of(tokenizer).special == (1,)

    def test_a_tokenizer_without_an_unknown_token_has_none(self, byte_tokenizer):
        assert CanvasVocabulary.of(byte_tokenizer).special == (0,)


def test_the_hash_is_of_what_a_tokenizer_reads_not_of_how_it_pads(tiny_tokenizer):
    other = Tokenizer.from_str(tiny_tokenizer.to_str())
    other.enable_padding()
    other.enable_truncation(8)
    assert tokenizer_hash(other) == tokenizer_hash(tiny_tokenizer)
    other.add_tokens(["zebra"])
    assert tokenizer_hash(other) != tokenizer_hash(tiny_tokenizer)
