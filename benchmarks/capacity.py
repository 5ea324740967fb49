"""How much fits into a vector: what comes back of texts of 8 to 128 tokens, blind and with the encoder.

The texts are the starts of the lines of a file, cut to each number of tokens; a line that is shorter is left out. The
length is guessed. Several inverters are compared on the same vectors. A guided search takes time, so it gets fewer
texts, and none that is longer than what the inverter writes.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guided import choose_texts
from measure import Result, finish, make_parser
from unembed.config import DecodingConfig, parse
from unembed.encoders import Encoder
from unembed.evaluation import Bootstrap
from unembed.files import atomic_path
from unembed.inverter import Inverter
from unembed.measures import BY_NAME, Forms, compare

MEASURED = ("token_f1", "content_recall", "rouge_l", "exact_match", "cosine")
_DRAWN = ("token_f1", "content_recall", "cosine")
_COLOURS = ("#1f6fb2", "#c8553d", "#3f8f5b", "#8a6bbf")
_OURS = ("The cat is sleeping on the sofa in the living room while the children are playing outside in the garden.",)
_BOOTSTRAP = Bootstrap()


@dataclass(frozen=True)
class Way:
    """An inverter and how it decodes."""

    name: str
    inverter: Inverter
    options: DecodingConfig
    count: int
    """Texts per length."""


def recover(way: Way, encoder: Encoder, lines: list[str], tokens: int) -> dict[str, np.ndarray]:
    """Read the starts of lines back from their vectors; one value per text and measure."""
    texts = choose_texts(way.inverter, lines, (tokens, tokens), way.count, cut=True)
    if not texts:
        return {}
    originals = [each.text for each in texts]
    vectors = encoder.encode(originals)
    found = way.inverter.invert(vectors, way.options, encoder=encoder)
    recovered = [each.text for each in found]
    forms = Forms([each.ids for each in found], recovered, encoder.encode(recovered))
    references = Forms([each.ids for each in texts], originals, vectors)
    return compare(forms, references, [BY_NAME[name] for name in MEASURED])


def draw(curves: dict[str, dict[int, dict[str, np.ndarray]]], picture: Path) -> None:
    """Draw each measure against the number of tokens, in the band of its interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.0 * len(_DRAWN), 3.4), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(_DRAWN))), _DRAWN, strict=True):
        for (way, points), colour in zip(curves.items(), _COLOURS * len(curves), strict=False):
            _draw_curve(axes, way, {tokens: values[name] for tokens, values in points.items()}, colour)
        axes.set_xscale("log", base=2)
        lengths = sorted({tokens for points in curves.values() for tokens in points})
        axes.set_xticks(lengths, [str(tokens) for tokens in lengths])
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("tokens of the text")
        axes.set_title(BY_NAME[name].label)
        axes.grid(alpha=0.25)
    figure.axes[0].legend(frameon=False, fontsize=8)
    with atomic_path(picture) as path:
        figure.savefig(path, dpi=140, format="png")


def _draw_curve(axes: Any, name: str, points: dict[int, np.ndarray], colour: str) -> None:
    tokens = sorted(points)
    means = [_BOOTSTRAP.mean(points[each]) for each in tokens]
    axes.plot(tokens, [each.value for each in means], color=colour, marker="o", markersize=3.5, label=name)
    low, high = [each.low for each in means], [each.high for each in means]
    axes.fill_between(tokens, low, high, color=colour, alpha=0.15, linewidth=0)


def main() -> None:
    """Read texts of each length back in each way."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("--texts", type=Path, help="a file with a text per line")
    parser.add_argument("--lines", type=int, default=300, help="how many of its lines (default: %(default)s)")
    parser.add_argument("--model", nargs="+", default=["default"], help="the inverters (default: %(default)s)")
    parser.add_argument("--tokens", nargs="+", type=int, default=[8, 16, 32, 64, 96], help="(default: %(default)s)")
    parser.add_argument("--count", type=int, default=200, help="texts per length, blind (default: %(default)s)")
    parser.add_argument("--guided", type=int, default=0, help="texts per length, with the encoder (default: none)")
    parser.add_argument("--calls", type=int, default=1000, help="encoder calls per text (default: %(default)s)")
    parser.add_argument("--picture", type=Path, help="where to draw the curves, .png")
    options = parser.parse_args()
    if options.quick:
        options.tokens, options.count, options.guided, options.calls = [8], 1, 1, 40
    lines = options.texts.read_text(encoding="utf-8").splitlines()[: options.lines] if options.texts else list(_OURS)
    search = parse(DecodingConfig, {"strategy": "guided", "guided": {"calls": options.calls}}, "the options")
    inverters = {name: Inverter.from_pretrained(name, device="cpu") for name in options.model}
    encoder = inverters[options.model[0]].load_encoder(device="cpu")
    ways = [Way(f"{name}, blind", each, DecodingConfig(), options.count) for name, each in inverters.items()]
    if options.guided:
        ways += [Way(f"{name}, guided", each, search, options.guided) for name, each in inverters.items()]
    rows: list[list[str]] = []
    curves: dict[str, dict[int, dict[str, np.ndarray]]] = {way.name: {} for way in ways}
    for tokens in options.tokens:
        for way in ways:
            if way.options.searches and tokens > way.inverter.info.model.canvas_length:
                continue  # no text that it writes can be the right one
            values = recover(way, encoder, lines, tokens)
            if not values:
                continue
            curves[way.name][tokens] = values
            means = [_BOOTSTRAP.mean(values[name]) for name in MEASURED]
            cells = [f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]" for each in means]
            rows.append([str(tokens), way.name, str(len(values["token_f1"])), *cells])
            print(f"  {' | '.join(rows[-1])}", file=sys.stderr, flush=True)
    if options.picture:
        draw(curves, options.picture)
    finish(
        Result(
            title="How much fits into a vector",
            compared="Texts cut to so many tokens with what was read back from their vectors; the length is guessed.",
            columns=["tokens", "inverter", "n", *(BY_NAME[name].label for name in MEASURED)],
            rows=rows,
            figures=[],
            repetitions=1,
            sizes={"lines": len(lines), "texts": options.texts.name if options.texts else "our own"},
            notes=[f"Guided searches ask the encoder for at most {options.calls:,} texts."] if options.guided else [],
        ),
        options,
    )


if __name__ == "__main__":
    main()
