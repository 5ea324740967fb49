"""Small pictures as inline SVG: a distribution, and a bar with its interval. Knows numbers, no audits."""

from collections.abc import Sequence

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
