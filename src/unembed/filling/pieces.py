"""The tokens that candidates are written with inside a template. Knows tokenizers, no models and no vectors."""

import re
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from unembed.filling.steps import Steps
from unembed.filling.template import Template

_LAST_WORD = re.compile(r"\S*\s*$")
_FIRST_WORD = re.compile(r"\s*\S*")
_AT_ONCE = 8192


class Pieces:
    """The tokens of the candidates of one slot."""

    def __init__(self, found: Sequence[Sequence[int]]) -> None:
        self.counts = np.array([len(pieces) for pieces in found])
        """How many tokens each candidate has."""
        self.ids = np.full((len(found), max(1, int(self.counts.max(initial=0)))), -1)
        """(n, most): the tokens of each candidate, -1 behind the last one."""
        for row, pieces in enumerate(found):
            self.ids[row, : len(pieces)] = pieces

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, candidate: int) -> list[int]:
        """Return the tokens of a candidate."""
        tokens: list[int] = self.ids[candidate, : self.counts[candidate]].tolist()
        return tokens


def read_pieces(tokenizer: Tokenizer, template: Template, slot: int, candidates: Sequence[str]) -> Steps[Pieces]:
    """Return the tokens of a slot's candidates, with pauses."""
    # No tokenizer looks further than the words beside a word, so the rest of the template can be left out.
    before, after = template.texts[slot], template.texts[slot + 1]
    left, right = _LAST_WORD.search(before), _FIRST_WORD.match(after)
    beside = Template((left[0] if left else "", right[0] if right else ""), (template.slots[slot],))
    found: list[list[int]] = []
    for start in range(0, len(candidates), _AT_ONCE):
        values = candidates[start : start + _AT_ONCE]
        encodings = tokenizer.encode_batch([beside.fill([value]) for value in values], add_special_tokens=False)
        for value, encoding in zip(values, encodings, strict=True):
            ((begin, end),) = beside.spans([value])
            found.append(
                [token for token, (a, b) in zip(encoding.ids, encoding.offsets, strict=True) if a < end and b > begin]
            )
        yield
    return Pieces(found)


def read_filled(tokenizer: Tokenizer, template: Template, values: Sequence[str]) -> tuple[list[int], list[list[int]]]:
    """Return the ids of a filled template, and the positions of each slot's tokens."""
    encoding = tokenizer.encode(template.fill(values), add_special_tokens=False)
    slots = [
        [place for place, (a, b) in enumerate(encoding.offsets) if a < end and b > begin]
        for begin, end in template.spans(values)
    ]
    return list(encoding.ids), slots
