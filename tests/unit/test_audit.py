"""The parts of an audit: the sample, the encoder, what is kept on the way."""

import json
import sys
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from unembed.auditing.encoder import check_texts, identify
from unembed.auditing.findings import mask
from unembed.auditing.recover import BLIND, Attacker, FinishedParts, Recovery
from unembed.auditing.run import AuditSettings, run_audit
from unembed.auditing.sample import Sample, draw
from unembed.checkpoint import CheckpointInfo
from unembed.config import ModelConfig, NoiseConfig
from unembed.connectors import StorageInfo, VectorBatch, VectorSource
from unembed.encoders import EncoderDescription
from unembed.errors import EncoderError, UnembedError, VectorError
from unembed.identification import KnownVectors
from unembed.measures import token_f1
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
            yield VectorBatch([f"id-{row}" for row in part], vectors[part], said)

    return VectorSource("the database", len(vectors), records(), storage=StorageInfo("test database", **keeping))


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

    def test_it_depends_on_the_seed_and_not_on_the_order_of_the_rows(self):
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

    def test_rows_that_are_kept_do_not_keep_their_batch_in_memory(self):
        rows, dim, batches = 1000, 256, 30
        batch_bytes = 4 * rows * dim

        def records():
            for number in range(batches):
                vectors = np.full((rows, dim), 1.0, dtype=np.float32)
                yield VectorBatch([f"{number}-{row}" for row in range(rows)], vectors, None)

        tracemalloc.start()
        try:
            draw(VectorSource("the database", rows * batches, records(), storage=StorageInfo("x")), 60)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 8 * batch_bytes

    def test_bad_rows_are_counted_and_an_empty_database_is_an_error(self):
        vectors = VECTORS.copy()
        vectors[7] = np.nan
        assert draw(source(vectors), 10).skipped["not finite"] == 1
        with pytest.raises(VectorError, match="holds no vectors that can be read: 300 are not finite"):
            draw(source(vectors * np.nan), 10)
        with pytest.raises(VectorError, match="the database holds no vectors."):
            draw(source(vectors[:0]), 10)


class TestEncoder:
    def test_the_database_names_it_with_or_without_its_organisation(self):
        found = identify(INFO, StorageInfo("x", encoder="fake", encoder_said_by="its metadata"), sample())
        assert found.certain
        assert "its metadata" in found.because

    def test_another_one_named_by_the_database_is_refused_unless_the_user_knows_better(self):
        kept = StorageInfo("x", encoder="text-embedding-3-small", encoder_said_by="its metadata")
        with pytest.raises(EncoderError, match="'text-embedding-3-small' made its vectors") as caught:
            identify(INFO, kept, sample())
        assert '`encoder="org/Fake"`' in caught.value.remedy
        assert identify(INFO, kept, sample(), asked="org/Fake").certain

    def test_vectors_of_another_dimension_are_refused(self):
        with pytest.raises(EncoderError, match="have 8 numbers; those of org/Fake"):
            identify(INFO, StorageInfo("x"), sample(VECTORS[:, :8]))

    def test_vectors_that_look_like_it_are_assumed_to_be_its_own(self):
        identified = identify(INFO, StorageInfo("x"), sample())
        assert not identified.certain
        assert "does not name its encoder" in identified.because

    def test_vectors_that_do_not_look_like_it_are_refused(self):
        with pytest.raises(EncoderError, match="does not name its encoder. The vectors do not look like"):
            identify(INFO, StorageInfo("x"), sample(VECTORS * np.linspace(1, 3, len(VECTORS))[:, None]))

    def test_vectors_that_were_multiplied_for_storage_are_its_own(self):
        assert "multiplied by about 3." in identify(INFO, StorageInfo("x"), sample(VECTORS * 3)).because

    def test_a_fingerprint_tells_encoders_of_one_dimension_apart(self):
        own = INFO.model_copy(update={"fingerprint": Fingerprint.of([np.abs(VECTORS)])})
        assert "means and spreads" in identify(own, StorageInfo("x"), sample(np.abs(VECTORS))).because
        with pytest.raises(EncoderError, match="numbers deviate from its means"):
            identify(own, StorageInfo("x"), sample())

    def test_the_error_names_the_encoder_that_probably_made_them_and_what_to_type(self, monkeypatch):
        foreign = -np.abs(VECTORS)
        entry = KnownVectors("bge-small-en-v1.5", "", Fingerprint.of([foreign]))
        monkeypatch.setattr(sys.modules["unembed.identification.identify"], "known_vectors", lambda: (entry,))
        own = INFO.model_copy(update={"fingerprint": Fingerprint.of([np.abs(VECTORS)])})
        with pytest.raises(EncoderError, match="They are probably those of bge-small-en-v1.5") as caught:
            identify(own, StorageInfo("x"), sample(foreign))
        assert "unembed adapt bge-small-en-v1.5" in caught.value.remedy

    def test_stored_texts_tell_for_sure(self, fake_encoder):
        texts = ["the cat sleeps", "a dog runs", "two birds"]
        said = identify(INFO, StorageInfo("x"), sample())
        own = check_texts(fake_encoder, sample(fake_encoder.encode(texts), texts), said)
        assert "for 3 of 3 stored texts" in own.because
        with pytest.raises(EncoderError, match="not vectors of org/Fake"):
            check_texts(fake_encoder, sample(-fake_encoder.encode(texts), texts), said)


class TestMask:
    def test_a_masked_text_keeps_its_shape_only(self):
        assert mask("Maria: 12 €, ü!") == "•••••: •• €, •!"


def recovery(cosine):
    return Recovery([1], "x", confidence=0.5, agreement=0.5, cosine=cosine, encoder_calls=0, seconds=0.0)


def flat(parts):
    return [recovery for part in parts for recovery in part]


def hypotheses_of(inverter, vector):
    """Return the ids of every hypothesis that a blind audit makes of a vector."""
    finished = {}
    for step in inverter.decode(vector, BLIND):
        for index in (step.mask_rate == 0).nonzero()[:, 0].tolist():
            ids = inverter.info.vocabulary.text_ids(step.canvas[index].tolist())
            finished[int(step.candidate[index])] = ids
    return list(finished.values())


class TestAttacker:
    def test_a_killed_audit_goes_on_where_it_was(self, make_inverter, tmp_path, monkeypatch):
        monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 2, "guided": 1})
        inverter = make_inverter()
        done = []

        def stop_after_two(label, count, total):
            done.append(count)
            if len(done) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            flat(
                Attacker(inverter, None, FinishedParts(tmp_path / "n", {"a": 1}), stop_after_two).blind(
                    VECTORS[:8], "sample"
                )
            )
        whole = flat(Attacker(inverter, None, FinishedParts(tmp_path / "other", {})).blind(VECTORS[:8], "sample"))
        kept = json.loads((tmp_path / "n" / "sample-blind-00000.json").read_text())
        kept[0]["text"] = "from the folder"
        (tmp_path / "n" / "sample-blind-00000.json").write_text(json.dumps(kept))
        resumed = flat(Attacker(inverter, None, FinishedParts(tmp_path / "n", {"a": 1})).blind(VECTORS[:8], "sample"))
        assert resumed[0].text == "from the folder"
        assert [recovery.ids for recovery in resumed] == [recovery.ids for recovery in whole]

    def test_parts_of_other_work_are_thrown_away(self, tmp_path):
        FinishedParts(tmp_path / "n", {"a": 1}).write("part.json", [recovery(0.5)])
        assert FinishedParts(tmp_path / "n", {"a": 1}).read("part.json") == [recovery(0.5)]
        assert FinishedParts(tmp_path / "n", {"a": 2}).read("part.json") is None

    def test_parts_are_thrown_away_when_the_audit_shall_start_again(self, tmp_path):
        FinishedParts(tmp_path / "n", {"a": 1}).write("part.json", [recovery(0.5)])
        assert FinishedParts(tmp_path / "n", {"a": 1}, resume=False).read("part.json") is None

    def test_an_interrupted_attack_keeps_the_parts_that_are_done(self, make_inverter, tmp_path, monkeypatch):
        monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 2, "guided": 1})
        finished = FinishedParts(tmp_path / "n", {})
        done = []
        attacker = Attacker(make_inverter(), None, finished, interrupted=lambda: len(done) == 2)
        for part in attacker.blind(VECTORS[:8], "sample"):
            done.append(part)
        assert [len(part) for part in done] == [2, 2]
        assert finished.read("sample-blind-00001.json") == done[1]

    def test_agreement_is_that_of_the_hypotheses(self, make_inverter, tmp_path):
        found = flat(Attacker(make_inverter(), None, FinishedParts(tmp_path / "n", {})).blind(VECTORS[:5], "sample"))
        assert all(recovery.cosine is None for recovery in found)
        for row, recovery in enumerate(found):
            hypotheses = hypotheses_of(make_inverter(), VECTORS[row : row + 1])
            others = [token_f1(ids, recovery.ids) for ids in hypotheses if ids != recovery.ids]
            assert recovery.ids in hypotheses
            assert recovery.agreement == pytest.approx(np.mean(others) if others else 1.0)

    def test_only_the_guided_attacker_asks_the_encoder_on_the_way(self, make_inverter, fake_encoder, tmp_path):
        inverter, given = make_inverter(), []
        decode = inverter.decode

        def watch(vectors, options, *, encoder):
            given.append((options.strategy == "guided", encoder))
            return decode(vectors, options, encoder=encoder)

        inverter.decode = watch
        attacker = Attacker(inverter, fake_encoder, FinishedParts(tmp_path / "n", {}))
        blind = flat(attacker.blind(VECTORS[:2], "sample"))
        guided = flat(attacker.guided(VECTORS[:1], "sample", seconds=0.0))
        assert given == [(False, None), (True, fake_encoder)]
        assert [recovery.encoder_calls for recovery in blind] == [0, 0]
        assert guided[0].encoder_calls > 0
        texts = fake_encoder.encode([recovery.text for recovery in blind])
        assert [recovery.cosine for recovery in blind] == pytest.approx((texts * VECTORS[:2]).sum(1), abs=1e-5)

    def test_guided_inversion_stops_when_its_time_is_over(self, make_inverter, fake_encoder, tmp_path, monkeypatch):
        monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 2, "guided": 2})
        inverter = make_inverter()
        inverter.tokenizer = fake_encoder.tokenizer
        attacker = Attacker(inverter, fake_encoder, FinishedParts(tmp_path / "n", {}))
        assert len(flat(attacker.guided(VECTORS[:6], "sample", seconds=0.0))) == 2

    def test_a_guided_recovery_keeps_its_text_of_a_tenth_of_the_budget(
        self, make_inverter, fake_encoder, tmp_path, monkeypatch
    ):
        inverter = make_inverter()
        inverter.tokenizer = fake_encoder.tokenizer
        decode, calls = inverter.decode, {}

        def watch(*arguments, **options):
            for step in decode(*arguments, **options):
                for text in step.complete(inverter.info.vocabulary):
                    calls.setdefault(text.texts_embedded, text.ids)
                yield step

        inverter.decode = watch
        monkeypatch.setattr("unembed.auditing.recover.EARLY", 40)
        attacker = Attacker(inverter, fake_encoder, FinishedParts(tmp_path / "n", {}))
        (guided,) = flat(attacker.guided(VECTORS[:1], "sample", seconds=1.0))
        last = max(count for count in calls if count <= 40)
        assert guided.early_ids == calls[last]
        assert guided.encoder_calls > 40


class TestAudit:
    TEXTS = tuple(f"the {who} sleeps." for who in ("cat", "dog", "king", "man", "boy", "girl", "bird", "horse"))

    @pytest.fixture
    def run(self, tiny_checkpoint, fake_encoder, tmp_path):
        from unembed.inverter import Inverter

        def run(ids=None, on_rows=lambda *news: None, interrupted=lambda: False, **settings):
            vectors = fake_encoder.encode(self.TEXTS)
            batch = VectorBatch(ids or [f"id-{row}" for row in range(len(vectors))], vectors, list(self.TEXTS))
            return run_audit(
                VectorSource("the database", len(vectors), iter([batch]), storage=StorageInfo("x")),
                Inverter.from_pretrained(tiny_checkpoint, device="cpu"),
                AuditSettings(resamples=20, **settings),
                encoder=fake_encoder,
                unfinished=tmp_path / "unfinished",
                on_rows=on_rows,
                interrupted=interrupted,
            )

        return run

    def test_the_guided_attacker_decides_when_it_reads_more(self, run, fake_encoder, monkeypatch):
        def read_all(attacker, vectors, what, seconds):
            (recoveries,) = attacker.blind(vectors, "other")
            near = (vectors @ fake_encoder.encode(self.TEXTS).T).argmax(1)
            yield [
                replace(recovery, text=self.TEXTS[row]) for recovery, row in zip(recoveries, near.tolist(), strict=True)
            ]

        monkeypatch.setattr(Attacker, "guided", read_all)
        result = run(guided=8)
        assert {attack.name: attack.figures["readable"].value for attack in result.attacks} == {"blind": 0, "guided": 1}
        verdict = result.verdict
        assert (verdict.attacker, verdict.readable.value, verdict.outcome) == ("guided", 1, "above")

    def test_ids_are_masked_with_the_texts(self, run):
        ids = [f"maria.keller{row}@example.com" for row in range(len(self.TEXTS))]
        (blind,) = run(ids=ids, guided=0).attacks
        assert {row.id for row in blind.rows} == {"•••••.•••••••@•••••••.•••"}
        (blind,) = run(ids=ids, guided=0, show_text=True).attacks
        assert {row.id for row in blind.rows} == set(ids)

    def test_rows_come_as_they_are_known(self, run, monkeypatch):
        monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 3, "guided": 1})
        seen = []
        run(guided=0, on_rows=lambda attacker, rows, total: seen.append((attacker, len(rows), total)))
        assert seen == [("blind", 3, 8), ("blind", 6, 8), ("blind", 8, 8)]

    def test_an_interrupted_audit_reports_what_is_done_and_goes_on_later(self, run, monkeypatch, tmp_path):
        monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 3, "guided": 1})
        seen = []
        result = run(guided=4, on_rows=lambda *news: seen.append(news), interrupted=lambda: len(seen) == 2)
        assert (result.sample, result.wanted, result.attacks[0].n, len(result.attacks)) == (6, 8, 6, 1)
        assert any("interrupted after 6 of 8" in sentence for sentence in result.assumptions)
        assert (tmp_path / "unfinished").is_dir()
        assert run(guided=0).attacks[0].rows[:6] == result.attacks[0].rows
        assert not (tmp_path / "unfinished").exists()

    def test_nothing_is_reported_of_an_audit_that_was_interrupted_at_once(self, run):
        with pytest.raises(UnembedError, match="interrupted before"):
            run(interrupted=lambda: True)
