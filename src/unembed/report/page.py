"""An audit as one HTML page. Knows what is said; how it looks is in ``report.html`` and ``report.css``."""

import re
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from unembed.auditing import Audit
from unembed.auditing.findings import MEASURED
from unembed.auditing.result import Attack, Example, Row
from unembed.auditing.verdict import explain, headline
from unembed.evaluation import Figure
from unembed.measures import BY_NAME, PASSAGE_WORDS, READABLE_FROM, percent
from unembed.report.charts import bar, histogram
from unembed.report.glossary import GLOSSARY
from unembed.report.questions import answer

_ATTACKERS = {
    "blind": ("Blind", "has nothing but the vectors"),
    "guided": ("Guided", "also has the encoder, and asks it while searching"),
}
DEFENCES_FILE = "defences.html"
"""The report of ``unembed defend``, to which that of an audit links."""
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]+))?`")


def render(audit: Audit, *, defences_measured: bool = False) -> str:
    """Return the page. It is whole: nothing in it is fetched from elsewhere, and it runs no script.

    ``defences_measured``: whether the report of ``unembed defend`` lies beside it.
    """
    page = environment()
    page.globals |= {"bar": bar, "histogram": histogram, "words": _words, "sentence": _sentence}
    return page.from_string(read_part("report.html")).render(
        audit=audit,
        style=read_part("report.css"),
        measures=[measure for measure in MEASURED if measure.name in audit.deciding.figures],
        attackers=_ATTACKERS,
        worst=audit.deciding,
        examples=worst_examples(audit.attacks),
        readable=READABLE_FROM,
        passage_words=PASSAGE_WORDS,
        headline=headline(audit),
        explanation=explain(audit),
        questions=answer(audit),
        glossary=GLOSSARY,
        defences_page=DEFENCES_FILE,
        defences_measured=defences_measured,
    )


def environment() -> Environment:
    """Return what renders a page, with the ways to write figures."""
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {
        "percent": percent,
        "figure": _figure,
        "interval": _interval,
        "thousands": "{:,}".format,
        "flags": write_flags,
    }
    return made


def _figure(figure: Figure, name: str) -> str:
    return BY_NAME[name].show(figure.value)


def _interval(figure: Figure, name: str) -> str:
    return f"{BY_NAME[name].show(figure.low)} to {BY_NAME[name].show(figure.high)}"


def write_flags(text: str) -> str:
    """Write parameters as they are typed."""
    return _PARAMETER.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2] or ''}".strip(), text)


def _sentence(attack: Attack) -> str:
    how = "measured against the stored texts" if attack.known else "estimated, since the database holds no texts"
    return f"{attack.n:,} vectors, {how}"


def worst_examples(attacks: list[Attack]) -> list[tuple[Attack, Example, Row]]:
    """Return the vectors that give away most, each with the attacker who got most out of it, and its figures."""
    worst: dict[int, tuple[Attack, Example, Row]] = {}
    for attack in attacks:
        for example in attack.worst:
            row = attack.rows[example.row]
            if example.row not in worst or _recovery(worst[example.row][2]) < _recovery(row):
                worst[example.row] = (attack, example, row)
    ranked = sorted(worst.values(), key=lambda found: -_recovery(found[2]))
    return ranked[: max(len(attack.worst) for attack in attacks)]


def _recovery(row: Row) -> float:
    return row.values["passage_recall"]


def _words(example: Example) -> list[tuple[str, bool]]:
    """Return the words of a recovered text, and whether each is right."""
    words = example.recovered.split()
    return list(zip(words, example.same or [False] * len(words), strict=True))


def read_part(name: str) -> str:
    """Return a file that pages are made of."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
