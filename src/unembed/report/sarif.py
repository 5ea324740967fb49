"""An audit as SARIF 2.1.0, which code scanning and security teams read. Holds no text of the database."""

import re
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from unembed.auditing import Audit
from unembed.auditing.verdict import headline
from unembed.report.rules import RULES, Finding, Rule, find

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_OWASP, _ATLAS = "OWASP Top 10 for LLM Applications", "MITRE ATLAS"
_TAXA = {_OWASP: ("LLM08:2025", "LLM09:2026"), _ATLAS: ("AML.T0024",)}
_TAXON_NAMES = {
    "LLM08:2025": "Vector and Embedding Weaknesses",
    "AML.T0024": "Exfiltration via AI Inference API",
}
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):(?P<location>.*)", re.DOTALL)


def to_sarif(audit: Audit) -> dict[str, Any]:
    """Return a SARIF log with one run: every rule, and a result for everything that was found.

    A vector database that lies below the threshold has no result of the first rule.
    """
    findings = find(audit)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "unembed",
                "semanticVersion": audit.unembed_version,
                "rules": [_rule(rule) for rule in RULES],
                "supportedTaxonomies": [{"name": name, "index": index} for index, name in enumerate(_TAXA)],
            }
        },
        "taxonomies": [_taxonomy(name) for name in _TAXA],
        "invocations": [{"executionSuccessful": True, "commandLine": audit.command, "endTimeUtc": _time(audit.made)}],
        "results": [_result(audit, finding) for finding in findings],
        "columnKind": "unicodeCodePoints",
        "properties": {
            "verdict": headline(audit),
            "outcome": audit.verdict.outcome,
            "threshold": audit.verdict.threshold,
            "readable": asdict(audit.verdict.readable),
            "attacker": audit.verdict.attacker,
            "measured": audit.deciding.known,
        },
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.description},
        "help": {"text": rule.help, "markdown": f"**{rule.summary}.** {rule.description}\n\n{rule.help}"},
        "defaultConfiguration": {"level": "warning"},
        "relationships": [
            {"target": {"id": taxon, "toolComponent": {"name": name}}, "kinds": ["relevant"]}
            for name, taxa in _TAXA.items()
            for taxon in taxa
        ],
        "properties": {
            "tags": [
                "security",
                "privacy",
                *(f"external/{taxon.lower()}" for taxa in _TAXA.values() for taxon in taxa),
            ],
            "security-severity": f"{rule.severity:.1f}",
            "precision": "high",
        },
    }


def _taxonomy(name: str) -> dict[str, Any]:
    taxa = [{"id": taxon} | ({"name": _TAXON_NAMES[taxon]} if taxon in _TAXON_NAMES else {}) for taxon in _TAXA[name]]
    return {"name": name, "shortDescription": {"text": name}, "taxa": taxa}


def _result(audit: Audit, finding: Finding) -> dict[str, Any]:
    name = audit.source.name
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": RULES.index(finding.rule),
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": location_of(name)}},
                "logicalLocations": [{"fullyQualifiedName": name, "kind": "resource"}],
            }
        ],
        "partialFingerprints": {"unembedFinding/v1": finding.fingerprint(name)},
    }
    if finding.is_new is not None:
        result["baselineState"] = "new" if finding.is_new else "unchanged"
    return result


def location_of(name: str) -> str:
    """Return the name of a source as a URI: a relative path stays one, so that it is found in a repository."""
    match = _ADDRESS.fullmatch(name)
    location = match["location"] if match and not name.startswith(("http:", "https:", "postgres")) else name
    location = location.partition("#")[0]
    if "://" in location:
        return quote(location, safe=":/?&=@%+,;~*")
    path = quote(location.removeprefix("./"), safe="/~+,;@")
    return f"file://{path}" if path.startswith("/") else path or "."


def _time(made: str) -> str:
    """Return the time of an audit as SARIF writes it."""
    return f"{made[:16]}:00Z"
