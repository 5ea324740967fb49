"""The options of ``unembed invert``, and how it ends early."""

import json
import re
import signal

import numpy as np
import pytest

from unembed.cli.interrupt import early_end
from unembed.config import SEARCHES, STRATEGIES, GuidedConfig
from unembed.decoding.guided.search import Search
from unembed.inverter import Inverter

BLIND = [strategy for strategy in STRATEGIES if strategy not in SEARCHES]


class TestWithoutAStrategy:
    """An inverter with a surrogate searches for a few vectors; one with a writer writes many."""

    @pytest.fixture
    def strategies(self, run_cli, searching_checkpoint, vectors, tmp_path):
        """The strategies of as many vectors, each once."""

        def strategies(count, *arguments):
            np.save(tmp_path / "some.npy", np.resize(vectors, (count, vectors.shape[1])))
            ended = run_cli("invert", tmp_path / "some.npy", "--json", *arguments, "-m", searching_checkpoint)
            assert ended.code == 0, ended.err
            found = [json.loads(line)["strategy"] for line in ended.out.splitlines()]
            assert found
            return set(found)

        return strategies

    def test_a_few_are_searched_and_many_are_written(self, strategies):
        assert strategies(2) == {"surrogate"}
        assert strategies(17) == {"writer"}
        assert strategies(17, "--limit", 3, "--calls", 8) == {"surrogate"}

    def test_an_option_of_a_kind_of_strategy_chooses_that_kind(self, strategies):
        assert strategies(2, "--steps", 3) == {"confidence"}
        assert strategies(2, "--rerank", 2) == {"confidence"}
        assert strategies(17, "--rounds", 0) == {"surrogate"}

    def test_a_mean_is_read(self, run_cli, searching_checkpoint, vector_file):
        ended = run_cli("invert", vector_file, "--mean", "--json", "-m", searching_checkpoint)
        assert json.loads(ended.out)["strategy"] == "confidence"

    def test_a_stopped_run_goes_on_as_it_began(self, run_cli, searching_checkpoint, vectors, tmp_path):
        np.save(tmp_path / "many.npy", np.resize(vectors, (18, vectors.shape[1])))
        command = ("invert", tmp_path / "many.npy", "--output", tmp_path / "texts.jsonl", "-m", searching_checkpoint)
        assert run_cli(*command).code == 0
        lines = (tmp_path / "texts.jsonl").read_text().splitlines()
        (tmp_path / "texts.jsonl").write_text("\n".join(lines[:10]) + "\n")
        assert run_cli(*command, "--resume").code == 0
        whole = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
        assert [(each["row"], each["strategy"]) for each in whole] == [(row, "writer") for row in range(18)]


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
    def test_every_blind_strategy_gives_texts(self, run_cli, writing_checkpoint, vector_file, strategy):
        ended = run_cli("invert", vector_file, "--strategy", strategy, "--json", "-m", writing_checkpoint)
        assert ended.code == 0, ended.err
        found = [json.loads(line) for line in ended.out.splitlines()]
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
            (["--strategy", "confidence", "--rounds", 3], "--rounds is for searches"),
            (["--strategy", "euler", "--effort", "quick"], "--effort is for searches"),
            (["--rounds", 3], "This inverter has no surrogate of its encoder. Choose another strategy, such as guided"),
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
