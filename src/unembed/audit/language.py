"""Which language a text is in: by its script, or by the commonest words of the language. Good enough for counts.

A text without any of these words has no language here: nothing is said rather than guessed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

from unembed.audit.lists import load_lines
from unembed.inverter import Inverter

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
# Common words that a text must have, and how many more of one language than of any other.
_ENOUGH, _LEAD = 2, 1
_SCRIPTS = {
    "CYRILLIC": "a language in Cyrillic script",
    "CJK": "Chinese or Japanese",
    "HIRAGANA": "Chinese or Japanese",
    "KATAKANA": "Chinese or Japanese",
    "HANGUL": "Korean",
    "ARABIC": "a language in Arabic script",
    "HEBREW": "Hebrew",
    "GREEK": "Greek",
    "DEVANAGARI": "a language in Devanagari script",
    "THAI": "Thai",
}
_FREQUENT = 300


def language_of(text: str) -> str | None:
    """Return the name of a text's language; None if it cannot be told."""
    words = dict.fromkeys(_WORD.findall(text.lower().replace("’", "'")))
    if (script := _script_of("".join(words))) is not None:
        return script
    counts = Counter(language for word in words for language in _languages_by_word().get(word, ()))
    ranked = counts.most_common(2)
    if not ranked or ranked[0][1] < _ENOUGH:
        return None
    second = ranked[1][1] if len(ranked) > 1 else 0
    return ranked[0][0] if ranked[0][1] >= second + _LEAD else None


def languages_of(texts: Sequence[str]) -> list[str | None]:
    """Return the language of each text of a collection; one that cannot be told is taken for the commonest."""
    languages = [language_of(text) for text in texts]
    known = Counter(language for language in languages if language is not None)
    commonest = known.most_common(1)[0][0] if known else None
    return [language or commonest for language in languages]


def language_of_inverter(inverter: Inverter) -> str | None:
    """Return the language that an inverter writes, by the commonest words of its training texts; None if unknown."""
    readout = inverter.model.readout
    if not readout.gives_prior:
        return None
    frequent = readout.base.argsort(descending=True)[:_FREQUENT].tolist()
    return language_of(inverter.tokenizer.decode(frequent))


def _script_of(letters: str) -> str | None:
    """Return what the script says about the language, if most letters are in another script than Latin."""
    scripts = Counter(unicodedata.name(letter, "?").split()[0].partition("-")[0] for letter in letters[:200])
    if not scripts:
        return None
    script, count = scripts.most_common(1)[0]
    return _SCRIPTS.get(script) if 2 * count > scripts.total() else None


@cache
def _languages_by_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for line in load_lines("languages"):
        language, _, words = line.partition(": ")
        for word in words.split():
            languages.setdefault(word, []).append(language)
    return languages
