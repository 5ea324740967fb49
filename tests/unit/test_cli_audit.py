"""``unembed audit`` and ``unembed words`` on real stores, with a tiny model: what is written, said and refused."""

import json
import re
from contextlib import contextmanager
from html.parser import HTMLParser

import numpy as np
import pytest

import stores
from unembed.auditing.findings import MEASURED
from unembed.auditing.result import SIGHT, Attack, Example, Row
from unembed.connectors import StorageInfo, VectorBatch, VectorSource
from unembed.report.page import worst_examples

SOMEBODY = ("king", "queen", "cat", "dog", "boy", "girl", "teacher", "doctor", "bird", "horse", "woman", "man")
DOING = ("sleeps at home", "walks in the park", "drinks cold water", "reads a good book", "runs to the sea")
TEXTS = [f"the {who} {what}." for who in SOMEBODY for what in DOING]


@pytest.fixture
def vectors(fake_encoder):
    return fake_encoder.encode(TEXTS)


@pytest.fixture
def with_encoder(fake_encoder, monkeypatch):
    """Lets the command find the encoder, which no name can load."""
    monkeypatch.setattr("unembed.encoders.loading.load_encoder", lambda *arguments, **options: fake_encoder)


class Page(HTMLParser):
    """Checks that every element is closed, and notes what a page would load or run, and where it links to."""

    EMPTY = ("meta", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.links, self.text = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in self.EMPTY:
            self.open.append(tag)
        found = [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        (self.links if tag == "a" else self.loads).extend(found)
        if tag in ("script", "link", "img", "iframe", "object"):
            self.loads.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def audit(run_cli, uri, checkpoint, output, *options):
    options = ("--model", checkpoint, "--output", output, "--bootstrap", 50, *options)
    return run_cli("audit", uri, *options)


def test_a_store_is_audited_against_its_own_texts(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    before = stores.contents(tmp_path / "store")
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20, "--fail-over", 1.0)
    assert ended.code == 0, ended.err
    assert "The encoder is not available" in ended.err
    assert "Encoder: fake" in ended.err
    assert "blind: 20 of 20 vectors" in ended.err
    assert "Below the threshold" in ended.out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["source"]["vectors"] == 60
    assert report["sample"] == 20
    (blind,) = report["attacks"]
    assert blind["known"]
    assert blind["figures"].keys() == {measure.name for measure in MEASURED} - {"cosine"} | set(SIGHT)
    assert len(blind["rows"]) == 20
    assert all(figure["n"] == 20 for figure in blind["figures"].values())
    assert sum(blind["distribution"]) == 20
    assert stores.contents(tmp_path / "store") == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]


def test_the_page_is_whole_loads_nothing_and_says_the_figures(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    text = (tmp_path / "out" / "report.html").read_text()
    page = Page(text)
    assert page.loads == []
    assert not re.search(r"https?://|url\(|@import", text)
    said = " ".join(" ".join(page.text).split())
    assert "What 60 stored vectors give away" in said
    assert f"n = {report['attacks'][0]['n']}" in said
    assert "unembed audit" in said
    for heading in ("Summary", "By length", "By kind of information", "What was assumed", "What to do", "Defences"):
        assert heading in said


def test_texts_are_masked_unless_they_are_asked_for(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20)
    masked = (tmp_path / "out" / "report.html").read_text() + (tmp_path / "out" / "report.json").read_text()
    assert not any(text in masked for text in TEXTS)
    assert "••• •••" in masked
    audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20, "--show-text")
    shown = (tmp_path / "out" / "report.html").read_text()
    assert sum(text in shown for text in TEXTS) == 8


def test_a_report_with_texts_can_be_read_by_its_owner_only(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    for options, private in (((), False), (("--show-text",), True)):
        audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 5, *options)
        for name in ("report.html", "report.json"):
            mode = (tmp_path / "out" / name).stat().st_mode
            assert (mode & 0o077 == 0) == private
            assert mode & 0o600 == 0o600


def test_a_report_is_written_in_every_format_that_is_asked_for(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    formats = ("--format", "sarif", "--format", "junit", "--format", "markdown")
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 5, *formats)
    assert "report.sarif" in ended.err
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["junit.xml", "report.html", "report.json", "report.md", "report.sarif"]
    assert json.loads((tmp_path / "out" / "report.sarif").read_text())["version"] == "2.1.0"


def test_what_got_worse_than_the_baseline_has_an_exit_code_of_its_own(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    options = ("--size", 60, "--fail-over", 1.0, "--baseline", tmp_path / "out" / "report.json")
    missing = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", *options)
    assert missing.code == 2
    assert "No such file" in missing.err
    audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", *options[:4])
    same = audit(run_cli, uri, tiny_checkpoint, tmp_path / "other", *options)
    assert same.code == 0, same.err
    assert "0 of" in same.out.rpartition("Since the baseline,")[2]
    # An earlier audit that recovered nothing at all.
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    nothing = {"value": 0.0, "low": 0.0, "high": 0.0, "n": 60}
    report["attacks"][0]["figures"] |= {"passage_recall": nothing}
    (tmp_path / "out" / "report.json").write_text(json.dumps(report))
    worse = audit(run_cli, uri, tiny_checkpoint, tmp_path / "other", *options)
    assert worse.code == 5
    assert "content words of the best passage" in worse.out.lower()
    assert "Since the baseline" in (tmp_path / "other" / "report.html").read_text()


def test_the_worst_examples_are_those_of_whichever_attacker_got_most():
    def attack(name, *recalls):
        rows = [
            Row(row, row, 1.0, None, {"passage_recall": recall}, [], 0.0, 0.0, 0, 0.0, None, [])
            for row, recall in enumerate(recalls)
        ]
        worst = [Example(row, None, "text", []) for row in range(len(recalls))]
        return Attack(name, len(rows), True, {}, [], [], [], worst, [], None, 0.0, 0.0, rows)

    blind, guided = attack("blind", 0.9, 0.6, 0.5), attack("guided", 0.1, 1.0, 0.2)
    worst = [(by.name, row.row, row.values["passage_recall"]) for by, _, row in worst_examples([blind, guided])]
    assert worst == [("guided", 1, 1.0), ("blind", 0, 0.9), ("blind", 2, 0.5)]


def test_a_text_cannot_change_the_page(run_cli, vectors, tiny_checkpoint, tmp_path):
    texts = [f"<script>alert({row})</script> \" ' &" for row in range(len(vectors))]
    uri = stores.jsonl(tmp_path / "store", vectors, texts)
    audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20, "--show-text")
    text = (tmp_path / "out" / "report.html").read_text()
    assert Page(text).loads == []
    assert Page(text).links == []
    assert "&lt;script&gt;alert" in text


class TestExitCodes:
    @pytest.fixture
    def run(self, run_cli, vectors, tiny_checkpoint, tmp_path):
        uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)

        def run(*options):
            return audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", *options)

        return run

    def test_above_the_threshold_it_is_3(self, run, monkeypatch, tmp_path):
        monkeypatch.setattr("unembed.measures.content.READABLE_FROM", 0.0)
        ended = run("--all", "--fail-over", 0.5)
        assert ended.code == 3
        assert "Above the threshold: the texts are exposed." in ended.out
        assert "Measured: 100% of the texts can be read back" in ended.out
        assert "Above the threshold" in (tmp_path / "out" / "report.html").read_text()

    def test_below_it_is_0(self, run, monkeypatch):
        monkeypatch.setattr("unembed.measures.content.READABLE_FROM", 1.1)
        ended = run("--all", "--fail-over", 0.1)
        assert ended.code == 0
        assert "Below the threshold." in ended.out

    def test_undecided_it_is_4_and_says_what_would_decide(self, run, monkeypatch):
        monkeypatch.setattr("unembed.measures.content.READABLE_FROM", 1.1)
        ended = run("--size", 20, "--fail-over", 0.1)
        assert ended.code == 4
        assert "Undecided: too few vectors for a verdict." in ended.out
        assert re.search(r"vectors would decide it: --size \d+", ended.out)

    def test_misuse_is_2(self, run):
        assert run("--model", "no/such/inverter").code == 2

    def test_they_are_in_the_help(self, run_cli):
        said = " ".join(run_cli("audit", "--help").out.split())
        assert re.search(
            r"0 if the share .* 3 if it is above, 4 if it is undecided, 5 if something got worse .* 2 for a mistake",
            said,
        )


def test_texts_longer_than_the_inverter_writes_get_no_all_clear(
    run_cli, vectors, tiny_checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr("unembed.measures.content.READABLE_FROM", 1.1)
    uri = stores.jsonl(tmp_path / "store", vectors, [f"{text} {' '.join(TEXTS[:9])}" for text in TEXTS])
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--all")
    assert ended.code == 4
    assert "No verdict: the method cannot see 100% of the texts." in ended.out
    assert "No verdict: the method cannot see 100% of the texts" in (tmp_path / "out" / "report.html").read_text()


def test_a_stopped_audit_goes_on_unless_it_shall_start_again(run_cli, vectors, tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 5, "guided": 1})
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    stopped = tmp_path / "stopped"

    @contextmanager
    def after_two_parts(**options):
        yield lambda: len(list((tmp_path / "out").glob(".unfinished/sample-blind-*"))) >= 2 and not stopped.exists()

    monkeypatch.setattr("unembed.cli.interrupt.early_end", after_two_parts)
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20)
    assert ended.code == 1
    assert "The same command goes on from here" in ended.err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["sample"], report["wanted"]) == (10, 20)
    stopped.touch()
    kept = tmp_path / "out" / ".unfinished" / "sample-blind-00000.json"
    part = json.loads(kept.read_text())
    part[0]["confidence"] = 0.123
    kept.write_text(json.dumps(part))
    for options, resumed in (("--resume",), True), (("--no-resume",), False):
        audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", "--size", 20, *options)
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        assert report["sample"] == 20
        assert (report["attacks"][0]["rows"][0]["confidence"] == 0.123) == resumed
    assert not (tmp_path / "out" / ".unfinished").exists()


def test_without_texts_recovery_is_estimated_and_says_so(run_cli, vectors, tiny_checkpoint, tmp_path, with_encoder):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    (tmp_path / "known.txt").write_text("\n".join(TEXTS) + "\n")
    options = ("--size", 10, "--guided", 2, "--calibrate", tmp_path / "known.txt", "--json")
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out", *options)
    assert ended.code in (0, 3, 4), ended.err
    report = json.loads(ended.out)
    assert [attack["name"] for attack in report["attacks"]] == ["blind", "guided"]
    assert not any(attack["known"] for attack in report["attacks"])
    assert report["calibration"]["texts"] == "known.txt"
    assert report["calibration"]["n"] == 60
    assert not report["encoder"]["certain"]
    assert any("recovery is estimated" in said for said in report["assumptions"])
    assert "(estimated)" in (tmp_path / "out" / "report.html").read_text()


def test_without_texts_and_encoder_there_is_nothing_to_measure_by(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out")
    assert ended.code == 2
    assert "One of them is needed" in ended.err


def test_bad_rows_are_skipped_and_reported(run_cli, vectors, tiny_checkpoint, tmp_path):
    import pandas

    vectors[3, 2], vectors[4] = np.nan, 0.0
    pandas.DataFrame({"text": TEXTS, "embedding": list(vectors)}).to_parquet(tmp_path / "vectors.parquet")
    ended = audit(run_cli, tmp_path / "vectors.parquet", tiny_checkpoint, tmp_path / "out", "--size", 20)
    assert ended.code in (0, 3, 4), ended.err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["source"]["skipped"] == {"not finite": 1, "all zeros": 1}
    assert "1 more that are all zeros were skipped" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda vectors: vectors[:, :8], "The vectors have 8 numbers; those of fake"),
        (
            lambda vectors: vectors * np.linspace(1, 9, 60)[:, None],
            "does not name its encoder. The vectors do not look like",
        ),
        (lambda vectors: vectors[:0], "holds no vectors"),
    ],
)
def test_vectors_that_cannot_be_audited_are_refused(change, problem, run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.npy(tmp_path / "store", change(vectors), TEXTS)
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out")
    assert ended.code == 2
    assert problem in ended.err


def test_a_chroma_collection_says_whose_vectors_it_holds(run_cli, vectors, tiny_checkpoint, tmp_path):
    uri = stores.chroma(tmp_path / "store", vectors, TEXTS)
    ended = audit(run_cli, uri, tiny_checkpoint, tmp_path / "out")
    assert ended.code == 2
    assert "'all-MiniLM-L6-v2' made its vectors" in ended.err


def test_the_command_in_the_report_holds_no_password(monkeypatch):
    from unembed.cli.audit import typed_command

    for uri in ("pgvector:postgresql://me:secret@host/db#docs", "pgvector:host=h password=secret dbname=db#docs"):
        monkeypatch.setattr("sys.argv", ["unembed", "audit", uri, "--size", "9"])
        assert "secret" not in typed_command()
        assert typed_command().endswith("#docs' --size 9")


class TestWords:
    def test_every_vector_has_its_words_on_a_line(self, run_cli, vectors, readout_checkpoint, tmp_path):
        uri = stores.qdrant(tmp_path / "store", vectors, TEXTS)
        ended = run_cli("words", uri, "--model", readout_checkpoint, "--top", 3, "--json", "--limit", 5)
        assert ended.code == 0, ended.err
        lines = [json.loads(line) for line in ended.out.splitlines()]
        assert [line["id"] for line in lines] == ["0", "1", "2", "3", "4"]
        assert all(len(line["words"]) == 3 for line in lines)

    def test_a_word_is_found_and_counted(self, run_cli, vectors, readout_checkpoint, tmp_path):
        uri = stores.npy(tmp_path / "store", vectors, TEXTS)
        found = run_cli("words", uri, "--model", readout_checkpoint, "--find", "king", "--top", 5)
        rows = [int(line.split("\t")[0]) for line in found.out.splitlines()]
        assert all("king" in line.split("\t")[1].split() for line in found.out.splitlines())
        assert f"{len(rows)} of 60 vectors have king among their 5 likeliest words." in found.err
        assert "was not measured for this inverter" in found.err
        counted = run_cli(
            "words", uri, "--model", readout_checkpoint, "--find", "king", "--top", 5, "--count", "--json"
        )
        assert json.loads(counted.out) == {"word": "king", "vectors": len(rows), "of": 60, "missed": None}
        assert {row for row, text in enumerate(TEXTS) if "king" in text.split()} & set(rows)

    def test_the_most_common_words_come_first(self, run_cli, vectors, readout_checkpoint, tmp_path):
        uri = stores.npy(tmp_path / "store", vectors, TEXTS)
        ended = run_cli("words", uri, "--model", readout_checkpoint, "--count", "--json")
        counts = [json.loads(line)["vectors"] for line in ended.out.splitlines()]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > counts[-1]

    def test_an_id_cannot_command_the_terminal(self, run_cli, vectors, readout_checkpoint, monkeypatch):
        batch = VectorBatch(["a\x1b[31mb\nc"], vectors[:1], None)
        source = VectorSource("the database", 1, iter([batch]), storage=StorageInfo("x"))
        monkeypatch.setattr("unembed.connectors.open_vectors", lambda *arguments, **options: source)
        ended = run_cli("words", "anything", "--model", readout_checkpoint, "--top", 2)
        assert ended.code == 0, ended.err
        assert ended.out.startswith("a\\x1b[31mb\\nc\t")
        assert len(ended.out.splitlines()) == 1

    def test_an_error_that_names_what_a_database_holds_cannot_command_the_terminal(self, run_cli, tmp_path):
        collections = {"a\x1b]0;mine\x07": {}, "b": {}}
        (tmp_path / "meta.json").write_text(json.dumps({"collections": collections}))
        ended = run_cli("words", f"qdrant:{tmp_path}#c")
        assert ended.code == 2
        assert "a\\x1b]0;mine\\x07" in ended.err
        assert "\x07" not in ended.err

    def test_skipped_rows_are_counted_and_an_empty_database_is_an_error(
        self, run_cli, vectors, readout_checkpoint, tmp_path
    ):
        vectors[3] = np.nan
        uri = stores.npy(tmp_path / "store", vectors, TEXTS)
        assert "Skipped: 1 vectors that are not finite." in run_cli("words", uri, "-m", readout_checkpoint).err
        uri = stores.npy(tmp_path / "empty", vectors[:0], [])
        assert run_cli("words", uri, "-m", readout_checkpoint).code == 2
