"""Vectors that do not look like the encoder's are noticed."""

import json
import logging

import numpy as np
import pytest

from unembed.checkpoint import load_checkpoint
from unembed.inverter import Inverter
from unembed.store import Fingerprint, Manifest, Store, embed_texts
from unembed.store.fingerprint import describe_scale, find_scale

RANDOM = np.random.default_rng(0)
MEAN = RANDOM.normal(size=32)


def vectors(rows: int, *, mean: np.ndarray = MEAN, norm: float = 1.0, seed: int = 1) -> np.ndarray:
    """Vectors of an encoder with a mean direction of its own, which carries half of their squared length."""
    drawn = mean + np.random.default_rng(seed).normal(size=(rows, 32)) * np.linalg.norm(mean) / np.sqrt(32)
    return norm * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture
def fingerprint() -> Fingerprint:
    found = Fingerprint.of([vectors(500), vectors(300, seed=2)])
    assert found is not None
    return found


def test_it_is_the_same_in_whatever_parts_vectors_come(fingerprint):
    whole = np.concatenate([vectors(500), vectors(300, seed=2)])
    again = Fingerprint.of(np.array_split(whole, 7))
    assert again is not None
    np.testing.assert_allclose(again.mean, fingerprint.mean, rtol=1e-4)
    np.testing.assert_allclose(again.mean, whole.mean(0), atol=1e-6)
    np.testing.assert_allclose(again.spread, whole.std(0), rtol=1e-4)
    assert (again.rows, again.norm) == (800, pytest.approx(1.0))
    assert Fingerprint.of([]) is None
    assert Fingerprint.of([np.zeros((3, 4))]) is None


@pytest.mark.parametrize("rows", [1, 10, 300])
def test_other_vectors_of_the_encoder_raise_no_doubt(fingerprint, rows):
    assert fingerprint.doubts(vectors(rows, seed=9)) == []


@pytest.mark.parametrize("rows", [1, 10, 300])
def test_another_encoder_s_vectors_do_and_the_reason_is_given(fingerprint, rows):
    (doubt,) = fingerprint.doubts(vectors(rows, mean=-MEAN[::-1]))
    assert "deviate from its means" in doubt


@pytest.mark.parametrize(
    ("rows", "distance", "doubted"), [(1, 2.2, False), (1, 2.3, True), (100, 1.78, False), (100, 1.82, True)]
)
def test_the_limit_lies_where_the_benchmark_found_it_and_single_vectors_may_deviate_more(rows, distance, doubted):
    """Every vector of length one is at this distance from a mean of zero with equal spreads."""
    spread = (1 / 32 / distance) ** 0.5
    known = Fingerprint(rows=1000, norm=1.0, norm_spread=0.0, mean=(0.0,) * 32, spread=(spread,) * 32)
    assert known.distance(vectors(rows)) == pytest.approx(distance)
    assert bool(known.doubts(vectors(rows))) is doubted


def test_lengths_are_compared_with_the_encoder_s_own(fingerprint):
    (doubt,) = fingerprint.doubts(vectors(5, norm=7.0))
    assert "one has the length 7 instead of 1" in doubt
    assert fingerprint.doubts(vectors(5, norm=1.001)) == []
    loose = Fingerprint.of([vectors(200) * RANDOM.uniform(5, 9, size=(200, 1))])
    assert loose is not None
    assert loose.doubts(vectors(5, norm=6.0)) == []


def test_a_number_that_never_moves_must_not_move(fingerprint):
    still = np.array(vectors(400))
    still[:, 3] = 0.0
    known = Fingerprint.of([still])
    assert known is not None
    assert known.doubts(still[:20].astype(np.float16).astype(np.float32)) == []
    assert known.doubts(vectors(20, seed=5)) != []


def test_a_handful_of_vectors_is_not_enough_to_know_an_encoder_by():
    known = Fingerprint.of([vectors(1)])
    assert known is not None
    assert known.doubts(vectors(20, mean=-MEAN)) == []


class TestStoreAndInverter:
    def test_a_store_has_it_when_it_is_complete(self, tiny_store):
        store = Store(tiny_store / "train")
        found = store.manifest.fingerprint
        assert found is not None
        assert found.rows == len(store)
        directions = store.embeddings(np.arange(len(store)))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        np.testing.assert_allclose(found.mean, directions.mean(0), atol=1e-5)

    def test_it_is_the_same_after_an_interruption_or_a_repair(self, tiny_store, fake_encoder, tmp_path):
        texts = [f"the cat has {number} birds" for number in range(40)]

        def stop(shard):
            if shard.number == 1:
                raise KeyboardInterrupt

        whole = embed_texts(texts.__iter__, tmp_path / "whole", fake_encoder, shard_lines=10)
        with pytest.raises(KeyboardInterrupt):
            embed_texts(texts.__iter__, tmp_path / "again", fake_encoder, shard_lines=10, on_shard=stop)
        assert Manifest.load(tmp_path / "again").fingerprint is None
        again = embed_texts(texts.__iter__, tmp_path / "again", fake_encoder, shard_lines=10)
        assert again.fingerprint == whole.fingerprint
        (tmp_path / "again" / "embeddings-00002.npy").write_bytes(b"damaged")
        assert embed_texts(texts.__iter__, tmp_path / "again", fake_encoder, shard_lines=10) == whole

    def test_a_store_of_an_earlier_version_loads_and_gets_one_when_it_is_embedded_again(self, fake_encoder, tmp_path):
        texts = ["the cat", "the dog runs", "a bird sings"]
        made = embed_texts(texts.__iter__, tmp_path, fake_encoder)
        path = tmp_path / "manifest.json"
        old = json.loads(path.read_text())
        del old["fingerprint"], old["respelled_share"], old["encoder"]["task"], old["encoder"]["truncate_dim"]
        for shard in old["shards"]:
            del shard["tokens"], shard["lost_tokens"]
        path.write_text(json.dumps(old))
        assert Store(tmp_path).manifest.fingerprint is None
        before = fake_encoder.calls
        assert embed_texts(texts.__iter__, tmp_path, fake_encoder).fingerprint == made.fingerprint
        assert fake_encoder.calls == before

    @pytest.fixture
    def inverter(self, tiny_checkpoint, tiny_store) -> Inverter:
        made = Inverter.from_pretrained(tiny_checkpoint, device="cpu")
        known = Fingerprint.of([centred(400)])
        return Inverter(made.model, made.tokenizer, made.info.model_copy(update={"fingerprint": known}))

    def test_inverting_warns_once_with_the_reason(self, inverter, caplog):
        with caplog.at_level(logging.WARNING):
            inverter.invert(centred(30, seed=4))
            assert caplog.text == ""
            inverter.invert(-centred(30, seed=4))
            inverter.invert(-centred(30, seed=5))
        (record,) = caplog.records
        assert "do not look like those of fake" in record.message
        assert "deviate from its means" in record.message

    def test_a_saved_inverter_keeps_it_and_an_older_one_loads_without(self, inverter, tiny_checkpoint, tmp_path):
        inverter.save_pretrained(tmp_path / "saved")
        assert load_checkpoint(tmp_path / "saved").info.fingerprint == inverter.info.fingerprint
        path = tiny_checkpoint / "config.json"
        old = json.loads(path.read_text())
        del old["fingerprint"], old["model"]["norm_epsilon"]
        path.write_text(json.dumps(old))
        assert load_checkpoint(tiny_checkpoint).info.fingerprint is None

    def test_the_command_shows_the_warning(self, inverter, run_cli, tmp_path, caplog):
        inverter.save_pretrained(tmp_path / "saved")
        for name, given in (("own", centred(5, seed=4)), ("other", -centred(5, seed=4))):
            np.save(tmp_path / f"{name}.npy", given)
            ended = run_cli("invert", tmp_path / f"{name}.npy", "--model", tmp_path / "saved", "--json")
            assert ended.code == 0, ended.err
            assert ("do not look like" in caplog.text) == (name == "other")
            assert len(ended.out.splitlines()) == 5


def centred(rows: int, seed: int = 3) -> np.ndarray:
    """Vectors of 16 numbers around a mean."""
    drawn = np.linspace(-1, 1, 16) + 0.5 * np.random.default_rng(seed).normal(size=(rows, 16))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


class TestScaledVectors:
    """Vectors that were multiplied for storage are the encoder's own."""

    @pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
    def test_one_factor_for_all_raises_no_doubt_and_is_named(self, fingerprint, factor):
        scaled = factor * vectors(20)
        assert fingerprint.doubts(scaled) == []
        assert find_scale(scaled, fingerprint.norm) == pytest.approx(factor)
        assert f"multiplied by about {factor:.3g}." in describe_scale(scaled, fingerprint.norm)

    def test_whole_numbers_raise_no_doubt_though_each_vector_has_its_own_factor(self, fingerprint):
        drawn = vectors(5)
        codes = np.rint(127 * drawn / np.abs(drawn).max(axis=1, keepdims=True)).astype(np.int8).astype(np.float32)
        assert fingerprint.doubts(codes) == []
        assert "rounded to whole numbers" in describe_scale(codes, fingerprint.norm)

    def test_another_encoder_is_noticed_however_its_vectors_are_scaled(self, fingerprint):
        (doubt,) = fingerprint.doubts(7.0 * vectors(20, mean=-MEAN[::-1]))
        assert "deviate from its means" in doubt

    def test_lengths_of_all_kinds_are_doubted(self, fingerprint):
        (doubt,) = fingerprint.doubts(vectors(20) * np.linspace(1, 5, 20)[:, None])
        assert "one has the length" in doubt

    def test_vectors_as_they_were_made_have_no_scale(self, fingerprint):
        assert find_scale(vectors(20), fingerprint.norm) is None
        assert describe_scale(vectors(20), fingerprint.norm) is None
