"""Which language a text is in: by its script, or by the commonest words of the language. Good enough for counts.

A text without any of these words has no language here: nothing is said rather than guessed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

from unembed.inverter import Inverter
from unembed.lists import load_lines

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
_NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
# Languages that are told by their script: what a text in them is called here.
_BY_SCRIPT = {
    "Arabic": _SCRIPTS["ARABIC"],
    "Chinese": _SCRIPTS["CJK"],
    "Japanese": _SCRIPTS["CJK"],
    "Russian": _SCRIPTS["CYRILLIC"],
    "Ukrainian": _SCRIPTS["CYRILLIC"],
}


def name_languages(codes: Sequence[str]) -> list[str]:
    """Return the names of languages, given by ISO 639-1 codes; a code that is not known stays."""
    return sorted(_NAMES.get(code, code) for code in codes)


def is_in(language: str, languages: Sequence[str]) -> bool:
    """Whether the language of a text, as :func:`language_of` calls it, may be one of some languages."""
    return language in languages or any(_BY_SCRIPT.get(each) == language for each in languages)


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


def languages_of_inverter(inverter: Inverter) -> tuple[str, ...]:
    """Return the languages that an inverter writes: those that it names, or that of its commonest words, if any."""
    if inverter.info.languages:
        return tuple(name_languages(inverter.info.languages))
    guessed = _guess_language(inverter)
    return () if guessed is None else (guessed,)


def _guess_language(inverter: Inverter) -> str | None:
    """Return the language of the commonest words of an inverter's training texts; None if it cannot be told."""
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


def common_words(codes: Sequence[str]) -> frozenset[str]:
    """Return the commonest words of some languages, given by their codes, as far as they are known here."""
    names = set(name_languages(codes))
    return frozenset(word for word, languages in _languages_by_word().items() if names.intersection(languages))


@cache
def _languages_by_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for line in load_lines("languages"):
        language, _, words = line.partition(": ")
        for word in words.split():
            languages.setdefault(word, []).append(language)
    return languages
