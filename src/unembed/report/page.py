"""An audit as one HTML page. Knows what is said; how it looks is in ``report.html`` and ``report.css``."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from unembed.audit import READABLE, Audit
from unembed.audit.result import Example, Mode, Verdict
from unembed.evaluation import Figure
from unembed.report.charts import bar, histogram

_MEASURES = {
    "readable": (
        "Readable texts",
        "Share of vectors from which at least half of the words come back (token F1 of 50% or more).",
    ),
    "token_f1": (
        "Words recovered",
        "Token F1: how far the words of the recovered text and those of the original are the same, in any order.",
    ),
    "token_accuracy": (
        "Words at their place",
        "Share of the original's tokens that the recovered text has at the very same position.",
    ),
    "rouge_l": ("Words in order", "ROUGE-L: the longest run of words that both texts have in the same order, as F1."),
    "exact_match": ("Word-for-word recovery", "Share of texts recovered without a single difference."),
    "bleu": ("BLEU", "Corpus BLEU by sacrebleu, 0 to 100: runs of one to four words that both texts have."),
    "cosine": (
        "Nearness of meaning",
        "Cosine between the stored vector and the recovered text's own vector; 1 is the same.",
    ),
}
_ATTACKERS = {
    "blind": ("Blind", "has nothing but the vectors"),
    "guided": ("Guided", "also has the encoder, which is public or rented, and asks it while searching"),
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
        worst=next(mode for mode in audit.modes if mode.name == audit.verdict.mode),
        examples=worst_examples(audit.modes),
        readable=READABLE,
        finding=_finding(audit.verdict),
    )


def percent(value: float) -> str:
    """Write a share as people do: no decimals but where they are all there is."""
    return f"{value:.1%}" if 0 < value < 0.0995 else f"{value:.0%}"


def _figure(figure: Figure, name: str) -> str:
    return (
        f"{figure.value:.1f}"
        if name == "bleu"
        else f"{figure.value:.2f}"
        if name == "cosine"
        else percent(figure.value)
    )


def _interval(figure: Figure, name: str) -> str:
    low, high = (Figure(value, 0, 0, 0) for value in (figure.low, figure.high))
    return f"{_figure(low, name)} to {_figure(high, name)}"


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


def _sentence(mode: Mode) -> str:
    how = "measured against the stored texts" if mode.known else "estimated, since the store holds no texts"
    return f"{mode.n:,} vectors, {how}"


def worst_examples(modes: list[Mode]) -> list[tuple[Mode, Example]]:
    """Return the vectors that give away most, each with the attacker who got most out of it."""
    found: dict[object, tuple[Mode, Example]] = {}
    for mode in modes:
        for example in mode.examples:
            if example.id not in found or found[example.id][1].token_f1 < example.token_f1:
                found[example.id] = (mode, example)
    ranked = sorted(found.values(), key=lambda one: -one[1].token_f1)
    return ranked[: max(len(mode.examples) for mode in modes)]


def _words(example: Example) -> list[tuple[str, bool]]:
    """Return the words of a recovered text, and whether each is right."""
    words = example.recovered.split()
    return list(zip(words, example.same or [False] * len(words), strict=True))


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
