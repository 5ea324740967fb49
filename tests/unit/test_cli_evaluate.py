"""``unembed evaluate``, with an inverter that has learnt nothing."""

import json
import shutil

import pytest

from unembed.cli.evaluate import short_names

TEXTS = ["the cat sleeps in the house.", "A dog plays in the snow.", "the girl reads.", "two birds sing."]


@pytest.fixture(autouse=True)
def parts(monkeypatch, fake_encoder):
    monkeypatch.setattr("unembed.encoders.loading.load_encoder", lambda name, **options: fake_encoder)
    monkeypatch.setattr("unembed.evaluation.bench.TIMED_TEXTS", 1)
    # Half a minute to load, where it is installed.
    monkeypatch.setattr("unembed.evaluation.load_language_model", lambda: None)


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    return tmp_path / "texts.txt"


@pytest.fixture
def run(run_cli, texts, tiny_checkpoint, tmp_path):
    def run(*arguments):
        quick = ("--protocol", "natural", "--strategy", "confidence", "--bootstrap", 20, "-o", tmp_path / "report")
        return run_cli("evaluate", texts, "-m", tiny_checkpoint, *quick, *arguments)

    return run


def test_a_report_is_written_and_summed_up(run, tmp_path):
    ended = run()
    assert ended.code == 0, ended.err
    assert "texts.txt, protocol natural" in ended.out
    assert "confidence" in ended.out
    assert "random" in ended.out
    assert f"Report: {tmp_path / 'report' / 'report.md'}" in ended.err
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "report.json",
        "report.md",
        "timing.json",
        "figures",
    }


def test_reranking_is_part_of_all_strategies_and_otherwise_asked_for(run, run_cli, texts, tiny_checkpoint, monkeypatch):
    from unembed.evaluation import EvaluationSettings

    seen = []

    def stop(*_, **settings):
        seen.append(settings["rerank"])
        raise KeyboardInterrupt

    monkeypatch.setattr("unembed.evaluation.EvaluationSettings", stop)
    for arguments in ([], ["--rerank", 3]):
        run(*arguments)
    run_cli("evaluate", texts, "-m", tiny_checkpoint)
    assert seen == [EvaluationSettings(("confidence",)).rerank, 3, 8]


def test_progress_is_told_on_stderr_only(run):
    ended = run()
    assert "texts-natural, " in ended.err
    assert "texts-natural, " not in ended.out


def test_json_is_the_whole_report(run, tmp_path):
    ended = run("--json")
    assert json.loads(ended.out) == json.loads((tmp_path / "report" / "report.json").read_text())


def test_the_same_command_writes_the_same_report(run, tmp_path):
    texts = []
    for _ in range(2):
        assert run().code == 0
        texts.append((tmp_path / "report" / "report.json").read_bytes())
    assert texts[0] == texts[1]
    assert str(tmp_path).encode() not in texts[0]


def test_store_and_run_add_their_tables_and_curves(run, tiny_store, tiny_checkpoint, tmp_path):
    shutil.copytree(tiny_checkpoint, tmp_path / "run" / "milestone-000200")
    shutil.copytree(tiny_checkpoint, tmp_path / "run" / "milestone-000100")
    events = [{"kind": "train", "step": step, "samples": step, "elbo": 5.0} for step in (1, 2)]
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    ended = run("--store", tiny_store, "--run", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert "nearest" in ended.out
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    tables = {table["key"]: table for table in report["sections"][0]["tables"]}
    assert [row["name"] for row in tables["milestones"]["rows"]] == ["milestone-000100", "milestone-000200"]
    assert (tmp_path / "report" / "figures" / "training.png").is_file()


def test_the_inverter_that_is_not_named_is_the_one_in_the_package(run_cli, texts, tmp_path, monkeypatch):
    monkeypatch.setattr("unembed.hub._PACKAGED", tmp_path / "nowhere")
    ended = run_cli("evaluate", texts, "--output", tmp_path / "report")
    assert ended.code == 2
    assert "came without its inverter" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strategy", "confidense"], "did you mean 'confidence'?"),
        (["--run", "nowhere"], "There is no run in nowhere"),
        (["--store", "nowhere"], "There is no store in nowhere"),
        (["--protocol", "canvas"], "choose --protocol natural"),
    ],
)
def test_mistakes_are_explained(run, arguments, words):
    ended = run(*arguments)
    assert ended.code == 2
    assert words in ended.err


def test_a_report_that_cannot_be_written_is_told_before_the_work(run, tmp_path, fake_encoder):
    (tmp_path / "file").write_text("")
    ended = run("-o", tmp_path / "file" / "report")
    assert ended.code == 2
    assert "making the folder" in ended.err
    assert fake_encoder.calls == 0


def test_names_are_as_short_as_tells_them_apart():
    assert short_names(["data/a.txt", "/else/b.txt"]) == ["a.txt", "b.txt"]
    assert short_names(["x/run/best", "y/run/best"], parts=2) == ["x/run/best", "y/run/best"]
    assert short_names(["one/a.txt", "two/a.txt"]) == ["one/a.txt", "two/a.txt"]
    assert short_names(["best", "best"]) == ["best", "best"]
