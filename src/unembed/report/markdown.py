"""An audit as Markdown: for tickets, wikis and pull requests. Has the same figures as the page, without its charts."""

import re
from collections.abc import Iterable

from unembed.auditing import Audit
from unembed.auditing.findings import MEASURED
from unembed.auditing.verdict import explain, headline
from unembed.evaluation import Figure
from unembed.measures import BY_NAME, percent
from unembed.report.glossary import GLOSSARY
from unembed.report.page import worst_examples, write_flags
from unembed.report.questions import answer
from unembed.text import printable

# Also what would become a link by itself.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~]|:(?=//)|(?<=www)\.)")


def to_markdown(audit: Audit) -> str:
    """Return the report; what comes out of the database can neither format it nor add links to it."""
    lines = [
        f"# What {audit.source.vectors:,} stored vectors give away",
        "",
        f"{escape(audit.source.name)}. {audit.made[:10]}, {audit.made[11:16]} UTC, unembed {audit.unembed_version}.",
        "",
        f"**{escape(headline(audit))}.**",
        "",
        *_paragraphs(write_flags(sentence) for sentence in explain(audit)),
        "## What was audited",
        "",
        *_facts(audit),
        "## How much comes back",
        "",
        *_figures(audit),
        "## By kind of information",
        "",
        *_kinds(audit),
        *_comparison(audit),
        "## The worst examples",
        "",
        *_examples(audit),
        "## Questions that a data protection officer asks",
        "",
        "These answers follow from the figures above. They are no legal advice.",
        "",
    ]
    for question in answer(audit):
        lines += [f"### {question.question}", "", *_paragraphs(question.answers)]
    lines += ["## What was assumed", "", *(f"- {escape(sentence)}" for sentence in audit.assumptions), ""]
    lines += ["## How to reproduce", "", f"    {printable(audit.command)}", ""]
    lines += ["## What the words mean", "", *_table(["Word", "Meaning"], [[*entry] for entry in GLOSSARY.items()])]
    measures = [[measure.plain, measure.meaning] for measure in MEASURED if measure.name in audit.deciding.figures]
    return "\n".join([*lines, "## What the measures mean", "", *_table(["Measure", "Meaning"], measures)])


def escape(text: str) -> str:
    """Return text so that Markdown shows it as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", printable(text))


def _paragraphs(sentences: Iterable[str]) -> list[str]:
    return [line for sentence in sentences for line in (escape(sentence), "")]


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *([escape(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def _facts(audit: Audit) -> list[str]:
    source = audit.source
    skipped = "".join(f"; {count:,} more that are {what} were skipped" for what, count in source.skipped.items())
    storage = source.storage
    rows = [
        ["Vector database", f"{storage.kind}, {source.name}"],
        ["Vectors", f"{source.vectors:,}, of {source.dim} numbers each{skipped}"],
        ["How they are kept", f"Precision: {storage.precision}. Quantised: {storage.quantised or 'no'}."],
        ["Texts beside them", "Yes: recovery was measured." if source.texts else "No: recovery was estimated."],
        ["Encoder", f"{audit.encoder.name}. {audit.encoder.because}"],
        ["Sample", f"{audit.sample:,} vectors, seed {audit.seed}"],
    ]
    return _table(["", ""], rows)


def _figures(audit: Audit) -> list[str]:
    heads = [f"{attack.name}, n = {attack.n:,}{'' if attack.known else ' (estimated)'}" for attack in audit.attacks]
    rows = [
        [measure.plain, *(_show(attack.figures[measure.name], measure.name) for attack in audit.attacks)]
        for measure in MEASURED
        if all(measure.name in attack.figures for attack in audit.attacks)
    ]
    return _table(["Measure", *heads], rows)


def _show(figure: Figure, name: str) -> str:
    show = BY_NAME[name].show
    return f"{show(figure.value)} ({show(figure.low)} to {show(figure.high)})"


def _kinds(audit: Audit) -> list[str]:
    attack = audit.deciding
    found = [leak for leak in attack.leaks if leak.holding or leak.given_back]
    if not found:
        return ["None of the kinds that were looked for.", ""]
    rows = [
        [
            leak.kind,
            "unknown" if leak.holding is None else f"{leak.holding:,}",
            f"{leak.given_back:,}",
            f"{percent(leak.share.value)} ({percent(leak.share.low)} to {percent(leak.share.high)})",
        ]
        for leak in found
    ]
    return _table(["Kind", "Texts that hold one", "Given back" if attack.known else "Shown", "Of all vectors"], rows)


def _comparison(audit: Audit) -> list[str]:
    if audit.comparison is None:
        return []
    changed = audit.comparison.worse + audit.comparison.better
    rows = [
        [change.label, change.attacker, percent(change.before.value), percent(change.after.value), change.state]
        for change in changed
    ]
    said = f"The baseline is an audit of {escape(audit.comparison.source)} of {audit.comparison.made[:10]}."
    table = _table(["Figure", "Attacker", "Baseline", "Now", "Change"], rows) if rows else ["Nothing changed.", ""]
    return ["## Since the baseline", "", said, "", *table]


def _examples(audit: Audit) -> list[str]:
    masked = "Texts and ids are masked: a dot for every letter. To read them: unembed audit --show-text."
    rows = [
        [
            str(row.id),
            attack.name,
            percent(row.values["passage_recall"]),
            example.original or "unknown",
            example.recovered,
        ]
        for attack, example, row in worst_examples(audit.attacks)
    ]
    table = _table(["Vector", "Attacker", "Content words", "Original", "Recovered"], rows)
    return [*([] if audit.shows_text else [masked, ""]), *table]
