"""An audit as JUnit XML: a test case for each question that a build can fail on. Holds no text of the database."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from unembed.auditing import Audit
from unembed.auditing.verdict import explain, headline
from unembed.report.page import write_flags
from unembed.report.rules import WORSE, describe_leak, find
from unembed.text import printable_lines


@dataclass(frozen=True)
class _Case:
    group: str
    name: str
    said: str
    outcome: str = "passed"


def to_junit(audit: Audit) -> str:
    """Return the verdict, every kind of information, and every comparison with the baseline as test cases.

    The verdict fails above the threshold, and is an error if it is undecided. A kind fails if, by its interval, a
    greater share of the vectors than the threshold gives it back. A comparison fails if it got worse.
    """
    cases = [*_verdict(audit), *_kinds(audit), *_comparisons(audit)]
    failures = sum(case.outcome == "failure" for case in cases)
    errors = sum(case.outcome == "error" for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    suites = Element("testsuites", {"name": "unembed audit", **counts})
    suite = SubElement(
        suites, "testsuite", {"name": _clean(audit.source.name), "timestamp": f"{audit.made[:16]}:00", **counts}
    )
    for case in cases:
        element = SubElement(suite, "testcase", {"classname": f"unembed.{case.group}", "name": case.name, "time": "0"})
        if case.outcome == "passed":
            SubElement(element, "system-out").text = _clean(case.said)
        else:
            message = {"message": _clean(case.said.partition("\n")[0]), "type": case.group}
            SubElement(element, case.outcome, message).text = _clean(case.said)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _verdict(audit: Audit) -> list[_Case]:
    outcome = {"below": "passed", "above": "failure", "undecided": "error"}[audit.verdict.outcome]
    said = write_flags("\n".join([f"{headline(audit)}.", *explain(audit)]))
    return [_Case("verdict", "fewer texts than the threshold can be read back", said, outcome)]


def _kinds(audit: Audit) -> list[_Case]:
    return [
        _Case(
            "kinds",
            f"vectors do not give back {leak.kind}",
            describe_leak(audit, leak),
            "failure" if audit.deciding.known and leak.share.low > audit.verdict.threshold else "passed",
        )
        for leak in audit.deciding.leaks
    ]


def _comparisons(audit: Audit) -> list[_Case]:
    if audit.comparison is None:
        return []
    worse = [finding.message for finding in find(audit) if finding.rule is WORSE]
    said = "\n".join(worse) or "No figure is worse than in the baseline, beyond chance."
    return [_Case("baseline", "nothing got worse", said, "failure" if worse else "passed")]


def _clean(text: str) -> str:
    """Return text without the control characters that XML forbids."""
    return printable_lines(text)
