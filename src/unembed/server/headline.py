"""The headline of a result: which content words came back, what the model says without the vector, named leaks."""

from collections.abc import Sequence

from unembed.auditing.leaks import find_leaks, gives_back
from unembed.canvas import RoundTrip
from unembed.measures import all_words, fate_of, fates, function_words, spoken_words
from unembed.server.models import ServedModel
from unembed.server.schemas import Baseline, Headline, NamedLeak, ShownWord

_NAMES = {
    "names": "a name",
    "e-mail addresses": "an e-mail address",
    "phone numbers": "a phone number",
    "street addresses": "a street address",
    "places": "a place",
    "dates": "a date",
    "ages": "an age",
    "amounts of money": "an amount of money",
    "card numbers": "a card number",
    "bank accounts": "a bank account",
    "social security numbers": "a social security number",
    "IP addresses": "an IP address",
    "credentials": "a credential",
    "medical terms": "an illness or medical term",
    "drugs": "a drug",
    "religion": "a religion",
    "politics": "politics",
    "trade unions": "a trade union",
    "ethnic origin": "ethnic origin",
    "sexuality": "sexuality",
    "biometric and genetic data": "biometric or genetic data",
}
"""What one item of a kind of leak is called."""


def write_headline(recovered: str, trip: RoundTrip, model: ServedModel) -> Headline:
    """Compare a recovered text with the text that was embedded."""
    words = fates(trip.embedded, all_words(recovered))
    guess = model.guess_without_vector(len(trip.ids))
    # "diagnosed with" marks what is private, but by itself gives nothing away.
    private = [leak for leak in find_leaks(trip.embedded) if leak.runs[-1] not in function_words()]
    found = gives_back(recovered, private)
    return Headline(
        words=[ShownWord(text=each.word, fate=each.fate) for each in words],
        same=sum(each.fate == "same" for each in words),
        near=sum(each.fate == "near" for each in words),
        without_vector=Baseline(
            text=guess, found=sum(each.fate != "lost" for each in fates(trip.embedded, all_words(guess)))
        ),
        leaks=[NamedLeak(kind=leak.kind, name=_NAMES.get(leak.kind, leak.kind), text=leak.text) for leak in found],
    )


def mark_words(words: Sequence[str], trip: RoundTrip | None) -> list[ShownWord]:
    """Return the words that a vector gives away; where its text is known, with which of them it has."""
    if trip is None:
        return [ShownWord(text=word, fate=None) for word in words]
    said = spoken_words(trip.embedded)
    return [ShownWord(text=word, fate=fate_of(word, said)) for word in words]
