"""Draws an inversion pass by pass: rows are passes, cells are tokens, shaded by confidence.

python examples/denoising.py MODEL "a sentence" OUTPUT.png
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from unembed import Inverter, load_encoder

INK, PAPER, HIDDEN = "#16324f", "#ffffff", "#e9edf2"


def main() -> None:
    """Embed one sentence, invert its vector, and draw every pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an inverter: a folder or a hub id")
    parser.add_argument("sentence")
    parser.add_argument("output", type=Path)
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()

    inverter = Inverter.from_pretrained(arguments.model)
    vectors = load_encoder(inverter.info.encoder.name).encode([arguments.sentence])
    steps = list(inverter.decode(vectors, steps=arguments.steps))
    length = steps[0].canvas.shape[1]
    figure = Figure(figsize=(0.86 * length + 1.4, 0.36 * (len(steps) + 2) + 0.5), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.5, length - 0.5), ylim=(len(steps) + 0.6, -0.6), yticks=range(len(steps) + 1), xticks=[])
    axes.set_yticklabels(["start"] + [f"pass {step.passes}" for step in steps], fontsize=9, color="#5b6b7b")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for column in range(length):
        _cell(axes, column, 0, "", 0.0)
    for row, step in enumerate(steps, start=1):
        for column, (token, sure) in enumerate(zip(step.canvas[0].tolist(), step.confidence[0].tolist(), strict=True)):
            text = "" if token == inverter.info.vocabulary.mask else inverter.tokenizer.id_to_token(token)
            _cell(axes, column, row, text, sure)
    (inversion,) = inverter.invert(vectors, steps=arguments.steps)
    figure.suptitle(
        f"in:    {arguments.sentence}  →  {vectors.shape[1]} numbers\nout:  {inversion.text}",
        x=0.02,
        ha="left",
        fontsize=10,
        color=INK,
    )
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.output, dpi=140, facecolor=PAPER)


def _cell(axes, column: int, row: int, text: str, confidence: float) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    shade = HIDDEN if not text else (*(1 - confidence * (1 - c / 255) * 0.85 for c in (31, 111, 178)), 1.0)
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch((column - 0.44, row - 0.36), 0.88, 0.72, boxstyle="round,pad=0,rounding_size=0.08", color=shade)
    )
    axes.text(column, row, text, ha="center", va="center", fontsize=8.5, color=PAPER if confidence > 0.6 else INK)


if __name__ == "__main__":
    main()
