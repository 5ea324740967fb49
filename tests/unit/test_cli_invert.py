"""``unembed invert``, with an inverter that has learnt nothing."""

import io
import json
import re
import signal
import sys

import numpy as np
import pytest
from rich.console import Console

from unembed.cli.interrupt import early_end
from unembed.config import SEARCHES, STRATEGIES, GuidedConfig
from unembed.decoding.guided.search import Search
from unembed.inverter import Inverter

BLIND = [strategy for strategy in STRATEGIES if strategy not in SEARCHES]


@pytest.fixture(autouse=True)
def asked(monkeypatch, fake_encoder):
    questions = []

    def load(name, **options):
        questions.append({"name": name} | options)
        return fake_encoder

    monkeypatch.setattr("unembed.encoders.loading.load_encoder", load)
    return questions


@pytest.fixture
def invert(run_cli, tiny_checkpoint):
    """Runs ``unembed invert`` with the tiny inverter; it must end well."""

    def invert(*arguments):
        ended = run_cli("invert", *arguments, "-m", tiny_checkpoint)
        assert ended.code == 0, ended.err
        return ended

    return invert


@pytest.fixture
def refused(run_cli, tiny_checkpoint):
    """Runs ``unembed invert`` with the tiny inverter; it must end as a mistake does."""

    def refused(*arguments):
        ended = run_cli("invert", *arguments, "-m", tiny_checkpoint)
        assert ended.code == 2, ended
        assert "Traceback" not in ended.err
        return " ".join(ended.err.split())

    return refused


@pytest.fixture
def records(invert):
    """The JSON objects that ``unembed invert --json`` prints."""
    return lambda *arguments: [json.loads(line) for line in invert(*arguments, "--json").out.splitlines()]


@pytest.fixture
def vectors():
    found = np.random.default_rng(0).normal(size=(5, 16))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def vector_file(vectors, tmp_path):
    np.save(tmp_path / "vectors.npy", vectors)
    return tmp_path / "vectors.npy"


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


class TestOptions:
    @pytest.fixture
    def options(self, invert, vector_file, monkeypatch):
        """The options that reach the decoder, and the lengths."""
        seen = []
        decode = Inverter.decode

        def listen(self, embeddings, options, **others):
            seen.append((options, others))
            return decode(self, embeddings, options, **others)

        monkeypatch.setattr(Inverter, "decode", listen)

        def run(*arguments):
            invert(vector_file, *arguments)
            return seen[-1]

        return run

    @pytest.mark.parametrize("strategy", BLIND)
    def test_every_blind_strategy_gives_texts(self, records, vector_file, strategy):
        found = records(vector_file, "--strategy", strategy)
        assert [record["strategy"] for record in found] == [strategy] * 5
        assert all(record["encoder_calls"] == 0 for record in found)

    def test_they_reach_the_decoder(self, options):
        given, others = options(
            *("--strategy", "euler", "--steps", 3, "--candidates", 2, "--guidance", 0.5, "--length", 4),
            *("--temperature", 0.7, "--top-k", 9, "--seed", 5, "--batch-size", 3),
        )
        assert (given.strategy, given.steps, given.candidates) == ("euler", 3, 2)
        assert (given.guidance, given.temperature, given.top_k, given.seed) == (0.5, 0.7, 9, 5)
        assert set(others["lengths"]) == {4}
        assert others["batch_size"] == 3

    def test_what_is_not_said_is_left_to_the_configuration(self, options):
        from unembed.config import DecodingConfig

        assert options()[0] == DecodingConfig()

    def test_the_same_seed_gives_the_same_bytes(self, invert, vector_file):
        runs = [invert(vector_file, "--strategy", "euler", "--json", "--seed", seed).out for seed in (1, 1, 2)]
        assert runs[0] == runs[1]
        assert runs[0] != runs[2]

    def test_guided_asks_the_encoder(self, records, vector_file, asked):
        found = records(vector_file, "--guided", "--rounds", 1, "--candidates", 2, "--limit", 2)
        assert [question["name"] for question in asked] == ["fake"]
        assert all(record["strategy"] == "guided" and record["encoder_calls"] > 0 for record in found)

    def test_reranking_asks_the_encoder_once_for_each_of_its_hypotheses(self, records, vector_file, asked):
        found = records(vector_file, "--rerank", 4, "--limit", 2)
        assert [question["name"] for question in asked] == ["fake"]
        assert all(record["strategy"] == "confidence" and 0 < record["encoder_calls"] <= 4 for record in found)

    def test_guided_round_trips_tell_what_they_cost(self, invert):
        out = invert("the cat", "--guided", "--rounds", 0).out
        assert re.search(r"recovered  .*  \(cosine -?\d\.\d{3}, \d+ texts? embedded\)", out)
        assert "compared   token accuracy" in out

    def test_the_effort_decides_how_long_the_search_goes_on(self, options):
        limits = [options("--guided", "--rounds", 0, "--effort", effort)[0].guided for effort in ("quick", "thorough")]
        assert limits[0].call_limit < GuidedConfig().call_limit < limits[1].call_limit
        assert limits[0].round_patience < GuidedConfig().round_patience < limits[1].round_patience
        given, _ = options("--guided", "--rounds", 0, "--effort", "quick", "--calls", 7)
        assert given.guided.call_limit == 7

    def test_ctrl_c_ends_a_search_with_the_best_text_so_far(self, invert, vector_file, monkeypatch):
        rounds = []
        choose = Search.choose

        def press(self):
            rounds.append(self)
            if len(rounds) == 2:
                signal.raise_signal(signal.SIGINT)
            return choose(self)

        monkeypatch.setattr(Search, "choose", press)
        ended = invert(vector_file, "--guided", "--rounds", 50, "--limit", 1)
        assert "\nrecovered" in ended.out
        assert "Stopped early" in ended.err
        assert len(rounds) <= 3

    def test_ctrl_c_pressed_twice_ends_it_at_once(self, request):
        # A process that was started in the background may ignore Ctrl-C.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
        with early_end() as interrupted:
            signal.raise_signal(signal.SIGINT)
            assert interrupted()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        with early_end(possible=False), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    def test_rounds_and_candidates_are_those_of_the_search(self, options):
        given, _ = options("--strategy", "guided", "--rounds", 2, "--candidates", 3, "--limit", 1)
        assert (given.guided.rounds, given.guided.candidates) == (2, 3)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--strategy", "eulr"], "strategy: Input should be 'sequential'"),
            (["--steps", 0], "steps: Input should be greater than 0"),
            (["--candidates", -1], "candidates: Input should be greater than or equal to 0"),
            (["--rerank", -1], "rerank: Input should be greater than or equal to 0"),
            (["--guided", "--rerank", 2], "rerank is for blind strategies"),
            (["--guidance", -1], "guidance: Input should be greater than or equal to 0"),
            (["--temperature", -1], "temperature: Input should be greater than or equal to 0"),
            (["--seed", -1], "seed: Input should be greater than or equal to 0"),
            (["--guided", "--rounds", -1], "guided.rounds: Input should be greater than or equal to 0"),
            (["--guided", "--strategy", "euler"], "--guided means --strategy guided"),
            (["--rounds", 3], "--rounds is for searches"),
            (["--effort", "quick"], "--effort is for searches"),
            (["--guided", "--effort", "heroic"], "--effort"),
            (["--guided", "--calls", 0], "guided.calls: Input should be greater than 0"),
            (["--length", 13], "--length is 13, but this inverter writes at most 12 tokens"),
            (["--length", 0], "--length"),
            (["--limit", 0], "--limit"),
            (["--engine", "abacus"], "--engine"),
        ],
    )
    def test_a_value_that_cannot_be_is_refused(self, refused, arguments, said):
        assert said in refused("the cat", *arguments)

    def test_the_engine_is_passed_on(self, refused, monkeypatch):
        seen = []

        def load(*arguments, **options):
            from unembed.errors import CheckpointError

            seen.append(options["engine"])
            raise CheckpointError("not here", "")

        monkeypatch.setattr(Inverter, "from_pretrained", load)
        refused("the cat", "--engine", "onnx")
        assert seen == ["onnx"]

    def test_the_help_names_every_strategy(self, run_cli):
        said = run_cli("invert", "--help").out
        assert all(strategy in said for strategy in STRATEGIES)

    def test_the_inverter_that_is_not_named_is_the_one_in_the_package(self, run_cli, monkeypatch, tmp_path):
        monkeypatch.setattr("unembed.hub._PACKAGED", tmp_path / "nowhere")
        ended = run_cli("invert", "the cat")
        assert ended.code == 2
        assert "came without its inverter" in ended.err


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
