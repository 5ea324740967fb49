"""What CI and security teams read: SARIF, JUnit, Markdown, PDF, and the comparison with a baseline."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from audits import audit_of, estimated, measured
from unembed.auditing.baseline import compare, read_baseline
from unembed.auditing.result import Audit
from unembed.errors import ConfigError, UnembedError
from unembed.report import FILES, to_json, to_junit, to_markdown, to_sarif, write_report
from unembed.report.pdf import find_browser
from unembed.report.rules import RULES
from unembed.report.sarif import location_of

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "sarif-2.1.0.json").read_text())
LEAKY = [("maria keller of lisbon", "maria keller of lisbon")] * 12 + [("insulin report", "invoice contract")] * 12
SAFE = [("maria keller of lisbon", "the of and")] * 24
FEW = LEAKY[:1] + SAFE[:4]


def audit(pairs, threshold=0.1, **changes) -> Audit:
    return replace(audit_of([measured("blind", pairs)], threshold), **changes)


def results(made):
    return made["runs"][0]["results"]


AUDITS = {
    "above": audit(LEAKY),
    "below": audit(SAFE, 0.5),
    "undecided": audit(FEW),
    "estimated": audit_of([estimated("blind", LEAKY, 0), estimated("guided", LEAKY, 1)], 0.1),
    "compared": replace(audit(LEAKY), comparison=compare(audit(LEAKY), to_json(audit(SAFE)))),
}


class TestSarif:
    @pytest.mark.parametrize("name", AUDITS)
    def test_it_is_valid_by_the_schema(self, name):
        jsonschema.Draft4Validator(SCHEMA).validate(json.loads(json.dumps(to_sarif(AUDITS[name]))))

    def test_the_schema_would_notice_a_wrong_level(self):
        made = to_sarif(AUDITS["above"])
        results(made)[0]["level"] = "critical"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft4Validator(SCHEMA).validate(made)

    def test_the_verdict_gives_the_level(self):
        levels = {
            name: [(result["ruleId"], result["level"]) for result in results(to_sarif(made))][:1]
            for name, made in AUDITS.items()
        }
        assert levels["above"] == [("UNEMBED001", "error")]
        assert levels["undecided"] == [("UNEMBED002", "warning")]
        assert levels["below"] == []

    def test_what_was_measured_weighs_more_than_what_was_estimated(self):
        kinds = [r for r in results(to_sarif(AUDITS["above"])) if r["ruleId"] == "UNEMBED005"]
        assert {result["level"] for result in kinds} == {"error"}
        assert any("names: 12 of 24 vectors" in result["message"]["text"] for result in kinds)
        guessed = [r for r in results(to_sarif(AUDITS["estimated"])) if r["ruleId"] == "UNEMBED005"]
        assert {result["level"] for result in guessed} == {"note"}

    def test_fingerprints_stay_when_figures_change_and_differ_between_findings(self):
        def prints(made):
            found = results(to_sarif(made))
            return {
                (each["ruleId"], each["message"]["text"].partition(":")[0]): each["partialFingerprints"]
                for each in found
            }

        one, other = prints(audit(LEAKY)), prints(audit(LEAKY[:18]))
        kinds = [key for key in one if key[0] == "UNEMBED005"]
        assert len(kinds) == 2
        assert all(one[key] == other[key] for key in kinds)
        assert len({each["unembedFinding/v1"] for each in one.values()}) == len(one)

    def test_rules_keep_their_ids_and_have_help(self):
        driver = to_sarif(AUDITS["below"])["runs"][0]["tool"]["driver"]
        assert [rule["id"] for rule in driver["rules"]] == [f"UNEMBED00{number}" for number in range(1, 8)]
        for rule in driver["rules"]:
            assert rule["help"]["text"]
            assert rule["help"]["markdown"]
            related = {relation["target"]["id"] for relation in rule["relationships"]}
            assert related == {"LLM08:2025", "LLM09:2026", "AML.T0024"}
        assert any("depends on the encoder" in rule.description for rule in RULES)

    def test_no_text_of_the_database_is_in_it(self):
        said = json.dumps(to_sarif(AUDITS["above"])) + to_junit(AUDITS["above"])
        assert "keller" not in said
        assert "lisbon" not in said

    def test_a_baseline_tells_what_is_new(self):
        states = {result["ruleId"]: result["baselineState"] for result in results(to_sarif(AUDITS["compared"]))}
        assert states == {"UNEMBED001": "new", "UNEMBED005": "new", "UNEMBED007": "new"}
        same = audit(LEAKY, comparison=compare(audit(LEAKY), to_json(audit(LEAKY))))
        assert {result["baselineState"] for result in results(to_sarif(same))} == {"unchanged"}

    @pytest.mark.parametrize(
        ("name", "uri"),
        [
            ("chroma:./db#notes", "db"),
            ("parquet/vectors.npy", "parquet/vectors.npy"),
            ("faiss:/data/my index.faiss", "file:///data/my%20index.faiss"),
            ("qdrant:https://host:6333#docs", "https://host:6333"),
            ("pgvector:postgresql://me:***@host/db#t.v", "postgresql://me:***@host/db"),
            ("an array", "an%20array"),
        ],
    )
    def test_a_source_is_named_as_a_uri(self, name, uri):
        assert location_of(name) == uri


class TestJunit:
    def cases(self, made):
        suites = ElementTree.fromstring(to_junit(made))
        (suite,) = suites
        cases = {
            (case.get("classname"), case.get("name")): next(
                (part.tag for part in case if part.tag != "system-out"), "ok"
            )
            for case in suite
        }
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(list(cases.values()).count("failure"))
        return cases

    def test_the_verdict_fails_or_is_an_error_when_it_is_undecided(self):
        verdict = ("unembed.verdict", "fewer texts than the threshold can be read back")
        assert self.cases(AUDITS["above"])[verdict] == "failure"
        assert self.cases(AUDITS["undecided"])[verdict] == "error"
        assert set(self.cases(AUDITS["below"]).values()) == {"ok"}

    def test_a_kind_fails_when_its_interval_lies_above_the_threshold(self):
        names = ("unembed.kinds", "vectors do not give back names")
        assert self.cases(AUDITS["above"])[names] == "failure"
        assert self.cases(AUDITS["undecided"])[names] == "ok"
        assert self.cases(AUDITS["estimated"])[names] == "ok"

    def test_a_baseline_adds_a_case(self):
        case = ("unembed.baseline", "nothing got worse")
        assert case not in self.cases(AUDITS["above"])
        assert self.cases(AUDITS["compared"])[case] == "failure"

    def test_a_name_with_control_characters_is_still_xml(self):
        source = replace(AUDITS["above"].source, name="db\x1b[31m<&>\x00")
        ElementTree.fromstring(to_junit(replace(AUDITS["above"], source=source)))


class TestBaseline:
    def test_the_same_report_is_neither_worse_nor_better(self):
        comparison = compare(audit(LEAKY), to_json(audit(LEAKY)))
        assert {change.state for change in comparison.changes} == {"same"}

    def test_a_leak_is_worse_and_its_repair_is_better(self):
        worse = compare(audit(LEAKY), to_json(audit(SAFE)))
        assert {"readable", "names", "places"} <= {change.what for change in worse.worse}
        assert all(change.difference.low > 0 for change in worse.worse)
        assert {change.what for change in compare(audit(SAFE), to_json(audit(LEAKY))).better} == {
            change.what for change in worse.worse
        }

    def test_chance_is_not_called_worse(self):
        assert compare(audit(LEAKY), to_json(audit(LEAKY[1:]))).worse == []
        one_of_five = compare(audit(FEW), to_json(audit(SAFE[:5])))
        assert one_of_five.worse == []

    def test_it_is_refused_where_nothing_can_be_compared(self, tmp_path):
        guessed = to_json(AUDITS["estimated"])
        with pytest.raises(ConfigError, match="one is measured, the other estimated"):
            compare(AUDITS["above"], guessed)
        other = to_json(AUDITS["above"]) | {"encoder": {"name": "another"}}
        with pytest.raises(ConfigError, match="vectors of another; these are of e"):
            compare(AUDITS["above"], other)
        for content, match in (("{", "not JSON"), ("[]", "not the report"), ('{"source": 1}', "not the report")):
            (tmp_path / "report.json").write_text(content)
            with pytest.raises(ConfigError, match=match):
                read_baseline(tmp_path / "report.json")
        broken = to_json(AUDITS["above"])
        del broken["attacks"][0]["figures"]
        with pytest.raises(ConfigError, match="lacks 'figures'"):
            compare(AUDITS["above"], broken)
        with pytest.raises(UnembedError, match="Failed while reading"):
            read_baseline(tmp_path / "nowhere.json")


class TestMarkdown:
    def test_it_has_the_figures_of_the_page_and_the_questions(self):
        said = to_markdown(AUDITS["compared"])
        assert "**Above the threshold: the texts are exposed.**" in said
        assert "| names | 12 | 12 |" in said
        assert "## Since the baseline" in said
        for question in ("Is this a breach?", "Whose data is it?", "What has to be done, and by when?"):
            assert f"### {question}" in said
        assert "72 hours" in said
        assert "| Encoder |" in said

    def test_a_text_cannot_format_it(self):
        pairs = [("maria keller", "maria keller")]
        attack = measured("blind", pairs)
        forged = replace(attack.worst[0], recovered="[click](http://x) | <b>bold</b>\n# title www.x.org")
        made = replace(audit_of([replace(attack, worst=[forged])], 0.1))
        said = to_markdown(made)
        assert r"\[click\](http\://x) \| \<b\>bold\</b\>\\n\# title www\.x.org" in said

    def test_every_table_has_rows_of_one_width(self):
        width = None
        for line in to_markdown(AUDITS["estimated"]).splitlines():
            if not line.startswith("|"):
                width = None
                continue
            cells = line.replace(r"\|", "").count("|")
            assert width in (None, cells)
            width = cells


class TestFiles:
    def test_every_format_is_written_and_private_when_it_shows_texts(self, tmp_path):
        formats = [name for name in FILES if name != "pdf"]
        write_report(tmp_path, AUDITS["above"], formats)
        written = {path.name for path in tmp_path.iterdir()}
        assert written == {"report.html", "report.json", "report.md", "report.sarif", "junit.xml"}
        assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())

    @pytest.mark.skipif(not any(map(shutil.which, ("chromium", "google-chrome"))), reason="no Chromium")
    def test_the_page_is_printed_with_a_page_for_each_question(self, tmp_path):
        write_report(tmp_path, AUDITS["above"], ["pdf"])
        made = (tmp_path / "report.pdf").read_bytes()
        assert made.startswith(b"%PDF-")
        assert made.count(b"/Type /Page\n") >= 6

    def test_without_a_browser_a_pdf_is_an_error_with_a_remedy(self, monkeypatch):
        monkeypatch.setenv("PATH", "")
        with pytest.raises(UnembedError, match="needs Chromium") as caught:
            find_browser()
        assert "print it to a file" in caught.value.remedy
