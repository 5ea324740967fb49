"""An audit as one HTML page. Knows what is said; how it looks is in ``report.html`` and ``report.css``."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from unembed.audit import Audit
from unembed.audit.result import Attack, Example, Verdict
from unembed.evaluation import Figure
from unembed.measures import BY_NAME, MEASURES, READABLE, READABLE_FROM, percent
from unembed.report.charts import bar, histogram

_MEASURES = (READABLE, *MEASURES)
_ATTACKERS = {
    "blind": ("Blind", "has nothing but the vectors"),
    "guided": ("Guided", "also has the encoder, and asks it while searching"),
}


def render(audit: Audit) -> str:
    """Return the page. It is whole: nothing in it is fetched from elsewhere, and it runs no script."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"percent": percent, "figure": _figure, "interval": _interval, "thousands": "{:,}".format}
    environment.globals |= {"bar": bar, "histogram": histogram, "words": _words, "sentence": _sentence}
    return environment.from_string(_file("report.html")).render(
        audit=audit,
        style=_file("report.css"),
        measures=_MEASURES,
        attackers=_ATTACKERS,
        worst=next(attack for attack in audit.attacks if attack.name == audit.verdict.attacker),
        examples=worst_examples(audit.attacks),
        readable=READABLE_FROM,
        finding=_finding(audit.verdict),
    )


def _figure(figure: Figure, name: str) -> str:
    return BY_NAME[name].show(figure.value)


def _interval(figure: Figure, name: str) -> str:
    return f"{BY_NAME[name].show(figure.low)} to {BY_NAME[name].show(figure.high)}"


def _finding(verdict: Verdict) -> str:
    """Say in one sentence what the figure means."""
    value = verdict.readable.value
    if value == 0.0:
        return "No text of the sample could be read back in substance."
    if value < 0.995:
        return f"About {_one_in(value)} texts can be read back in substance from the stored vectors."
    return "Practically every text can be read back in substance from the stored vectors."


def _one_in(value: float) -> str:
    many = round(1 / value)
    return f"{percent(value)} of the" if many < 3 else f"one in {many:,}"


def _sentence(attack: Attack) -> str:
    how = "measured against the stored texts" if attack.known else "estimated, since the database holds no texts"
    return f"{attack.n:,} vectors, {how}"


def worst_examples(attacks: list[Attack]) -> list[tuple[Attack, Example]]:
    """Return the vectors that give away most, each with the attacker who got most out of it."""
    worst: dict[int, tuple[Attack, Example]] = {}
    for attack in attacks:
        for example in attack.examples:
            if example.row not in worst or worst[example.row][1].token_f1 < example.token_f1:
                worst[example.row] = (attack, example)
    ranked = sorted(worst.values(), key=lambda pair: -pair[1].token_f1)
    return ranked[: max(len(attack.examples) for attack in attacks)]


def _words(example: Example) -> list[tuple[str, bool]]:
    """Return the words of a recovered text, and whether each is right."""
    words = example.recovered.split()
    return list(zip(words, example.same or [False] * len(words), strict=True))


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
