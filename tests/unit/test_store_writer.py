"""Filling a store: stopped anywhere, damaged anywhere, it ends up the same."""

import errno
import os

import numpy as np
import pytest

from unembed import files
from unembed.errors import DiskFullError, EncoderError, StoreError, UnembedError
from unembed.files import locked_folder
from unembed.store import Store, embed_texts

TEXTS = [f"the {size} {animal} {verb}" for size in ("big", "small", "old", "red") for animal in ("cat", "dog", "bird")
         for verb in ("sleeps", "runs", "sings")]  # fmt: skip
SHARD = 8
SHARDS = 5  # of 36 texts, the last with four


def fill(folder, encoder, texts=TEXTS, **options):
    return embed_texts(lambda: iter(texts), folder, encoder, **{"canvas_length": 12, "shard_lines": SHARD} | options)


def content(folder):
    """Every file's bytes, so that nothing left behind goes unseen."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def whole(tmp_path, fake_encoder):
    """A store made in one go."""
    fill(tmp_path / "whole", type(fake_encoder)(fake_encoder.tokenizer))
    return content(tmp_path / "whole")


class TestGoingOn:
    @pytest.mark.parametrize("shards", range(1, SHARDS + 1))
    def test_a_run_stopped_after_any_shard_goes_on_without_embedding_a_text_twice(
        self, tmp_path, fake_encoder, whole, shards
    ):
        def stop(shard):
            if shard.number == shards - 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fill(tmp_path / "store", fake_encoder, on_shard=stop)
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole
        assert fake_encoder.seen == TEXTS

    def test_a_run_stopped_within_a_shard_repeats_that_shard_only(self, tmp_path, fake_encoder, whole, monkeypatch):
        encode = fake_encoder.encode

        def fail_in_the_third(texts, **options):
            vectors = encode(texts, **options)
            if fake_encoder.calls == 3:
                raise ConnectionError("the encoder is gone")
            return vectors

        monkeypatch.setattr(fake_encoder, "encode", fail_in_the_third)
        with pytest.raises(ConnectionError):
            fill(tmp_path / "store", fake_encoder)
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole
        assert fake_encoder.seen == [*TEXTS[: 3 * SHARD], *TEXTS[2 * SHARD :]]

    def test_a_finished_store_is_not_touched_again(self, tmp_path, fake_encoder):
        fill(tmp_path / "store", fake_encoder)
        before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
        calls, told = fake_encoder.calls, []
        manifest = fill(tmp_path / "store", fake_encoder, on_shard=told.append)
        assert fake_encoder.calls == calls
        assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == before
        assert [shard.number for shard in told] == list(range(SHARDS))
        assert manifest.complete

    @pytest.mark.parametrize("missing", [{"manifest.json"}, {"manifest.json", "tokenizer.json"}, {"tokenizer.json"}])
    def test_a_store_killed_before_its_first_files_were_there_is_begun_anew(
        self, tmp_path, fake_encoder, whole, missing
    ):
        fill(tmp_path / "store", fake_encoder)
        for name in missing:
            (tmp_path / "store" / name).unlink()
        (tmp_path / "store" / ".tokens-00000.npy.0a1b2c3d.tmp").write_text("half a sh")
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole

    def test_every_shard_is_told_once_with_the_lines_it_covers(self, tmp_path, fake_encoder):
        told = []
        manifest = fill(tmp_path / "store", fake_encoder, on_shard=told.append)
        assert [shard.lines for shard in told] == [8, 8, 8, 8, 4]
        assert told == list(manifest.shards)

    def test_the_source_is_read_no_further_than_the_shard_in_work(self, tmp_path, fake_encoder):
        """So memory does not grow with the corpus."""
        read, ahead = 0, []

        def lines():
            nonlocal read
            read = 0
            for text in TEXTS:
                read += 1
                yield text

        def look(shard):
            ahead.append(read - SHARD * (shard.number + 1))

        embed_texts(lines, tmp_path / "store", fake_encoder, canvas_length=12, shard_lines=SHARD, on_shard=look)
        assert len(ahead) == SHARDS
        assert max(ahead) <= 0

    def test_two_at_once_are_refused(self, tmp_path, fake_encoder):
        pytest.importorskip("fcntl")
        with locked_folder(tmp_path / "store"), pytest.raises(StoreError, match="Another process") as caught:
            fill(tmp_path / "store", fake_encoder)
        assert caught.value.remedy


class TestDamage:
    @pytest.mark.parametrize("name", ["tokens-00001.npy", "embeddings-00001.npy"])
    @pytest.mark.parametrize("damage", ["flipped", "truncated", "deleted", "emptied"])
    def test_a_damaged_shard_is_noticed_and_only_that_one_is_made_again(
        self, tmp_path, fake_encoder, whole, name, damage
    ):
        fill(tmp_path / "store", fake_encoder)
        path = tmp_path / "store" / name
        content_before = bytearray(path.read_bytes())
        content_before[-3] ^= 1
        if damage == "deleted":
            path.unlink()
        else:
            keep = {"flipped": len(content_before), "truncated": len(content_before) - 9, "emptied": 0}[damage]
            path.write_bytes(content_before[:keep])
        with pytest.raises(StoreError, match=name) as caught:
            Store(tmp_path / "store", verify=True)
        assert "unembed embed" in caught.value.remedy
        if damage != "flipped":
            with pytest.raises(StoreError, match=name):
                Store(tmp_path / "store")
        fake_encoder.seen.clear()
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole
        assert fake_encoder.seen == TEXTS[SHARD : 2 * SHARD]

    def test_a_repair_that_is_stopped_goes_on_too(self, tmp_path, fake_encoder, whole):
        fill(tmp_path / "store", fake_encoder)
        for number in (0, 2, 4):
            (tmp_path / "store" / f"tokens-{number:05d}.npy").write_text("")

        def stop(shard):
            if shard.number == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fill(tmp_path / "store", fake_encoder, on_shard=stop)
        fake_encoder.seen.clear()
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole
        assert fake_encoder.seen == TEXTS[4 * SHARD :]

    @pytest.mark.parametrize("damaged", ["", "{}", '{"version": "1.0"', '{"format": 1}'])
    def test_a_damaged_tokenizer_is_written_again(self, tmp_path, fake_encoder, whole, damaged):
        fill(tmp_path / "store", fake_encoder)
        (tmp_path / "store" / "tokenizer.json").write_text(damaged)
        with pytest.raises(StoreError, match=r"tokenizer\.json") as caught:
            Store(tmp_path / "store").tokenizer()
        assert "unembed embed" in caught.value.remedy
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole

    @pytest.mark.parametrize("damaged", ["", "{}", "[]", '{"format": 1', '{"format": 99}', "\udcff"])
    def test_a_damaged_manifest_is_an_error_with_a_remedy(self, tmp_path, fake_encoder, damaged):
        fill(tmp_path / "store", fake_encoder)
        (tmp_path / "store" / "manifest.json").write_bytes(damaged.encode(errors="surrogateescape"))
        for use in (lambda: Store(tmp_path / "store"), lambda: fill(tmp_path / "store", fake_encoder)):
            with pytest.raises(StoreError, match=r"manifest\.json") as caught:
                use()
            assert "Remove" in caught.value.remedy


class TestAnotherStore:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"name": "other"}, "encoder name 'fake', not 'other'"),
            ({"revision": "2"}, "encoder revision '1', not '2'"),
            ({"prompt": "query: "}, "encoder prompt None, not 'query: '"),
            ({"pooling": "cls"}, "encoder pooling 'mean', not 'cls'"),
            ({"normalised": False}, "encoder normalised True, not False"),
        ],
    )
    def test_another_encoder_is_refused_and_the_difference_named(self, tmp_path, fake_encoder, change, reason):
        fill(tmp_path / "store", fake_encoder)
        before = content(tmp_path / "store")
        fake_encoder.description = fake_encoder.description.model_copy(update=change)
        with pytest.raises(StoreError, match=reason) as caught:
            fill(tmp_path / "store", fake_encoder)
        assert "`output`" in caught.value.remedy
        assert content(tmp_path / "store") == before

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"canvas_length": 16}, "canvas length 12, not 16"),
            ({"shard_lines": 9}, "lines per shard 8, not 9"),
            ({"texts": [*TEXTS[:-1], "a new line"]}, "another source text"),
            ({"texts": TEXTS[:-1]}, "another source text"),
        ],
    )
    def test_another_canvas_or_source_is_refused_and_named(self, tmp_path, fake_encoder, options, reason):
        fill(tmp_path / "store", fake_encoder)
        before = content(tmp_path / "store")
        with pytest.raises(StoreError, match=reason):
            fill(tmp_path / "store", fake_encoder, **options)
        assert content(tmp_path / "store") == before

    def test_another_tokenizer_is_refused_and_named_once(self, tmp_path, fake_encoder):
        fill(tmp_path / "store", fake_encoder)
        tokenizer = type(fake_encoder.tokenizer).from_str(fake_encoder.tokenizer.to_str())
        tokenizer.add_tokens(["zebra"])
        with pytest.raises(StoreError, match=r"other settings: another tokenizer\."):
            fill(tmp_path / "store", type(fake_encoder)(tokenizer))


class TestBadEncoders:
    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e6])
    def test_values_that_cannot_be_stored_are_refused_with_the_text(self, tmp_path, fake_encoder, monkeypatch, value):
        encode = fake_encoder.encode

        def encode_badly(texts, **options):
            vectors = encode(texts, **options)
            vectors[3, 2] = value
            return vectors

        monkeypatch.setattr(fake_encoder, "encode", encode_badly)
        with pytest.raises(EncoderError, match=TEXTS[3]) as caught:
            fill(tmp_path / "store", fake_encoder)
        assert caught.value.remedy

    @pytest.mark.parametrize("shape", [(8, 15), (7, 16), (8,), (8, 16, 1)])
    def test_a_wrong_shape_is_refused_with_both_shapes(self, tmp_path, fake_encoder, monkeypatch, shape):
        monkeypatch.setattr(fake_encoder, "encode", lambda texts, **_: np.ones(shape, np.float32))
        with pytest.raises(EncoderError, match=r"expected \(8, 16\)") as caught:
            fill(tmp_path / "store", fake_encoder)
        assert str(shape) in caught.value.problem

    def test_what_was_finished_before_stays(self, tmp_path, fake_encoder, whole, monkeypatch):
        with monkeypatch.context() as patch:
            encode = fake_encoder.encode
            patch.setattr(
                fake_encoder,
                "encode",
                lambda texts, **options: encode(texts, **options) * (np.nan if fake_encoder.calls == 3 else 1),
            )
            with pytest.raises(EncoderError):
                fill(tmp_path / "store", fake_encoder)
        assert Store(tmp_path / "store", verify=True).manifest.lines == 2 * SHARD
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole


class TestPlaces:
    @pytest.mark.parametrize("allowed", [0, 3, 7, 12])
    def test_a_disk_that_fills_up_is_named_and_the_run_completes_once_there_is_space(
        self, tmp_path, fake_encoder, whole, monkeypatch, allowed
    ):
        fsync, synced = os.fsync, []

        def fsync_until_full(handle):
            synced.append(handle)
            if len(synced) > allowed:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(files.os, "fsync", fsync_until_full)
            with pytest.raises(DiskFullError) as caught:
                fill(tmp_path / "store", fake_encoder)
        assert "same command again" in caught.value.remedy
        assert not [path for path in (tmp_path / "store").iterdir() if path.suffix == ".tmp"]
        fill(tmp_path / "store", fake_encoder)
        assert content(tmp_path / "store") == whole

    def test_a_file_where_the_folder_should_be_is_refused(self, tmp_path, fake_encoder):
        (tmp_path / "store").write_text("mine")
        with pytest.raises(UnembedError, match="store") as caught:
            fill(tmp_path / "store", fake_encoder)
        assert caught.value.remedy
        assert (tmp_path / "store").read_text() == "mine"

    def test_a_folder_without_the_right_to_write_is_refused(self, tmp_path, fake_encoder, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(files.Path, "touch", denied)
        with pytest.raises(UnembedError, match="Permission denied") as caught:
            fill(tmp_path / "store", fake_encoder)
        assert "permissions" in caught.value.remedy


class TestTexts:
    def test_lines_that_say_nothing_are_left_out_and_counted(self, tmp_path, fake_encoder):
        texts = ["", "the cat", "東京", "a dog", "[MASK]"]
        manifest = fill(tmp_path / "store", fake_encoder, texts)
        assert (manifest.rows, manifest.lines) == (2, 5)
        assert fake_encoder.seen == ["the cat", "a dog"]

    def test_a_shard_without_a_row_is_no_trouble(self, tmp_path, fake_encoder):
        texts = ["the cat"] * SHARD + [""] * SHARD + ["a dog"] * 3
        fill(tmp_path / "store", fake_encoder, texts)
        store = Store(tmp_path / "store", verify=True)
        assert [shard.rows for shard in store.manifest.shards] == [SHARD, 0, 3]
        assert store.tokenizer().decode(store.tokens(np.array([SHARD]))[0][:2]) == "a dog"
        assert fill(tmp_path / "store", fake_encoder, texts).complete

    @pytest.mark.parametrize("texts", [[], ["", "  ", "東京"]])
    def test_a_source_that_says_nothing_at_all_is_an_error(self, tmp_path, fake_encoder, texts):
        for _ in range(2):
            with pytest.raises(StoreError, match="No line") as caught:
                fill(tmp_path / "store", fake_encoder, texts)
            assert caught.value.remedy

    def test_half_a_character_in_a_line_is_no_trouble(self, tmp_path, fake_encoder):
        assert fill(tmp_path / "store", fake_encoder, ["the cat \ud83d", "a dog"]).rows == 2

    def test_the_vectors_are_those_of_what_the_tokens_say(self, tmp_path, fake_encoder):
        fill(tmp_path / "store", fake_encoder, ["The [MASK] CAT sleeps on the warm mat, 東京 and the dog runs."])
        store = Store(tmp_path / "store")
        ids = store.tokens(np.array([0]))[0][: store.lengths[0]]
        said = store.tokenizer().decode(ids.tolist())
        assert said == "the cat sleeps on the warm mat, and the dog runs"
        np.testing.assert_allclose(store.embeddings(np.array([0])), fake_encoder.encode([said]), atol=1e-3)
