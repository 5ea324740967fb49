"""One text in, clean text or sentences out. Knows nothing of where texts come from."""

import re
import unicodedata

# A capital follows these within a sentence. Where a small letter follows, no list is needed.
_ABBREVIATION = re.compile(
    r"adm|brig|capt|cf|cmdr|col|dra?|e\.g|gen|gov|hon|i\.e|jr|lt|maj|messrs|mlle|mme|mrs?|ms|mt|pres|prof|rep|rev|sen|sgt"
    r"|sra?|st|vs",
    re.IGNORECASE,
)
# A number follows these; without one, they end a sentence as other words do ("He said no.").
_BEFORE_NUMBER = re.compile(
    r"approx|art|bd|ca|ch|eqs?|figs?|nos?|nr|op|pp?|sec|vols?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)
_INITIALS = re.compile(r"[A-HJ-ZÀ-Þ]|(?:[^\W\d_]\.)+[^\W\d_]")
_ENDINGS = re.compile(
    r"""
    (?P<western> [.!?…؟।]+ ) ["'”’»)\]]* (?=\s)     # before white space only, so that 3.14 and example.org stay whole
    | [。！？｡]+ [」』”’）》]*                         # Chinese and Japanese put no space between sentences
    """,
    re.VERBOSE,
)
_OPENING = "\"'“‘«([¿¡"
_LONGEST_WORD = 40
_SHORTEST_FRAGMENT, _LONGEST_FRAGMENT = 2, 10  # words: most search queries and titles
_PUNCTUATION = " .,;:!?…\"'“”‘’«»()[]{}-–—"


def clean(text: str) -> str:
    """Return the text in Unicode NFC, without invisible characters, on one line with single spaces.

    Control, zero-width and other unprintable characters are removed. The tokenizers of the BERT family drop them too,
    so no vector could give them back. All white space, line breaks included, becomes a single space.
    """
    if not text.isprintable():
        text = "".join(character for character in text if character.isprintable() or character.isspace())
    # After the removal, since an accent may now follow its letter.
    return " ".join(unicodedata.normalize("NFC", text).split())


def split_sentences(text: str) -> list[str]:
    """Split a clean text into its sentences, by rule.

    A sentence ends at ``.``, ``!``, ``?`` or ``…`` before white space, together with the quotes and brackets that close
    after it, or at ``。``, ``！``, ``？`` anywhere. It does not end before a small letter, nor after an abbreviation,
    an initial, or the number of a list item. Only the white space between sentences is lost.
    """
    sentences = []
    start = 0
    for ending in _ENDINGS.finditer(text):
        if _ends_sentence(text, start, ending):
            sentences.append(text[start : ending.end()].strip())
            start = ending.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def cut_fragment(text: str, position: float) -> str:
    """Return a few words in a row of a clean text, without the punctuation at either end; all of it if it is short.

    The position, a number in [0, 1), decides which words: how many, and from where.
    """
    words = text.split()
    lengths = range(_SHORTEST_FRAGMENT, min(_LONGEST_FRAGMENT, len(words)) + 1)
    if not lengths:
        return text
    turn, rest = divmod(position * len(lengths), 1.0)
    length = lengths[int(turn)]
    start = int(rest * (len(words) - length + 1))
    return " ".join(words[start : start + length]).strip(_PUNCTUATION) or text


def find_question(text: str, position: float) -> str | None:
    """Return a question that a clean text asks, or None. Every second question loses its question mark.

    The position, a number in [0, 1), decides which question, and whether the mark stays.
    """
    questions = [sentence for sentence in split_sentences(text) if sentence.endswith("?")]
    if not questions:
        return None
    turn, rest = divmod(position * len(questions), 1.0)
    question = questions[int(turn)].strip(_OPENING)
    return question if rest < 0.5 else question.rstrip(" ?")


def _ends_sentence(text: str, start: int, ending: re.Match[str]) -> bool:
    mark = ending["western"]
    if mark is None:
        return True
    following = text[ending.end() : ending.end() + 4].lstrip(f" {_OPENING}")
    if following[:1].islower():
        return False
    if mark != ".":
        return True
    # Only the end of the sentence so far: a text of abbreviations alone would otherwise take quadratic time.
    before = text[max(start, ending.start() - _LONGEST_WORD) : ending.start()].split()
    word = before[-1].lstrip(_OPENING) if before else ""
    return not (
        _ABBREVIATION.fullmatch(word)
        or (_BEFORE_NUMBER.fullmatch(word) and following[:1].isdecimal())
        or _INITIALS.fullmatch(word)  # J. Smith, U.S. Senate
        or (word.isdecimal() and before == [word])  # 1. First item
    )
