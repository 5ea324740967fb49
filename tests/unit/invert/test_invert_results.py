"""What ``unembed invert`` tells of each vector, and files of results that can be continued."""

import io
import json
import signal
import sys

import numpy as np
import pytest

from unembed.inverter import Inverter


@pytest.fixture
def named_file(vectors, tmp_path):
    """Vectors with ids and texts of their own."""
    path = tmp_path / "named.jsonl"
    records = [{"id": f"doc-{row}", "text": f"text {row}", "e": vector.tolist()} for row, vector in enumerate(vectors)]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def texts_in(path):
    """Rows and texts of a file of results; confidences depend on the batches in their last digits."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [(record["row"], record["text"]) for record in records]


class TestResults:
    def test_ids_and_stored_texts_of_the_source_are_in_the_records(self, records, named_file):
        found = records(named_file)
        assert [record["id"] for record in found] == [f"doc-{row}" for row in range(5)]
        assert [record["stored_text"] for record in found] == [f"text {row}" for row in range(5)]

    def test_and_in_the_lines(self, invert, named_file):
        out = invert(named_file, "--limit", 1).out
        assert out.startswith("vector     doc-0\nstored     text 0\nrecovered")

    def test_their_columns_can_be_chosen(self, records, named_file):
        found = records(named_file, "--id-column", "text", "--text-column", "id", "--limit", 1)
        assert (found[0]["id"], found[0]["stored_text"]) == ("text 0", "doc-0")

    def test_whole_numbers_are_scaled_back_without_a_warning(self, invert, vectors, tmp_path, caplog):
        np.save(tmp_path / "x.npy", np.rint(100 * vectors).astype(np.int8))
        ended = invert(tmp_path / "x.npy")
        assert "and rounded to whole numbers. They are scaled back." in ended.err
        assert caplog.messages == []

    @pytest.mark.parametrize(("factor", "problem"), [(1e30, "longer than 1e+09"), (1e-30, "shorter than 1e-09")])
    def test_lengths_that_no_encoder_makes_are_an_error(self, refused, vectors, tmp_path, factor, problem):
        np.save(tmp_path / "x.npy", factor * vectors)
        assert problem in refused(tmp_path / "x.npy")

    def test_the_first_results_do_not_wait_for_the_last_vectors(self, run_cli, tiny_checkpoint, vectors, monkeypatch):
        def lines():
            yield json.dumps(vectors[0].tolist())
            shown.append(sys.stdout.getvalue().count('"row"'))
            yield json.dumps(vectors[1].tolist())

        shown = []
        monkeypatch.setattr("unembed.cli.inputs._stdin", lines)
        monkeypatch.setattr("sys.stdout", io.StringIO())
        run_cli("invert", "-", "--json", "-m", tiny_checkpoint)
        assert shown == [1]

    def test_a_file_of_results_holds_what_json_prints(self, invert, records, vector_file, tmp_path):
        ended = invert(vector_file, "--output", tmp_path / "out" / "texts.jsonl")
        assert ended.out == ""
        written = [json.loads(line) for line in (tmp_path / "out" / "texts.jsonl").read_text().splitlines()]
        assert written == records(vector_file)

    @pytest.mark.parametrize("cut", [0, 1, 40], ids=["whole", "without its end", "in the middle of a line"])
    def test_a_stopped_run_is_continued(self, invert, vector_file, tmp_path, cut):
        whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
        invert(vector_file, "--output", whole)
        invert(vector_file, "--limit", 3, "--output", part)
        part.write_bytes(part.read_bytes()[: -cut or None])
        for _ in range(2):  # the second time there is nothing left to do
            invert(vector_file, "--output", part, "--resume")
            assert texts_in(part) == texts_in(whole)

    def test_texts_are_continued_too(self, invert, tmp_path):
        invert("one", "--output", tmp_path / "x.jsonl")
        for _ in range(2):
            invert("one", "two", "--output", tmp_path / "x.jsonl", "--resume")
        lines = (tmp_path / "x.jsonl").read_text().splitlines()
        assert [json.loads(line)["original"] for line in lines] == ["one", "two"]

    def test_results_are_not_overwritten_nor_continued_from_another_source(self, invert, refused, named_file, tmp_path):
        invert(named_file, "--limit", 2, "--output", tmp_path / "x.jsonl")
        assert "has results already. Continue them with --resume" in refused(
            named_file, "--output", tmp_path / "x.jsonl"
        )
        (tmp_path / "other.jsonl").write_text(named_file.read_text().replace("doc-", "page-"))
        problem = "Row 1 of the results is 'doc-1', but in"
        assert problem in refused(tmp_path / "other.jsonl", "--output", tmp_path / "x.jsonl", "--resume")
        assert "Name it: --output FILE" in refused(named_file, "--resume")
        (tmp_path / "notes.txt").write_text("mine\n")
        assert "holds other lines" in refused(named_file, "--output", tmp_path / "notes.txt", "--resume")
        assert (tmp_path / "notes.txt").read_text() == "mine\n"

    def test_ctrl_c_keeps_what_is_done_and_it_can_be_continued(
        self, run_cli, invert, tiny_checkpoint, vector_file, tmp_path, monkeypatch
    ):
        read = Inverter.read
        asked = []

        def press(self, step, options):
            asked.append(step)
            if len(asked) == 3:
                signal.raise_signal(signal.SIGINT)
            return read(self, step, options)

        command = (vector_file, "--batch-size", 1, "--candidates", 1, "--output")
        with monkeypatch.context() as patch:
            patch.setattr(Inverter, "read", press)
            ended = run_cli("invert", *command, tmp_path / "x.jsonl", "-m", tiny_checkpoint)
        assert ended.code == 1
        done = len((tmp_path / "x.jsonl").read_text().splitlines())
        assert 0 < done < 5
        assert f"Stopped early: {done} texts are done. Run the same command with --resume to continue." in ended.err
        invert(*command, tmp_path / "x.jsonl", "--resume")
        invert(*command, tmp_path / "whole.jsonl")
        assert texts_in(tmp_path / "x.jsonl") == texts_in(tmp_path / "whole.jsonl")
