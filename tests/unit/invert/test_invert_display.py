"""How ``unembed invert`` shows its work: every pass, and in a terminal."""

import io
import re
import sys

import numpy as np
import pytest
from rich.console import Console


class TestTrace:
    def test_every_pass_is_in_the_json(self, records):
        (record,) = records("the cat", "--trace", "--steps", 3, "--length", 6)
        passes = record["trace"]
        assert [one["pass"] for one in passes] == [1, 2, 3]
        assert passes[-1]["tokens"] == record["tokens"]
        assert passes[-1]["confidences"] == record["confidences"]
        before = [None] * 6
        for one in passes:
            assert one["changed"] == [place for place in range(6) if one["tokens"][place] != before[place]]
            assert one["mask_rate"] == pytest.approx(one["tokens"].count(None) / 6)
            assert [sure == 0 for sure in one["confidences"]] == [token is None for token in one["tokens"]]
            before = one["tokens"]

    def test_in_plain_text_every_pass_is_a_line(self, invert):
        lines = invert("the cat", "--trace", "--steps", 2, "--length", 4).out.splitlines()
        assert [line.split("  ")[0] for line in lines] == ["original", "pass 1", "pass 2", "recovered", "compared"]
        assert re.fullmatch(r"pass 1 +\d+% masked  .*███.*", lines[1])
        assert re.fullmatch(r"pass 2 +0% masked  [^█]*", lines[2])

    def test_every_vector_has_its_own(self, records, vector_file):
        for record in records(vector_file, "--trace"):
            assert record["trace"][-1]["tokens"] == record["tokens"]

    def test_hypotheses_are_told_apart(self, invert, records, vector_file):
        arguments = [vector_file, "--trace", "--candidates", 3, "--limit", 1]
        (record,) = records(*arguments)
        assert {one["candidate"] for one in record["trace"]} == {0, 1, 2}
        assert "hypothesis 3" in invert(*arguments).out


class TestTerminal:
    @pytest.fixture(autouse=True)
    def _no_waiting(self, monkeypatch):
        monkeypatch.setattr("unembed.cli.animation.time.sleep", lambda seconds: None)

    @pytest.fixture
    def screen(self, monkeypatch):
        """What a terminal is given, if stdout is one."""
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, width=100, _environ={"TERM": "xterm-256color"})
        monkeypatch.setattr("unembed.cli.animation.make_console", lambda: console)
        return file

    def test_texts_are_animated_one_after_another(self, invert, screen):
        invert("the cat", "a dog", "--length", 3)
        said = screen.getvalue()
        assert "███" in said
        assert "pass 2" in said
        assert said.index("the cat") < said.index("compared") < said.index("a dog")
        assert said.rindex("recovered") < said.rindex("compared")

    def test_few_vectors_are_animated_too(self, invert, screen, vector_file):
        invert(vector_file)
        assert screen.getvalue().count("\x1b[?25h") == 5

    def test_a_search_shows_its_round_its_cosine_and_the_time_left(self, invert, screen):
        invert("the cat", "--guided", "--rounds", 2)
        assert re.search(r"round 2 .*cosine -?\d\.\d+ after \d+ texts embedded, at most \d+ s left", screen.getvalue())

    def test_many_vectors_are_printed(self, invert, screen, tmp_path):
        np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(40, 16)))
        assert invert(tmp_path / "x.npy").out.count("recovered") == 40
        assert screen.getvalue() == ""
        assert invert(tmp_path / "x.npy", "--limit", 2).out == ""
        assert screen.getvalue()

    @pytest.mark.parametrize("option", ["--no-animation", "--json", "--trace"])
    def test_it_can_be_turned_off(self, invert, screen, option):
        assert "the cat" in invert("the cat", option).out
        assert screen.getvalue() == ""

    def test_a_dumb_terminal_gets_lines(self, invert, monkeypatch):
        console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
        monkeypatch.setattr("unembed.cli.animation.make_console", lambda: console)
        assert "recovered" in invert("the cat").out
        assert console.file.getvalue() == ""

    def test_a_pipe_is_no_terminal_whatever_the_colours(self, invert, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        out = invert("the cat").out
        assert "recovered" in out
        assert "\x1b" not in out

    def test_the_final_text_is_the_one_that_is_printed(self, invert, records, screen):
        invert("the cat")
        last = screen.getvalue().split("recovered")[-1]
        words = " ".join(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last).split())
        assert words.startswith(records("the cat")[0]["text"] + " (")

    def test_an_interruption_ends_it_cleanly(self, run_cli, tiny_checkpoint, screen, monkeypatch):
        def interrupt(seconds):
            raise KeyboardInterrupt

        monkeypatch.setattr("unembed.cli.animation.time.sleep", interrupt)
        ended = run_cli("invert", "the cat", "-m", tiny_checkpoint)
        assert ended.code == 1
        assert "Interrupted." in ended.err
        assert screen.getvalue().endswith("\x1b[?25h")

    def test_a_bar_on_stderr_leaves_the_results_on_stdout(self, vector_file, invert, monkeypatch, capsys):
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        ended = invert(vector_file)
        assert ended.out.count("recovered") == 5
        assert "Inverting" in ended.err
