"""Draws an inversion pass by pass: rows are passes, cells are tokens, shaded by confidence.

python examples/denoising.py MODEL "a sentence" OUTPUT.png
"""

import argparse
from pathlib import Path

from unembed import Inverter, load_encoder
from unembed.evaluation import draw_denoising, read_passes


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
    passes = read_passes(inverter.decode(vectors, steps=arguments.steps), inverter)
    (inversion,) = inverter.invert(vectors, steps=arguments.steps)
    texts = {"in": f"{arguments.sentence}  →  {vectors.shape[1]} numbers", "out": inversion.text}
    draw_denoising(passes, texts, arguments.output)


if __name__ == "__main__":
    main()
