"""The denoising figure: rows are passes, cells are tokens, shaded by confidence."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unembed.decoding import Step
from unembed.errors import require_extra
from unembed.files import atomic_path
from unembed.inverter import Inverter

_INK, _PAPER, _HIDDEN, _QUIET = "#16324f", "#ffffff", "#e9edf2", "#5b6b7b"
_SHADE = (31, 111, 178)
_TOKENS_A_LINE = 16
_GAP, _MARGIN = 0.07, 0.75


@dataclass(frozen=True)
class Pass:
    """A canvas after a pass."""

    tokens: list[str | None]
    """None where masked."""
    confidences: list[float]


def read_passes(steps: Iterable[Step], inverter: Inverter, row: int = 0) -> list[Pass]:
    """Return the passes over the hypothesis that was kept for one vector."""
    own = [
        (step, index) for step in steps for index, number in enumerate(step.rows.tolist()) if number == row
    ]  # a step may show several hypotheses of the vector
    kept = next(int(step.candidate[index]) for step, index in own if bool(step.final[index]))
    passes: dict[int, Pass] = {}
    for step, index in own:
        if int(step.candidate[index]) != kept:
            continue
        ids = step.canvas[index].tolist()
        tokens = [
            None if token == inverter.info.vocabulary.mask else inverter.tokenizer.id_to_token(token) or ""
            for token in ids
        ]
        passes[int(step.passes[index])] = Pass(tokens, step.confidence[index].tolist())
    return list(passes.values())


def draw_denoising(passes: Sequence[Pass], texts: Mapping[str, str], target: Path) -> None:
    """Draw every pass, beginning with the all-masked canvas; long texts are broken into lines of 16 tokens.

    Args:
        passes: from :func:`read_passes`.
        texts: what stands above them, by its label.
        target: a PNG file.
    """
    require_extra("eval", "matplotlib")
    from matplotlib.figure import Figure

    length = len(passes[0].tokens)
    canvases = [Pass([None] * length, [0.0] * length), *passes]
    spans = [range(start, min(start + _TOKENS_A_LINE, length)) for start in range(0, length, _TOKENS_A_LINE)]
    # All sizes are in inches. A column is as wide as the longest token that ever stands in it.
    widths = [
        max(0.42, 0.16 + 0.078 * max(len(canvas.tokens[position] or "") for canvas in canvases))
        for position in range(length)
    ]
    widest = max(4.0, *(sum(widths[position] + _GAP for position in span) for span in spans))
    wrapped = {label: textwrap.wrap(text, int(widest / 0.072)) or [""] for label, text in texts.items()}
    head = 0.12 + 0.17 * sum(map(len, wrapped.values()))
    block = 0.27 * len(canvases)
    width, height = _MARGIN + widest, head + (block + 0.12) * len(spans)
    figure = Figure(figsize=(width, height), facecolor=_PAPER)
    below = height - 0.06
    for label, lines in wrapped.items():
        for text, left, colour in ((label, 0.05, _QUIET), ("\n".join(lines), _MARGIN, _INK)):
            figure.text(
                left / width,
                below / height,
                text,
                va="top",
                fontsize=8.5,
                color=colour,
                linespacing=1.25,
                parse_math=False,
            )
        below -= 0.17 * len(lines)
    for number, span in enumerate(spans):
        bottom = height - head - (block + 0.12) * (number + 1) + 0.12
        axes = figure.add_axes((_MARGIN / width, bottom / height, widest / width, block / height))
        axes.set(xlim=(0, widest), ylim=(len(canvases) - 0.5, -0.5), xticks=[], yticks=range(len(canvases)))
        axes.set_yticklabels(["start", *(f"pass {n}" for n in range(1, len(canvases)))], fontsize=8, color=_QUIET)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        left = 0.0
        for position in span:
            for row, canvas in enumerate(canvases):
                _cell(axes, left, widths[position], row, canvas.tokens[position], canvas.confidences[position])
            left += widths[position] + _GAP
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format="png", dpi=140)


def _cell(axes: Any, left: float, width: float, row: int, token: str | None, confidence: float) -> None:
    from matplotlib.patches import Rectangle

    shade = _HIDDEN if token is None else tuple(1 - (0.1 + 0.8 * confidence) * (1 - part / 255) for part in _SHADE)
    axes.add_patch(Rectangle((left, row - 0.42), width, 0.84, facecolor=shade, edgecolor="none"))
    colour = _PAPER if confidence > 0.6 else _INK
    axes.text(left + width / 2, row, token or "", ha="center", va="center", fontsize=8, color=colour, parse_math=False)
