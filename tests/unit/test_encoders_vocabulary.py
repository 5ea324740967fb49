"""The canvas's tokenizer: any, not just the encoder's; and reduced to what a corpus uses."""

from functools import cache

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from unembed.canvas import CanvasVocabulary, count_lost, count_pieces, fit_to_canvas, reduce_vocabulary, respelled_share
from unembed.decoding import TextOracle
from unembed.encoders import load_tokenizer
from unembed.errors import ConfigError, EncoderError, StoreError
from unembed.store import Store, embed_texts

CORPUS = [
    f"the {size} {what} walks to the {where}"
    for size in ("small", "old", "white")
    for what in ("horse", "child", "teacher", "flower")
    for where in ("garden", "river", "window")
]
RARE = ["photosynthesis and the constitution", "the unquestionable hippopotamus"]


@cache  # trainers break ties as they like: two trainings may differ
def bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator([*CORPUS, *RARE * 3], trainer)
    return tokenizer


@cache
def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=160, special_tokens=["<unk>", "</s>"], unk_token="<unk>")
    tokenizer.train_from_iterator([*CORPUS, *RARE * 3], trainer)
    return tokenizer


@cache
def wordpiece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Whitespace(), decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[PAD]", "[UNK]"])
    tokenizer.train_from_iterator([*CORPUS, *RARE * 3], trainer)
    return tokenizer


@pytest.fixture(params=[bpe, unigram, wordpiece])
def whole(request) -> Tokenizer:
    return request.param()


@pytest.fixture
def reduced(whole) -> Tokenizer:
    counts = count_pieces(CORPUS, whole)
    return reduce_vocabulary(whole, counts, 340)


def pieces(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


def test_texts_of_frequent_pieces_read_as_before(whole, reduced):
    assert CanvasVocabulary.of(reduced).size < CanvasVocabulary.of(whole).size
    for text in CORPUS:
        assert pieces(reduced, text) == pieces(whole, text)
        assert reduced.decode(reduced.encode(text).ids) == text


def test_rare_words_are_spelled_with_smaller_pieces(whole, reduced):
    for text in RARE:
        assert len(pieces(reduced, text)) > len(pieces(whole, text))
        assert reduced.decode(reduced.encode(text).ids) == text
    assert count_lost(RARE, reduced)[0] == 0


def test_ids_are_dense_and_special_tokens_gone(reduced):
    vocabulary = reduced.get_vocab()
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    assert not {"<s>", "</s>", "[PAD]"} & set(vocabulary)
    assert len(CanvasVocabulary.of(reduced).special) <= 1


def test_a_reduced_tokenizer_survives_being_saved(reduced, tmp_path):
    reduced.save(str(tmp_path / "tokenizer.json"))
    again = load_tokenizer(str(tmp_path))
    assert pieces(again, RARE[0]) == pieces(reduced, RARE[0])


def test_the_most_frequent_pieces_are_kept():
    whole = bpe()
    counts = count_pieces(CORPUS, whole)
    reduced = reduce_vocabulary(whole, counts, 300)
    kept = set(reduced.get_vocab())
    assert len(kept) <= 300
    assert pieces(whole, " the") == ["Ġthe"]
    assert "Ġthe" in kept
    assert not {"Ġhippopotamus", "Ġconstitution"} & kept


def test_what_had_to_be_respelled_is_counted():
    whole = wordpiece()
    counts = count_pieces([*CORPUS, RARE[0]], whole)
    assert respelled_share(whole, whole, counts) == 0.0
    reduced = reduce_vocabulary(whole, count_pieces(CORPUS, whole), 120)
    share = respelled_share(whole, reduced, counts)
    gone = [piece for text in [*CORPUS, RARE[0]] for piece in pieces(whole, text) if piece not in reduced.get_vocab()]
    assert share == pytest.approx(len(gone) / counts.sum())
    assert share > 0


def test_characters_that_no_piece_has_are_lost_and_counted():
    reduced = reduce_vocabulary(wordpiece(), count_pieces(CORPUS, wordpiece()), 120)
    assert count_lost(["the 東 horse", "京"], reduced) == (2, 2 + len(pieces(reduced, "the horse")))
    assert count_lost([], reduced) == (0, 0)


def test_no_canvas_holds_the_unknown_token_of_a_reduced_unigram_tokenizer():
    tokenizer = reduce_vocabulary(unigram(), count_pieces(CORPUS, unigram()), 100)
    unknown = tokenizer.token_to_id("<unk>")
    assert CanvasVocabulary.of(tokenizer).special == (unknown,)
    ((ids, text, _),) = zip(*fit_to_canvas(["the small 猫"], tokenizer, 20), strict=True)
    assert unknown not in ids
    assert "<unk>" not in text


def test_a_vocabulary_that_holds_not_even_the_letters_is_refused(whole):
    with pytest.raises(ConfigError, match="does not even hold"):
        reduce_vocabulary(whole, count_pieces(CORPUS, whole), 10)


def test_a_tokenizer_without_smaller_pieces_is_refused():
    words = Tokenizer(models.WordLevel({"the": 0, "[UNK]": 1}, unk_token="[UNK]"))
    with pytest.raises(ConfigError, match="WordLevel cannot be reduced"):
        reduce_vocabulary(words, np.ones(2, int), 1)


class TestStore:
    def test_ids_are_those_of_the_chosen_tokenizer_and_vectors_those_of_the_text(self, fake_encoder, tmp_path):
        chosen = bpe()
        manifest = embed_texts(CORPUS.__iter__, tmp_path, fake_encoder, tokenizer=chosen, canvas_length=32)
        store = Store(tmp_path)
        assert manifest.vocabulary_size == CanvasVocabulary.of(chosen).size
        said = [store.tokenizer().decode(manifest.vocabulary.text_ids(ids)) for ids in store.tokens([0, 5]).tolist()]
        assert said == [CORPUS[0], CORPUS[5]]
        np.testing.assert_allclose(store.embeddings([5]), fake_encoder.encode([CORPUS[5]]), atol=1e-3)

    def test_what_is_lost_stands_in_the_manifest_and_survives_an_interruption(self, fake_encoder, tmp_path):
        reduced = reduce_vocabulary(wordpiece(), count_pieces(CORPUS, wordpiece()), 120)
        lines = [*CORPUS, "the 東 horse", "京 river"]
        options = {"tokenizer": reduced, "respelled_share": 0.25, "shard_lines": 10}
        whole = embed_texts(lines.__iter__, tmp_path / "whole", fake_encoder, **options)
        assert whole.lost_share == pytest.approx(2 / count_lost(lines, reduced)[1])
        assert whole.respelled_share == 0.25

        def stop(shard):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            embed_texts(lines.__iter__, tmp_path / "again", fake_encoder, on_shard=stop, **options)
        assert embed_texts(lines.__iter__, tmp_path / "again", fake_encoder, **options) == whole

    def test_the_command_reduces_both_splits_to_the_training_split_s_pieces(
        self, run_cli, tmp_path, monkeypatch, fake_encoder
    ):
        monkeypatch.setattr("unembed.encoders.load_encoder", lambda name, **options: fake_encoder)
        (tmp_path / "corpus").mkdir()
        (tmp_path / "corpus" / "train.txt").write_text("\n".join(CORPUS))
        (tmp_path / "corpus" / "validation.txt").write_text("\n".join(RARE))
        bpe().save(str(tmp_path / "tokenizer.json"))
        ended = run_cli(
            *("embed", tmp_path / "corpus", "-o", tmp_path / "store"),
            *("--tokenizer", tmp_path / "tokenizer.json", "--vocabulary", 300),
        )
        assert ended.code == 0, ended.err
        train, validation = (Store(tmp_path / "store" / split).manifest for split in ("train", "validation"))
        assert train.tokenizer_hash == validation.tokenizer_hash
        assert train.vocabulary_size <= 300
        assert "respelled" in ended.out

    def test_training_refuses_a_validation_store_of_another_vocabulary(self, fake_encoder, tmp_path):
        from unembed.training.compatibility import check_pair

        first = embed_texts(CORPUS.__iter__, tmp_path / "train", fake_encoder)
        second = embed_texts(CORPUS.__iter__, tmp_path / "validation", fake_encoder, tokenizer=bpe())
        check_pair(first, first)
        with pytest.raises(StoreError, match="different tokenizers"):
            check_pair(first, second)


class TestGuidance:
    """The encoder's gradient speaks of its own tokens; on the canvas they have other ids."""

    class Substituting:
        supports_substitutions = True

        def __init__(self, encoder, gains):
            self.encoder, self.tokenizer, self.gains = encoder, encoder.tokenizer, gains
            self.description = encoder.description
            self.asked = []

        def encode(self, sentences, **options):
            return self.encoder.encode(sentences, **options)

        def substitutions(self, sentences, targets, top, *, forbidden=()):
            self.asked.append((list(sentences), set(forbidden)))
            best = [token for token in self.gains if token not in set(forbidden)][:top]
            lengths = [len(self.tokenizer.encode(text, add_special_tokens=False).ids) for text in sentences]
            return [(np.tile(best, (length, 1)), np.ones((length, len(best)))) for length in lengths]

    def oracle(self, fake_encoder, tokenizer):
        gains = [fake_encoder.tokenizer.token_to_id(word) for word in ("[MASK]", "horse", "river", "cat")]
        encoder = self.Substituting(fake_encoder, gains)
        return TextOracle(encoder, tokenizer, CanvasVocabulary.of(tokenizer), 12)

    def reduced(self, tokenizer):
        counts = count_pieces(["the cat sleeps near the horse"], tokenizer)
        return reduce_vocabulary(tokenizer, counts, CanvasVocabulary.of(tokenizer).size - 40)

    def test_substitutions_have_the_canvas_s_ids(self, fake_encoder):
        reduced = self.reduced(fake_encoder.tokenizer)
        assert "river" not in reduced.get_vocab()
        oracle = self.oracle(fake_encoder, reduced)
        ids = tuple(reduced.encode("the cat", add_special_tokens=False).ids)
        ((tokens, _),) = oracle.substitutions([ids], np.ones((1, 16)), 2)
        assert [reduced.id_to_token(token) for token in tokens[0]] == ["horse", "cat"]

    def test_a_text_that_the_encoder_reads_as_other_pieces_has_none(self, fake_encoder):
        reduced = self.reduced(fake_encoder.tokenizer)
        oracle = self.oracle(fake_encoder, reduced)
        ids = [tuple(reduced.encode(text, add_special_tokens=False).ids) for text in ("the river", "the cat")]
        first, second = oracle.substitutions(ids, np.ones((2, 16)), 2)
        assert first is None
        assert second is not None
        assert oracle.encoder.asked[0][0] == ["the cat"]


class TestLoading:
    def test_an_encoder_s_name_will_do(self):
        assert load_tokenizer("all-MiniLM-L6-v2").get_vocab_size() == 30_522

    @pytest.mark.parametrize("name", ["no/such-file.json", "nothing"])
    def test_what_is_no_tokenizer_is_refused(self, name, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(EncoderError, match=f"Cannot load the tokenizer '{name}'"):
            load_tokenizer(name)

    def test_a_tokenizer_neither_pads_nor_cuts(self, tiny_tokenizer, tmp_path):
        changed = Tokenizer.from_str(tiny_tokenizer.to_str())
        changed.enable_truncation(2)
        changed.enable_padding(length=8)
        changed.save(str(tmp_path / "tokenizer.json"))
        assert len(load_tokenizer(str(tmp_path / "tokenizer.json")).encode("the cat").ids) == 4


def test_a_reduced_canvas_still_says_what_it_embeds():
    reduced = reduce_vocabulary(bpe(), count_pieces(CORPUS, bpe()), 300)
    ids, said, _ = fit_to_canvas(RARE, reduced, 12)
    assert [reduced.encode(text, add_special_tokens=False).ids for text in said] == ids
