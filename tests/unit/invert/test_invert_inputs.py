"""What ``unembed invert`` reads: vectors from files and stdin, and texts."""

import io
import json
import re

import numpy as np
import pytest

from unembed.inverter import Inverter


class TestVectors:
    def test_a_file_gives_a_text_for_each(self, invert, vector_file, asked):
        out = invert(vector_file).out
        assert len(re.findall("^recovered  .* passes", out, re.MULTILINE)) == 5
        assert "original" not in out
        assert "compared" not in out
        assert not asked, "no encoder is needed"

    def test_with_json_each_is_an_object_on_a_line_of_its_own(self, records, vector_file):
        found = records(vector_file)
        assert [record["row"] for record in found] == [0, 1, 2, 3, 4]
        for record in found:
            assert len(record["tokens"]) == len(record["confidences"]) > 0
            assert record["text"]
            assert "original" not in record
            assert "comparison" not in record
            assert "trace" not in record

    def test_one_vector_is_a_file_too(self, records, tmp_path):
        np.save(tmp_path / "vector.npy", np.ones(16, np.float16))
        assert len(records(tmp_path / "vector.npy")) == 1

    def test_no_vectors_give_no_texts(self, invert, tmp_path):
        np.save(tmp_path / "none.npy", np.empty((0, 16), np.float32))
        ended = invert(tmp_path / "none.npy", "--json")
        assert ended.out == ""
        assert "no vectors" in ended.err

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ("{folder}/db", "is a folder"),
            ("chorma:{folder}/db#x", "did you mean 'chroma'?"),
            ("db", "db is a folder"),
            ("missing.json", "There is no file missing.json"),
            ("missing.pkl", "There is no file missing.pkl"),
            ("./missing", "There is no file missing"),
            ("mysql://me:hunter2@host/db", "mysql://me:***@host/db"),
        ],
    )
    def test_what_is_meant_as_a_store_is_not_taken_for_a_text(self, refused, tmp_path, monkeypatch, given, problem):
        (tmp_path / "db").mkdir()
        monkeypatch.chdir(tmp_path)
        message = refused(given.format(folder=tmp_path))
        assert problem in message
        assert "hunter2" not in message

    def test_every_format_gives_the_same_texts(self, records, vectors, vector_file, tmp_path):
        (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps({'e': row})}\n" for row in vectors.tolist()))
        np.savetxt(tmp_path / "x.csv", vectors, delimiter=",")
        wanted = [record["text"] for record in records(vector_file)]
        for name in ("x.jsonl", "x.csv"):
            assert [record["text"] for record in records(tmp_path / name)] == wanted

    @pytest.mark.parametrize("arguments", [[], ["-"]])
    def test_stdin_has_a_vector_on_each_line(self, records, vectors, vector_file, monkeypatch, arguments):
        lines = [json.dumps(vectors[0].tolist()), " ".join(map(str, vectors[1])), ",".join(map(str, vectors[2]))]
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
        wanted = [record["text"] for record in records(vector_file, "--limit", 3)]
        assert [record["text"] for record in records(*arguments)] == wanted

    def test_only_the_first_so_many_are_read(self, records, vector_file):
        assert [record["row"] for record in records(vector_file, "--limit", 2)] == [0, 1]

    def test_a_column_can_be_chosen(self, records, vectors, vector_file, tmp_path):
        np.savez(tmp_path / "x.npz", a=vectors[:2], b=vectors[2:])
        wanted = [record["text"] for record in records(vector_file)]
        assert [record["text"] for record in records(tmp_path / "x.npz", "--column", "b")] == wanted[2:]

    def test_the_batch_size_changes_nothing_but_the_memory(self, records, vector_file):
        texts = [[record["text"] for record in records(vector_file, "--batch-size", size)] for size in (1, 2, 64)]
        assert texts[0] == texts[1] == texts[2]

    def test_rows_are_counted_over_all_batches(self, records, tmp_path):
        np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(19, 16)))
        assert [record["row"] for record in records(tmp_path / "x.npy", "--batch-size", 1)] == list(range(19))

    def test_vectors_of_another_norm_are_warned_of_once_with_the_encoders_name(self, invert, vectors, tmp_path, caplog):
        np.save(tmp_path / "x.npy", np.tile(3 * vectors, (4, 1)))
        invert(tmp_path / "x.npy", "--batch-size", 1)
        (warning,) = caplog.messages
        assert "one has the length 3" in warning
        assert "fake" in warning

    def test_vectors_of_the_encoders_norm_are_not(self, invert, vectors, tmp_path, caplog):
        np.save(tmp_path / "x.npy", vectors.astype(np.float16))
        invert(tmp_path / "x.npy")
        assert caplog.messages == []

    def test_a_dimension_that_does_not_fit_names_the_encoder(self, refused, tmp_path):
        np.save(tmp_path / "x.npy", np.ones((2, 15)))
        said = refused(tmp_path / "x.npy")
        assert "this inverter reads 16 numbers each" in said
        assert "trained for fake" in said


class TestRoundTrip:
    def test_it_goes_through_the_encoder_that_the_inverter_names(self, records, asked):
        found = records("the cat sleeps", "a dog", "--steps", 2)
        nothing = dict.fromkeys(("prompt", "revision", "task", "truncate_dim"))
        assert asked == [{"name": "fake", "device": "auto"} | nothing]
        assert [record["original"] for record in found] == ["the cat sleeps", "a dog"]
        assert all(record["passes"] <= 2 for record in found)

    def test_an_encoder_that_lies_elsewhere_can_be_pointed_at(self, invert, asked, tmp_path):
        out = invert("the cat", "--encoder", tmp_path / "fake").out
        assert asked[0]["name"] == str(tmp_path / "fake")
        assert "original   the cat\n" in out

    def test_another_encoder_is_refused(self, refused, fake_encoder):
        fake_encoder.description = fake_encoder.description.model_copy(update={"name": "other"})
        said = refused("the cat")
        assert "'fake'" in said
        assert "'other'" in said

    def test_the_comparison_is_that_of_the_two_texts(self, records, fake_encoder):
        (record,) = records("The cat sleeps.")
        original, again = fake_encoder.encode(["The cat sleeps.", record["text"]])
        recovered, reference = record["tokens"], ["the", "cat", "sleeps", "."]
        same = sum(ours == theirs for ours, theirs in zip(recovered, reference, strict=False))
        assert record["comparison"]["token_accuracy"] == pytest.approx(same / 4)
        assert record["comparison"]["exact_match"] == float(recovered == reference)
        assert record["comparison"]["cosine"] == pytest.approx(float(original @ again), abs=1e-5)

    def test_what_is_recovered_exactly_is_said_to_be(self, invert, monkeypatch):
        """The inverter knows nothing, so one that knows the answer stands in for it."""
        from dataclasses import replace

        decode = Inverter.decode

        def know(self, *arguments, **options):
            ids = self.tokenizer.encode("the cat sleeps.", add_special_tokens=False).ids
            for step in decode(self, *arguments, **options):
                step.canvas[step.final] = step.canvas.new_tensor(ids)
                yield replace(step)

        monkeypatch.setattr(Inverter, "decode", know)
        out = invert("The CAT sleeps.", "--length", 4).out
        assert "recovered  the cat sleeps.  (" in out
        assert "compared   token accuracy 100%, token F1 100%, exact match yes, cosine 1.000\n" in out

    def test_a_text_that_fits_is_not_cut(self, invert, records):
        text = "the cat sleeps on the warm mat"
        assert "cut to" not in invert(text).out
        assert records(text)[0]["embedded"] == text

    def test_a_text_longer_than_the_canvas_is_cut_and_said_to_be(self, invert, records, fake_encoder):
        text = "the cat sleeps on the warm mat " * 3
        cut = "the cat sleeps on the warm mat the cat sleeps on the"
        assert f"cut to     {cut}  (the first 12 of 21 tokens: " in invert(text).out
        assert cut in fake_encoder.seen
        assert text not in fake_encoder.seen
        (record,) = records(text)
        assert (record["original"], record["embedded"]) == (text, cut)

    def test_a_text_without_tokens_is_refused(self, refused):
        assert "no tokens" in refused("  ")

    def test_the_limit_is_for_texts_too(self, records):
        assert [record["original"] for record in records("the cat", "a dog", "--limit", 1)] == ["the cat"]

    def test_half_a_character_from_the_shell_is_survived(self, invert):
        assert "original   the cat ?\n" in invert("the cat \udce9").out


class TestSources:
    def test_a_name_of_a_file_that_is_not_there_is_no_text(self, refused):
        assert "There is no file vectors.npy" in refused("vectors.npy")

    def test_a_file_of_another_format_is_no_text(self, refused, tmp_path):
        (tmp_path / "vectors.pt").write_bytes(b"torch")
        assert "unknown format" in refused(tmp_path / "vectors.pt")

    def test_a_very_long_text_is_no_file(self, invert):
        assert "cut to" in invert("the cat sleeps. " * 500).out

    @pytest.mark.parametrize("other", ["the cat", "more.npy"])
    def test_a_file_comes_by_itself(self, refused, vector_file, other):
        assert "one file of vectors alone" in refused(vector_file, other)

    def test_nothing_from_a_terminal_is_a_mistake(self, refused, monkeypatch):
        monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
        assert "nothing to invert" in refused()

    def test_bytes_on_stdin_are_refused(self, refused, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\x93NUMPY\x01"), encoding="utf-8"))
        assert "stdin is not text" in refused("-")

    def test_a_bad_line_on_stdin_is_named(self, refused, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{'1 ' * 16}\n1 2 x\n"))
        assert "stdin, line 2: 'x' is not a number" in refused("-")
