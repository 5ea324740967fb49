"""What the defences of the web page's slider leave of a search, and of the texts: the figures of ``defences/``.

python benchmarks/slider.py search > src/unembed/defences/slider.json
python benchmarks/slider.py leakage > src/unembed/defences/leakage.json    # after the default inverter has changed
"""

import argparse
import json
from pathlib import Path

import numpy as np

from unembed import Inverter, load_encoder
from unembed.alignment.fitting import ridge
from unembed.config import DecodingConfig
from unembed.corpus import bundled_texts
from unembed.defences import DEFENCES, Defence, apply
from unembed.measures.content import content_recall
from unembed.measures.vectors import normalise

TEXTS, QUERIES, STRENGTHS, NEAREST = 3000, 500, 11, 10
ATTACKED = Path(__file__).with_name("opener.txt")
"""Sentences such as somebody would not want to leak; no inverter was trained on them."""
OWN, STEPS, PENALTY = 1500, 6, 0.01


def main() -> None:
    """Print the figures of one of the two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["search", "leakage"])
    measured = neighbours() if parser.parse_args().what == "search" else leakage()
    print(json.dumps(measured, indent=1))


def neighbours() -> dict[str, list[float]]:
    """Return, for each kind, the share of a vector's ten nearest neighbours that stay, from strength 0 to 1."""
    vectors = normalise(load_encoder().encode(bundled_texts()[:TEXTS]))
    before = nearest(vectors, vectors[:QUERIES])
    shares: dict[str, list[float]] = {}
    for kind in DEFENCES:
        shares[kind] = []
        for strength in np.linspace(0, 1, STRENGTHS):
            defended = apply(vectors, Defence(kind=kind, strength=float(strength)))
            # Only a rotation needs the query to be turned, too.
            queries = defended[:QUERIES] if kind == "rotation" else vectors[:QUERIES]
            after = nearest(normalise(defended), queries)
            kept = [len(set(old) & set(new)) / NEAREST for old, new in zip(before, after, strict=True)]
            shares[kind].append(round(float(np.mean(kept)), 3))
    return shares


def nearest(documents: np.ndarray, queries: np.ndarray) -> list[list[int]]:
    """Return the nearest documents of each of the first ones, without itself."""
    nearness = queries @ documents.T
    nearness[np.arange(len(queries)), np.arange(len(queries))] = -np.inf
    found: list[list[int]] = np.argpartition(-nearness, NEAREST, axis=1)[:, :NEAREST].tolist()
    return found


def leakage() -> dict[str, dict[str, list[float]]]:
    """Return, for each kind, the share of content words that two blind attackers read, from strength 0 to 1.

    ``naive`` inverts the vectors as they are. ``adaptive`` knows the defence, applies it to texts of its own, and maps
    the vectors back by ridge regression. Against a rotation, its own texts are stored ones whose texts became known.
    """
    inverter = Inverter.default()
    encoder = inverter.load_encoder()
    texts = ATTACKED.read_text(encoding="utf-8").splitlines()
    vectors, own = (normalise(encoder.encode(part)) for part in (texts, bundled_texts()[:OWN]))

    def read(attacked: np.ndarray) -> float:
        inversions = inverter.invert(normalise(attacked), DecodingConfig(candidates=1))
        recalls = [content_recall(each.text, text) for each, text in zip(inversions, texts, strict=True)]
        return round(float(np.mean(recalls)), 3)

    whole = read(vectors)
    figures: dict[str, dict[str, list[float]]] = {"none": {"naive": [whole] * STEPS, "adaptive": [whole] * STEPS}}
    for kind in DEFENCES:
        if kind == "none":
            continue
        figures[kind] = {"naive": [], "adaptive": []}
        for strength in np.linspace(0, 1, STEPS):
            defence = Defence(kind=kind, strength=float(strength))
            seen, known = apply(vectors, defence), apply(own, defence)
            means = known.mean(0), own.mean(0)
            back, _ = ridge(known - means[0], own - means[1], PENALTY)
            figures[kind]["naive"].append(read(seen))
            figures[kind]["adaptive"].append(read((seen - means[0]) @ back + means[1]))
    return figures


if __name__ == "__main__":
    main()
