"""Reading a store: two long arrays, however many shards they lie in."""

import pickle
import sys

import numpy as np
import pytest

from unembed.canvas import fit_to_canvas
from unembed.errors import StoreError
from unembed.store import Manifest, Store, embed_texts, reader


@pytest.fixture
def texts(tiny_tokenizer):
    words = ["cat", "dog", "bird", "horse", "king", "queen", "tree", "book", "song", "house"]
    return [f"the {' and the '.join(words[start : start + count])}" for start in range(8) for count in (1, 2, 3)]


@pytest.fixture
def store(tmp_path, fake_encoder, texts):
    embed_texts(lambda: iter(texts), tmp_path / "store", fake_encoder, canvas_length=12, shard_lines=5)
    return Store(tmp_path / "store")


def test_what_was_written_is_what_is_read(store, texts, fake_encoder, tiny_tokenizer):
    rows = np.arange(len(texts))
    ids, said, _ = fit_to_canvas(texts, tiny_tokenizer, 12)
    tokens, vectors = store.tokens(rows), store.embeddings(rows)
    assert len(store) == len(texts)
    assert (tokens.shape, tokens.dtype) == ((len(texts), 12), np.int64)
    assert (vectors.shape, vectors.dtype) == ((len(texts), 16), np.float32)
    for row, expected in enumerate(ids):
        assert tokens[row, : len(expected)].tolist() == expected
        assert (tokens[row, len(expected) :] == store.manifest.vocabulary.pad).all()
    np.testing.assert_allclose(vectors, fake_encoder.encode(said), atol=1e-3)


def test_lengths_count_the_tokens_of_each_text(store, texts, tiny_tokenizer):
    assert store.lengths.tolist() == [len(ids) for ids in fit_to_canvas(texts, tiny_tokenizer, 12)[0]]
    assert len(set(store.lengths.tolist())) == 3


def test_rows_are_read_in_any_order_from_any_shard_and_as_often_as_asked(store):
    every = np.arange(len(store))
    tokens, vectors = store.tokens(every), store.embeddings(every)
    rows = np.random.default_rng(0).integers(0, len(store), 200)
    np.testing.assert_array_equal(store.tokens(rows), tokens[rows])
    np.testing.assert_array_equal(store.embeddings(rows), vectors[rows])
    assert store.tokens(np.array([], dtype=np.int64)).shape == (0, 12)
    assert store.embeddings(np.array([], dtype=np.int64)).shape == (0, 16)


@pytest.mark.parametrize("row", [-1, 24, 1000])
def test_a_row_that_is_not_there_is_an_error(store, row):
    with pytest.raises(IndexError, match="0 to 23"):
        store.tokens(np.array([0, row]))


def test_the_vocabulary_of_the_store_is_that_of_its_tokenizer(store, tiny_tokenizer):
    assert store.tokenizer().to_str() == tiny_tokenizer.to_str()
    assert store.manifest.vocabulary.size == tiny_tokenizer.get_vocab_size()
    assert store.manifest.special_ids == (0, 1, 2, 3, 4)


def test_a_store_of_many_shards_does_not_hold_many_files_open(store, monkeypatch):
    every = np.arange(len(store))
    tokens, vectors = store.tokens(every), store.embeddings(every)
    monkeypatch.setattr(reader, "_most_arrays", lambda: 3)
    frugal = Store(store.folder, verify=True)
    rows = np.random.default_rng(1).permutation(len(store))
    np.testing.assert_array_equal(frugal.tokens(rows), tokens[rows])
    np.testing.assert_array_equal(frugal.embeddings(rows), vectors[rows])
    assert len(frugal._arrays) == 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_NOFILE and /proc")
def test_more_shards_than_files_may_be_open_can_be_read(tmp_path, fake_encoder, texts):
    import resource

    embed_texts(lambda: iter(texts * 5), tmp_path / "store", fake_encoder, canvas_length=12, shard_lines=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (230, hard))
    try:
        store = Store(tmp_path / "store", verify=True)
        assert len(store.manifest.shards) == 120  # two files each
        assert store.embeddings(np.arange(120)).shape == (120, 16)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_store_goes_to_another_process_without_its_data(store):
    rows = np.arange(len(store))
    expected = store.tokens(rows)
    packed = pickle.dumps(store)
    np.testing.assert_array_equal(pickle.loads(packed).tokens(rows), expected)
    assert store.embeddings(rows).tobytes() not in packed
    assert not pickle.loads(packed)._arrays


def test_an_unfinished_store_gives_the_shards_that_are_finished(tmp_path, fake_encoder, texts):
    def stop(shard):
        if shard.number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_texts(
            lambda: iter(texts), tmp_path / "half", fake_encoder, canvas_length=12, shard_lines=5, on_shard=stop
        )
    half = Store(tmp_path / "half", verify=True)
    assert len(half) == 10
    assert not half.manifest.complete


def test_no_store_at_all_is_an_error_with_the_command_to_make_one(tmp_path):
    with pytest.raises(StoreError, match="no store") as caught:
        Store(tmp_path / "nowhere")
    assert caught.value.remedy == f"Make one: unembed embed FILE.txt --output {tmp_path / 'nowhere'}"
    with pytest.raises(StoreError, match="no store") as caught:
        Store(tmp_path / "nowhere" / "train")
    assert f"unembed embed CORPUS --output {tmp_path / 'nowhere'}" in caught.value.remedy


def test_a_store_that_has_only_begun_is_an_error(tmp_path, fake_encoder, texts, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fake_encoder, "encode", fail)
    with pytest.raises(KeyboardInterrupt):
        embed_texts(lambda: iter(texts), tmp_path / "begun", fake_encoder)
    with pytest.raises(StoreError, match="no finished shard") as caught:
        Store(tmp_path / "begun")
    assert "again" in caught.value.remedy


def test_any_damage_to_a_header_is_noticed_without_reading_the_rest(store):
    """Whatever byte of the first 128 is flipped: the array is refused, or it is the same array."""
    rows = np.arange(5)
    expected = store.embeddings(rows)
    path = store.folder / "embeddings-00000.npy"
    intact = path.read_bytes()
    refused = 0
    for place in range(128):
        for bit in (0x01, 0x40):
            damaged = bytearray(intact)
            damaged[place] ^= bit
            path.write_bytes(damaged)
            try:
                read = Store(store.folder).embeddings(rows)
            except StoreError as error:
                refused += "embeddings-00000.npy" in error.problem and bool(error.remedy)
            else:
                np.testing.assert_array_equal(read, expected)
    assert refused > 60


def test_a_manifest_survives_the_way_to_disk_and_back(store, tmp_path):
    store.manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == store.manifest
    assert store.manifest.differences(Manifest.load(tmp_path)) == []


def test_the_tiny_store_of_the_other_tests_is_what_it_says(tiny_store):
    assert len(Store(tiny_store / "train", verify=True)) == 48
    assert len(Store(tiny_store / "validation", verify=True)) == 12
    assert len(Store(tiny_store / "train").manifest.shards) == 3
    assert Store(tiny_store / "train").manifest.canvas_length == 12
    assert Store(tiny_store / "train").lengths.max() == 12
