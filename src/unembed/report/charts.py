"""Small pictures as inline SVG: a distribution, a bar with its interval, points of two shares. Knows numbers only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from unembed.evaluation import Figure

_WIDTH, _HEIGHT = 640, 170
_LEFT, _BOTTOM, _TOP = 8, 34, 20


def histogram(counts: Sequence[float], *, threshold: float, what: str) -> Markup:
    """Draw how many vectors lie in each of equal steps from 0 to 1; those from ``threshold`` on stand out.

    Expected numbers need not be whole; they are written with a decimal where it is all there is.
    """
    step = (_WIDTH - 2 * _LEFT) / len(counts)
    room = _HEIGHT - _BOTTOM - _TOP
    most = max([*counts, 1.0])
    parts = []
    for index, count in enumerate(counts):
        height = room * count / most
        left, top = _LEFT + index * step, _HEIGHT - _BOTTOM - height
        kind = "high" if index / len(counts) >= threshold else "low"
        if shown := _count(count):
            parts.append(
                f'<rect class="{kind}" x="{left + 2:.1f}" y="{top:.1f}" width="{step - 4:.1f}" height="{height:.1f}"/>'
                f'<text class="count" x="{left + step / 2:.1f}" y="{top - 5:.1f}">{shown}</text>'
            )
        parts.append(f'<text class="tick" x="{left:.1f}" y="{_HEIGHT - _BOTTOM + 16}">{index / len(counts):.0%}</text>')
    end = _WIDTH - _LEFT
    parts.append(f'<text class="tick last" x="{end}" y="{_HEIGHT - _BOTTOM + 16}">100%</text>')
    parts.append(f'<line x1="{_LEFT}" y1="{_HEIGHT - _BOTTOM}" x2="{end}" y2="{_HEIGHT - _BOTTOM}"/>')
    parts.append(f'<text class="axis" x="{_WIDTH / 2}" y="{_HEIGHT - 3}">{what}</text>')
    values = ", ".join(f"{index / len(counts):.0%}: {_count(count) or 0}" for index, count in enumerate(counts))
    return _svg(_WIDTH, _HEIGHT, parts, f"Vectors by {what}: {values}", "histogram")


def _count(count: float) -> str:
    """Write a number of vectors; nothing for none."""
    if count < 0.05:
        return ""
    return f"{count:.1f}" if count < 0.95 else f"{count:,.0f}"


def bar(figure: Figure) -> Markup:
    """Draw a share from 0 to 1 with its interval, to stand in a row of a table."""
    width, height = 160, 14
    middle = height / 2
    parts = [
        f'<rect class="track" x="0" y="3" width="{width}" height="{height - 6}"/>',
        f'<rect class="high" x="0" y="3" width="{width * figure.value:.1f}" height="{height - 6}"/>',
        f'<line class="interval" x1="{width * figure.low:.1f}" y1="{middle}" x2="{width * figure.high:.1f}" '
        f'y2="{middle}"/>',
    ]
    return _svg(width, height, parts, f"{figure.value:.0%}, from {figure.low:.0%} to {figure.high:.0%}", "bar")


def _svg(width: float, height: float, parts: Sequence[str], label: str, kind: str) -> Markup:
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{Markup.escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


@dataclass(frozen=True)
class Point:
    """A place in a picture of two shares, with what it is called."""

    across: float
    up: float
    name: str
    line: str
    """Points of one line are connected."""


_COLOURS = (
    "#1f6fb2",
    "#c8553d",
    "#3f8f5b",
    "#8a5a00",
    "#6f4aa8",
    "#2f8f9d",
    "#b3261e",
    "#5a6675",
    "#a3477f",
    "#4a6b1e",
    "#000",
    "#d08c1d",
    "#7d8fd6",
)


def scatter(points: Sequence[Point], *, across: str, up: str) -> Markup:
    """Draw points by two shares; those of a line are connected and have a colour, which a legend names."""
    width, height, left, bottom, top = 640.0, 400.0, 52.0, 44.0, 12.0
    right = width - 150
    least = min([point.across for point in points], default=0.0)
    start, end = (
        max(0.0, np.floor(10 * (least - 0.02)) / 10),
        max([point.across for point in points], default=1.0) + 0.02,
    )
    highest = max([point.up for point in points], default=1.0) * 1.08 or 1.0

    def place(point: Point) -> tuple[float, float]:
        x = left + (right - left) * (point.across - start) / max(end - start, 1e-9)
        return x, height - bottom - (height - bottom - top) * point.up / highest

    parts = [
        f'<line x1="{left}" y1="{height - bottom}" x2="{right}" y2="{height - bottom}"/>',
        f'<line x1="{left}" y1="{top}" x2="{left}" y2="{height - bottom}"/>',
        f'<text class="axis" x="{(left + right) / 2}" y="{height - 8}">{Markup.escape(across)}</text>',
        f'<text class="axis" transform="translate(14 {(top + height - bottom) / 2}) rotate(-90)">'
        f"{Markup.escape(up)}</text>",
    ]
    for tick in np.arange(np.ceil(start * 10) / 10, end, 0.1):
        x, _ = place(Point(float(tick), 0.0, "", ""))
        parts.append(f'<text class="axis" x="{x:.1f}" y="{height - bottom + 16}">{tick:.1f}</text>')
    for tick in np.arange(0.0, highest, 0.1):
        _, y = place(Point(start, float(tick), "", ""))
        parts.append(f'<text class="last" x="{left - 6}" y="{y + 4:.1f}">{tick:.1f}</text>')
    for number, line in enumerate(dict.fromkeys(point.line for point in points)):
        colour = _COLOURS[number % len(_COLOURS)]
        members = [point for point in points if point.line == line]
        places = [place(point) for point in members]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5" opacity="0.6"/>')
        for (x, y), point in zip(places, members, strict=True):
            label = Markup.escape(f"{point.name}: {across} {point.across:.3f}, {up} {point.up:.3f}")
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{label}</title></circle>')
        y = top + 14 + 18 * number
        parts.append(f'<circle cx="{right + 16}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text class="legend" x="{right + 26}" y="{y}">{Markup.escape(line)}</text>')
    said = "; ".join(f"{point.name} {point.across:.2f}, {point.up:.2f}" for point in points)
    return _svg(width, height, parts, f"{up} by {across}: {said}", "scatter")
