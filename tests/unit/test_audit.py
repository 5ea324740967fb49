"""The parts of an audit: the sample, the encoder, what counts as a leak, the estimate, what is kept on the way."""

import json
from collections import Counter

import numpy as np
import pytest

from unembed.audit.encoder import check_texts, identify
from unembed.audit.estimate import estimate
from unembed.audit.findings import mask
from unembed.audit.leaks import find_leaks, gives_back
from unembed.audit.recover import Attacker, Notebook, Recovery
from unembed.audit.sample import Sample, draw
from unembed.checkpoint import CheckpointInfo
from unembed.config import ModelConfig, NoiseConfig
from unembed.connectors import Batch, Keeping, VectorSource
from unembed.encoders import EncoderDescription
from unembed.errors import EncoderError, VectorError
from unembed.store.fingerprint import Fingerprint

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(300, 16)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
FAKE = EncoderDescription(name="org/Fake", revision="1", dim=16, prompt=None, pooling="mean", normalised=True)
INFO = CheckpointInfo(
    encoder=FAKE,
    model=ModelConfig(embedding_dim=16, vocabulary_size=9, canvas_length=12),
    noise=NoiseConfig(),
    special_ids=(),
    tokenizer_hash="",
    training_rows=1,
)


def source(vectors=VECTORS, texts=None, order=None, **keeping):
    order = np.arange(len(vectors)) if order is None else order

    def records():
        for part in np.array_split(order, 4):
            said = None if texts is None else [texts[row] for row in part]
            yield Batch([f"id-{row}" for row in part], vectors[part], said)

    return VectorSource("the store", len(vectors), records(), keeping=Keeping("test store", **keeping))


def sample(vectors=VECTORS, texts=None):
    norms = np.linalg.norm(vectors, axis=1)
    return Sample(
        ids=list(range(len(vectors))),
        vectors=vectors,
        texts=texts,
        population=len(vectors),
        groups={},
        skipped=Counter(),
        norms=(float(norms.min()), float(norms.mean()), float(norms.max())),
    )


class TestSample:
    TEXTS = ["short"] * 100 + ["x" * 60] * 150 + ["x" * 400] * 50

    def test_each_length_has_its_share(self):
        drawn = draw(source(texts=self.TEXTS), 60)
        assert Counter(map(len, drawn.texts)) == {5: 20, 60: 30, 400: 10}
        assert list(drawn.groups.values()) == [100, 150, 50]

    def test_it_depends_on_the_seed_and_not_on_the_order_of_the_store(self):
        one = draw(source(texts=self.TEXTS), 60)
        other = draw(source(texts=self.TEXTS, order=RANDOM.permutation(300)), 60)
        assert one.ids == other.ids
        assert (one.vectors == other.vectors).all()
        assert draw(source(texts=self.TEXTS), 60, seed=1).ids != one.ids

    def test_shares_add_up_whatever_the_size(self):
        for size in (1, 2, 7, 299, 300, 1000):
            assert len(draw(source(texts=self.TEXTS), size)) == min(size, 300)
        assert len(draw(source(texts=self.TEXTS), None)) == 300

    def test_without_texts_norms_make_the_groups(self):
        vectors = VECTORS.copy()
        vectors[:60] *= 8.0
        drawn = draw(source(vectors), 50)
        assert drawn.groups == {"norm about 1": 240, "norm about 8": 60}
        assert (np.linalg.norm(drawn.vectors, axis=1) > 4).sum() == 10
        assert drawn.texts is None

    def test_bad_rows_are_counted_and_an_empty_store_is_an_error(self):
        vectors = VECTORS.copy()
        vectors[7] = np.nan
        assert draw(source(vectors), 10).skipped["not finite"] == 1
        with pytest.raises(VectorError, match="holds no vectors that can be read: 300 are not finite"):
            draw(source(vectors * np.nan), 10)
        with pytest.raises(VectorError, match="the store holds no vectors."):
            draw(source(vectors[:0]), 10)


class TestEncoder:
    def test_the_store_names_it_with_or_without_its_organisation(self):
        found = identify(INFO, Keeping("x", encoder="fake", encoder_said_by="its metadata"), sample())
        assert found.certain
        assert "its metadata" in found.because

    def test_another_one_named_by_the_store_is_refused_unless_the_user_knows_better(self):
        kept = Keeping("x", encoder="text-embedding-3-small", encoder_said_by="its metadata")
        with pytest.raises(EncoderError, match="'text-embedding-3-small' made its vectors") as caught:
            identify(INFO, kept, sample())
        assert "--encoder org/Fake" in caught.value.remedy
        assert identify(INFO, kept, sample(), asked="org/Fake").certain

    def test_vectors_of_another_dimension_are_refused(self):
        with pytest.raises(EncoderError, match="have 8 numbers; those of org/Fake"):
            identify(INFO, Keeping("x"), sample(VECTORS[:, :8]))

    def test_nobody_says_but_they_look_like_it(self):
        assert not identify(INFO, Keeping("x"), sample()).certain

    def test_nobody_says_and_they_do_not_look_like_it(self):
        with pytest.raises(EncoderError, match="unknown which encoder made these vectors"):
            identify(INFO, Keeping("x"), sample(VECTORS * 3))

    def test_a_fingerprint_tells_encoders_of_one_dimension_apart(self):
        own = INFO.model_copy(update={"fingerprint": Fingerprint.of([np.abs(VECTORS)])})
        assert "means and spreads" in identify(own, Keeping("x"), sample(np.abs(VECTORS))).because
        with pytest.raises(EncoderError, match="numbers deviate from its means"):
            identify(own, Keeping("x"), sample())

    def test_stored_texts_tell_for_sure(self, fake_encoder):
        texts = ["the cat sleeps", "a dog runs", "two birds"]
        said = identify(INFO, Keeping("x"), sample())
        own = check_texts(fake_encoder, sample(fake_encoder.encode(texts), texts), said)
        assert "for 3 of 3 stored texts" in own.because
        with pytest.raises(EncoderError, match="not vectors of org/Fake"):
            check_texts(fake_encoder, sample(-fake_encoder.encode(texts), texts), said)


class TestLeaks:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Write to maria.keller@example.com.", [("e-mail addresses", "maria.keller@example.com")]),
            (
                "write to maria. keller @ example. com",
                [("e-mail addresses", "maria. keller @ example. com")],
            ),
            ("Call +44 20 7946 0958 now", [("phone numbers", "+44 20 7946 0958")]),
            ("call 555 - 0123 now", [("phone numbers", "555 - 0123")]),
            ("from 1998-2001, about 2,500 people", []),
            ("It cost $1,250.00, or 40 euros", [("amounts of money", "$1,250.00"), ("amounts of money", "40 euros")]),
            ("on 3 June 2024 and 2024-03-05", [("dates", "3 June 2024"), ("dates", "2024-03-05")]),
            ("may 2 be enough", [("dates", "may 2")]),
            ("Maria Keller and Dr. Osei", [("names", "Dr. Osei"), ("names", "Maria Keller")]),
            ("she took insulin in lisbon", [("medical terms", "insulin"), ("places", "lisbon")]),
            ("the cat sleeps on the mat", []),
        ],
    )
    def test_what_a_text_says_about_people(self, text, expected):
        assert sorted((leak.kind, leak.text) for leak in find_leaks(text)) == sorted(expected)

    def test_only_what_is_the_same_to_the_last_digit_is_given_back(self):
        leaks = find_leaks("Maria Keller paid $1,250 on 3 June 2024, see maria@example.com")
        recovered = "maria keller paid $ 1, 250 on 4 june 2024, see mario @ example. com"
        assert {leak.text for leak in gives_back(recovered, leaks)} == {"Maria Keller", "$1,250"}
        assert gives_back("mariakeller 1250", leaks) == []

    def test_a_masked_text_keeps_its_shape_only(self):
        assert mask("Maria: 12 €, ü!") == "•••••: •• €, •!"


def recovery(cosine, agreement=0.5):
    return Recovery([1], "x", confidence=0.5, agreement=agreement, cosine=cosine, encoder_calls=0, seconds=0.0)


class TestEstimate:
    def test_a_measure_that_follows_the_signs_is_read_off_them(self):
        cosines = RANDOM.uniform(0.2, 0.9, size=200)
        known = [recovery(value) for value in cosines]
        truth = {"token_f1": np.clip(cosines - 0.1 + RANDOM.normal(0, 0.02, 200), 0, 1)}
        ours = [recovery(value) for value in (0.3, 0.5, 0.7)]
        found = estimate(ours, known, truth, resamples=200)
        assert np.abs(found.per_text["token_f1"] - [0.2, 0.4, 0.6]).max() < 0.03
        figure = found.figures["token_f1"]
        assert figure.low < 0.4 < figure.high
        assert figure.n == 3
        assert 0.005 < found.errors["token_f1"] < 0.04

    def test_signs_that_say_nothing_give_the_mean_and_an_honest_error(self):
        known = [recovery(0.5) for _ in range(100)]
        truth = {"token_f1": np.tile([0.2, 0.8], 50)}
        found = estimate([recovery(0.5)], known, truth, resamples=50)
        assert found.per_text["token_f1"] == pytest.approx([0.5], abs=0.02)
        assert found.errors["token_f1"] == pytest.approx(0.3, abs=0.02)


class TestAttacker:
    def test_a_killed_audit_goes_on_where_it_was(self, make_inverter, tmp_path, monkeypatch):
        monkeypatch.setattr("unembed.audit.recover._PART", {"blind": 2, "guided": 1})
        inverter = make_inverter()
        done = []

        def stop_after_two(label, count, total):
            done.append(count)
            if len(done) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Attacker(inverter, None, Notebook(tmp_path / "n", {"a": 1}), stop_after_two).blind(VECTORS[:8], "store")
        whole = Attacker(inverter, None, Notebook(tmp_path / "other", {})).blind(VECTORS[:8], "store")
        kept = json.loads((tmp_path / "n" / "store-blind-00000.json").read_text())
        kept[0]["text"] = "from the notebook"
        (tmp_path / "n" / "store-blind-00000.json").write_text(json.dumps(kept))
        resumed = Attacker(inverter, None, Notebook(tmp_path / "n", {"a": 1})).blind(VECTORS[:8], "store")
        assert resumed[0].text == "from the notebook"
        assert [one.ids for one in resumed] == [one.ids for one in whole]

    def test_a_notebook_of_other_work_is_thrown_away(self, tmp_path):
        Notebook(tmp_path / "n", {"a": 1}).write("part.json", [recovery(0.5)])
        assert Notebook(tmp_path / "n", {"a": 1}).read("part.json") == [recovery(0.5)]
        assert Notebook(tmp_path / "n", {"a": 2}).read("part.json") is None

    def test_agreement_is_that_of_the_hypotheses(self, make_inverter, tmp_path):
        found = Attacker(make_inverter(), None, Notebook(tmp_path / "n", {})).blind(VECTORS[:5], "store")
        assert all(0.0 <= one.agreement <= 1.0 for one in found)
        assert len({one.agreement for one in found}) > 1
        assert all(one.cosine is None for one in found)

    def test_guided_inversion_stops_when_its_time_is_over(self, make_inverter, fake_encoder, tmp_path, monkeypatch):
        monkeypatch.setattr("unembed.audit.recover._PART", {"blind": 2, "guided": 2})
        inverter = make_inverter()
        inverter.tokenizer = fake_encoder.tokenizer
        attacker = Attacker(inverter, fake_encoder, Notebook(tmp_path / "n", {}))
        assert len(attacker.guided(VECTORS[:6], "store", seconds=0.0)) == 2
