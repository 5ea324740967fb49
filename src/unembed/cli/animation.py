"""Decoding in a terminal: the canvas pass by pass, its tokens coloured by confidence. Knows nothing of models."""

import sys
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from unembed.canvas.marks import SubwordMarks

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from unembed.canvas import CanvasVocabulary
    from unembed.decoding import Step

SECONDS = 1.5
"""The most that an animation adds to the time of decoding."""
MASK = "███"
SHADES = ("red", "dark_orange", "yellow", "green_yellow", "green")
"""From the least to the most confident fifth."""
# After each pass, wait for this share of the time that is left: many passes then take no longer than few.
_WAITING_SHARE = 1 / 8
# The largest number of characters between the pieces of two neighbouring tokens.
_BETWEEN_PIECES = 3

Row = tuple[str, Text]
"""A label, and its text."""


def make_console() -> Console:
    """Return the console of stdout; brackets and colons in a text are not markup."""
    # Set explicitly, because FORCE_COLOR would make rich treat a pipe as a terminal.
    return Console(markup=False, emoji=False, highlight=False, force_terminal=sys.stdout.isatty())


def grid(rows: Iterable[Row]) -> Table:
    """Lay out labelled texts in two columns; long ones wrap within theirs."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, min_width=len("recovered"))
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


class Painter:
    """Turns canvases into coloured text."""

    def __init__(self, tokenizer: "Tokenizer", vocabulary: "CanvasVocabulary") -> None:
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.marks = SubwordMarks.of(tokenizer)

    def tokens(self, canvas: Sequence[int]) -> list[str | None]:
        """Name the tokens of a canvas; None where it is masked."""
        own = {self.vocabulary.eos: "[EOS]", self.vocabulary.pad: "[PAD]", self.vocabulary.mask: None}
        return [own[token] if token in own else self.tokenizer.id_to_token(token) or "" for token in canvas]

    def canvas(self, canvas: Sequence[int], confidences: Sequence[float], changed: Sequence[bool] = ()) -> Text:
        """Write a canvas as text. A token's colour is its confidence; tokens that were just changed are reversed."""
        marks = changed or [False] * len(canvas)
        styles = [f"{shade(sure)}{' reverse' if new else ''}" for sure, new in zip(confidences, marks, strict=True)]
        parts = []
        for kind, cells in groupby(zip(canvas, styles, strict=True), key=lambda cell: self._kind(cell[0])):
            ids, colours = zip(*cells, strict=True)
            if kind == "text":
                parts.append(self._text(ids, colours))
            else:
                sign = MASK if kind == "masked" else "·"
                parts.append(Text(" ".join([sign] * len(ids)), "bright_black"))
        return Text(" ").join(parts)

    def step(self, step: "Step", search: "SearchProgress | None" = None) -> list[Row]:
        """Write a pass, or a round of a guided search: how far it is, and every hypothesis."""
        label, fact = f"pass {int(step.passes.max())}", f"{float(step.mask_rate.mean()):.0%} masked"
        if int(step.texts_embedded.max()):
            fact = f"cosine {float(step.score.max()):.3f} after {int(step.texts_embedded.max()):,} texts embedded"
            if search is not None:
                label, fact = search.describe(step, fact)
        rows = [(label, Text(f"{fact}   less sure ").append(_legend()))]
        canvases = zip(step.canvas.tolist(), step.confidence.tolist(), step.changed.tolist(), strict=True)
        return rows + [("", self.canvas(*canvas)) for canvas in canvases]

    def _kind(self, token: int) -> str:
        return "masked" if token == self.vocabulary.mask else "text" if token < self.vocabulary.size else "end"

    def _text(self, ids: Sequence[int], styles: Sequence[str]) -> Text:
        text = Text(self.tokenizer.decode(list(ids)))
        end = 0
        for token, style in zip(self.tokens(ids), styles, strict=True):
            piece = self.marks.bare(token or "")
            start = text.plain.find(piece, end, end + len(piece) + _BETWEEN_PIECES)
            # Not found: the piece is only a part of a character.
            if piece and start >= 0:
                end = start + len(piece)
                text.stylize(style, start, end)
        return text


class SearchProgress:
    """How far a guided search is: it counts rounds, and estimates how long the search may still take."""

    def __init__(self, call_limit: int) -> None:
        self._call_limit = call_limit
        self._rounds = 0
        self._begun = time.monotonic()

    def describe(self, step: "Step", fact: str) -> tuple[str, str]:
        """Return the round, and the fact with the longest time that is left."""
        self._rounds += 1
        calls = int(step.texts_embedded.max())
        left = max(0, self._call_limit - calls) * (time.monotonic() - self._begun) / calls
        return f"round {self._rounds}", f"{fact}, at most {left:.0f} s left (Ctrl-C takes this text)"


class Animation:
    """Shows passes in place as they come, and leaves the last thing shown on the screen."""

    def __init__(self, console: Console, painter: Painter, heading: Iterable[Row], call_limit: int = 0) -> None:
        self.painter = painter
        self._search = SearchProgress(call_limit)
        self.heading = list(heading)
        self._seconds_left = SECONDS
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, step: "Step") -> None:
        """Show a pass, long enough to be seen."""
        self._update(grid([*self.heading, *self.painter.step(step, self._search)]))
        pause = self._seconds_left * _WAITING_SHARE
        self._seconds_left -= pause
        time.sleep(pause)

    def end(self, rows: Iterable[Row]) -> None:
        """Show the result, which stays."""
        self._update(grid(rows))

    def _update(self, frame: RenderableType) -> None:
        self._live.update(frame, refresh=True)


def shade(confidence: float) -> str:
    """Return the colour of a confidence."""
    return SHADES[min(len(SHADES) - 1, int(confidence * len(SHADES)))]


def _legend() -> Text:
    return Text("").join(Text("■", colour) for colour in SHADES).append(" more sure", "")
