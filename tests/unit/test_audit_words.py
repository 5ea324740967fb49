"""The words that vectors give away: exact over the vocabulary looked at, content words first, searchable."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from unembed.auditing import WordReader
from unembed.auditing.calibration import Clues, load_stored
from unembed.auditing.finding import RANKS, Trust, trust_for, typical_tokens
from unembed.auditing.words import _forms, _known_words
from unembed.canvas.marks import SubwordMarks
from unembed.errors import ConfigError
from unembed.measures import stem
from unembed.store import Store, embed_texts, find_words

MARKS = SubwordMarks(start="▁")
VECTORS = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)


@pytest.fixture
def inverter(build_reader):
    return build_reader("mlp")


def test_the_words_are_those_whose_probability_stands_out_most(build_reader):
    inverter = build_reader("mlp")
    readout = inverter.model.readout
    reader = WordReader(inverter, top=3)
    tokens = [inverter.tokenizer.token_to_id(word) for word in reader.words]
    standing_out = (readout(torch.from_numpy(VECTORS))[:, : readout.words] - readout.base / 2)[:, tokens]
    assert reader.read(VECTORS).indices.tolist() == standing_out.topk(3).indices.tolist()


def test_a_linear_readout_names_the_words_that_its_texts_hold(build_reader, fake_encoder):
    inverter = build_reader("linear")
    texts = ["the old man drinks tea.", "the king lives in a big house.", "two dogs play in the snow."]
    found = WordReader(inverter, top=4).read(fake_encoder.encode(texts))
    right = [len(set(found.names_of(row)) & set(text.strip(".").split())) for row, text in enumerate(texts)]
    assert sum(right) >= 6


@pytest.fixture
def any_inverter(build_reader, build_fake_encoder, any_tokenizer, tmp_path):
    """An inverter with a tokenizer of each family in turn."""
    texts = ["the old man drinks tea", "a bird sings in the garden", "unbelievable gardens"] * 4
    embed_texts(texts.__iter__, tmp_path / "store", build_fake_encoder(any_tokenizer), canvas_length=40)
    return build_reader("linear", tmp_path / "store")


def test_words_are_named_without_marks_and_pieces_inside_words_are_not(any_inverter, tiny_words):
    words = WordReader(any_inverter, vocabulary=10_000).words
    assert {"garden", "drinks"} <= set(words)
    assert all(any(whole.startswith(word) for whole in tiny_words) for word in words)


def test_a_word_to_find_is_the_piece_that_it_is_inside_a_text(any_inverter):
    alone = WordReader(any_inverter, vocabulary=10_000, top=10_000)
    finding = WordReader(any_inverter, vocabulary=10_000, top=10_000, find=["garden"])
    assert finding.words == alone.words
    assert (finding.read(VECTORS).indices == alone.read(VECTORS).indices).all()


def test_vectors_in_several_blocks_give_the_same_words(inverter, monkeypatch):
    whole = WordReader(inverter, top=3).read(VECTORS).indices
    monkeypatch.setattr("unembed.auditing.words._BLOCK", 4)
    assert (WordReader(inverter, top=3).read(VECTORS).indices == whole).all()


def test_pieces_of_words_numbers_and_function_words_are_not_named(inverter):
    reader = WordReader(inverter, vocabulary=10_000)
    assert "garden" in reader.words
    assert all(word.isalpha() and len(word) > 2 for word in reader.words)
    assert "the" not in reader.words


def test_a_word_to_find_is_looked_for_however_rare_it_is(inverter):
    names = WordReader(inverter, vocabulary=10_000).words
    reader = WordReader(inverter, vocabulary=1, top=1, find=[names[-1]])
    (index,) = reader.wanted[names[-1]]
    assert reader.words[index] == names[-1]
    found = reader.read(VECTORS)
    assert found.counts().sum() == len(VECTORS)
    assert found.holding([index]).sum() == found.counts()[index]


def test_a_word_to_find_is_looked_for_in_all_its_forms(inverter):
    names = WordReader(inverter, vocabulary=10_000).words
    reader = WordReader(inverter, vocabulary=1, find=["sleeping"])
    forms = {reader.words[index] for index in reader.wanted["sleeping"]}
    assert forms == {"sleeping", *(name for name in names if stem(name) == "sleep")}
    assert "sleeps" in forms


class TestOtherScripts:
    """A tokenizer for many languages cuts most words into pieces, and minds case and accents."""

    TEXTS = (
        "Die Rechnung ist offen",
        "Счёт не оплачен",
        "الفاتورة غير مدفوعة",
        "会议讨论合同",
        "日本のサーバー",
        "café crème",
        "월드컵 경기",
    )
    PIECES = ("▁Rech", "nung", "▁offen", "▁Сч", "ёт", "▁оплачен", "▁الف", "اتورة", "▁غير", "会议", "讨论", "合同")
    MORE = ("▁日本", "日本", "の", "サーバー", "▁café", "▁cr", "ème", "▁월드컵", "▁경기", "▁Die", "▁ist")

    @pytest.fixture
    def build(self, build_reader, build_fake_encoder, tmp_path):
        letters = sorted({letter for text in self.TEXTS for letter in text if letter != " "})
        pieces = [("<unk>", 0.0), ("▁", -9.0), *((piece, -4.0) for piece in (*self.PIECES, *self.MORE))]
        tokenizer = Tokenizer(models.Unigram(pieces + [(letter, -12.0) for letter in letters], unk_id=0))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.add_special_tokens(["<unk>"])
        texts = [text for text in self.TEXTS for _ in range(12)]
        embed_texts(texts.__iter__, tmp_path / "store", build_fake_encoder(tokenizer), canvas_length=40)

        def build(*, known, languages=()):
            inverter = build_reader("linear", tmp_path / "store")
            inverter.known_words = tuple(find_words(Store(tmp_path / "store"))) if known else ()
            inverter.info = inverter.info.model_copy(update={"languages": languages})
            return inverter

        return build

    def test_words_of_the_training_texts_are_named_whole_as_they_are_written(self, build):
        words = WordReader(build(known=True), vocabulary=1000).words
        assert {"Rechnung", "Счёт", "оплачен", "الفاتورة", "غير", "café", "crème", "월드컵", "경기"} <= set(words)
        assert {"会议", "合同", "日本", "サーバー"} <= set(words)
        assert not {"Rech", "nung", "Сч", "ёт", "الف", "の"} & set(words)

    def test_without_these_a_piece_that_begins_a_word_stands_for_it(self, build):
        words = WordReader(build(known=False), vocabulary=1000).words
        assert {"Rech", "оплачен", "会议", "サーバー", "월드컵"} <= set(words)
        assert not {"nung", "ёт", "の"} & set(words)

    def test_words_are_read_out_of_vectors_in_every_script(self, build, build_fake_encoder):
        inverter = build(known=True)
        found = WordReader(inverter, top=2).read(build_fake_encoder(inverter.tokenizer).encode(self.TEXTS))
        expected = ["Rechnung", "Счёт", "الفاتورة", "会议", "サーバー", "crème", "월드컵"]
        right = [word in found.names_of(row) for row, word in enumerate(expected)]
        assert sum(right) >= 6

    def test_the_commonest_words_of_the_inverter_s_languages_are_not_named(self, build):
        assert {"Die", "ist"} <= set(WordReader(build(known=True), vocabulary=1000).words)
        german = WordReader(build(known=True, languages=("de",)), vocabulary=1000).words
        assert not {"Die", "ist"} & set(german)
        assert "Rechnung" in german

    @pytest.mark.parametrize(
        ("given", "pieces"), [("rechnung", ["▁Rech", "nung"]), ("会议", ["会议"]), ("合同会议", ["合同", "会议"])]
    )
    def test_a_word_is_found_in_any_case_and_by_the_pieces_that_it_has_inside_a_text(self, build, given, pieces):
        inverter = build(known=True)
        forms = _forms(given, _known_words(inverter, MARKS), inverter, MARKS)
        assert pieces in [[inverter.tokenizer.id_to_token(token) for token in tokens] for tokens in forms.values()]

    def test_more_words_are_looked_for_where_there_are_more_languages(self, build, monkeypatch):
        monkeypatch.setattr("unembed.auditing.words.VOCABULARY", 2)
        assert len(WordReader(build(known=True)).words) == 2
        assert len(WordReader(build(known=True, languages=("ar", "ru", "zh"))).words) == 6


class TestTrust:
    TRUST = Trust(32, 500, [index / len(RANKS) for index in range(len(RANKS))], [0.5] * len(RANKS))

    def test_between_two_ranks_the_share_of_missed_texts_lies_between_theirs(self):
        at = {top: self.TRUST.missed(top) for top in (12, 15, 20)}
        assert at[20] < at[15] < at[12]
        assert at[12] == 1 - RANKS.index(12) / len(RANKS)

    def test_it_says_what_no_hit_means(self):
        said = self.TRUST.explain(12)
        assert "500 known texts of 17 to 32 tokens" in said
        assert "among its 12 likeliest words in 62% of cases" in said
        assert "no hit is no all-clear" in said

    def test_it_is_that_of_texts_as_long_as_those_of_the_vectors(self):
        stored = load_stored()
        weights = np.zeros_like(stored.clues.weights)
        for tokens, limit in ((5, 8), (30, 32), (1000, 512)):
            weights[-1, 0] = np.log(tokens)
            tokens = typical_tokens(replace(stored, clues=Clues(weights)), np.ones((3, 384)))
            assert trust_for(stored, tokens).tokens == limit

    def test_more_words_miss_less_and_longer_texts_are_missed_more(self):
        short, *_, long = (Trust(**row) for row in load_stored().words)
        assert short.missed(100) < short.missed(12) < short.missed(1)
        assert short.missed(12) < long.missed(12)


def test_a_word_of_several_pieces_stands_out_as_they_do_on_average(inverter):
    reader = WordReader(inverter, vocabulary=10_000, find=["catdog"])
    readout, pieces = inverter.model.readout, inverter.tokenizer.encode("catdog", add_special_tokens=False).ids
    assert len(pieces) > 1
    logits = readout(torch.from_numpy(VECTORS))[:, : readout.words]
    standing_out = (logits - readout.base / 2)[:, pieces]
    rarity = readout.base[pieces] / readout.base[pieces].sum()
    tokens = [inverter.tokenizer.token_to_id(word) for word in reader.words[:-1]]
    others = (logits - readout.base / 2)[:, tokens]
    expected = ((standing_out * rarity).sum(1)[:, None] > others).all(1)
    assert (reader.read(VECTORS).indices[:, 0] == reader.wanted["catdog"][0]).tolist() == expected.tolist()
    rank = (others > (standing_out * rarity).sum(1)[:, None]).sum(1)
    assert reader.read(VECTORS).holding(reader.wanted["catdog"]).tolist() == (rank < 12).tolist()


def test_a_word_that_the_tokenizer_does_not_know_cannot_be_found(inverter):
    with pytest.raises(ConfigError, match="Cannot look for '猫'"):
        WordReader(inverter, find=["猫"])


def test_an_inverter_without_a_readout_names_no_words(make_inverter):
    with pytest.raises(ConfigError, match="no readout"):
        WordReader(make_inverter())
