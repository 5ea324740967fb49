"""From text files to the texts that are inverted and compared. Knows tokenizers and protocols, no models.

Two protocols. ``canvas`` is the paper's: texts are cut to the canvas, shorter ones are left out. ``natural``: texts
that fit the canvas as they are, uncut. Either way a text is what its tokens say, in the tokenizer's normal form.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import count_lost, fit_to_canvas
from unembed.errors import CorpusError

Protocol = Literal["canvas", "natural"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
_AT_ONCE = 512


@dataclass(frozen=True)
class ReferenceTexts:
    """The texts of one protocol, in random order."""

    protocol: Protocol
    canvas_length: int
    texts: list[str]
    """In the tokenizer's normal form."""
    ids: list[list[int]]
    looked_at: int
    """Different texts that were considered, in random order, until there were enough."""
    available: int
    """Different texts that there are."""
    lost_share: float
    """Share of the considered texts' tokens that no canvas can hold."""

    def __len__(self) -> int:
        return len(self.ids)


def choose_references(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    *,
    protocol: Protocol,
    canvas_length: int,
    limit: int,
    seed: int = 0,
    name: str = "the texts",
) -> ReferenceTexts:
    """Draw up to ``limit`` different texts that the protocol admits.

    The order depends on the texts and the seed alone, so that models of other tokenizers see the same texts where
    they can.
    """
    different = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    order = np.random.default_rng(seed).permutation(len(different))
    kept: list[tuple[list[int], str]] = []
    looked_at = 0
    for start in range(0, len(order), _AT_ONCE):
        for admitted in _admit(
            [different[index] for index in order[start : start + _AT_ONCE]], tokenizer, protocol, canvas_length
        ):
            looked_at += 1
            if admitted is not None:
                kept.append(admitted)
            if len(kept) == limit:
                break
        if len(kept) == limit:
            break
    if not kept:
        wanted = "at least" if protocol == "canvas" else "at most"
        raise CorpusError(
            f"None of the {len(different)} different texts of {name} has {wanted} {canvas_length} tokens.",
            f"Give other texts, or choose `protocol={'natural' if protocol == 'canvas' else 'canvas'}`.",
        )
    ids, written = zip(*kept, strict=True)
    lost, total = count_lost([different[index] for index in order[:looked_at]], tokenizer)
    share = lost / max(1, total)
    return ReferenceTexts(protocol, canvas_length, list(written), list(ids), looked_at, len(different), share)


def _admit(
    texts: Sequence[str], tokenizer: Tokenizer, protocol: Protocol, canvas_length: int
) -> list[tuple[list[int], str] | None]:
    """Return the ids and the text of each input, None where the protocol leaves it out."""
    # Allow one token more than fits: it shows whether a text had to be cut.
    room = canvas_length if protocol == "canvas" else canvas_length + 1
    admitted: list[tuple[list[int], str] | None] = [None] * len(texts)
    for ids, text, row in zip(*fit_to_canvas(texts, tokenizer, room), strict=True):
        if (len(ids) == canvas_length) if protocol == "canvas" else (len(ids) <= canvas_length):
            admitted[row] = (ids, text)
    return admitted
