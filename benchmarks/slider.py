"""What the defences of the web page's slider leave of a search: the figures of ``defences/slider.json``.

Run: python benchmarks/slider.py > src/unembed/defences/slider.json
"""

import json

import numpy as np

from unembed import load_encoder
from unembed.corpus import bundled_texts
from unembed.defences import DEFENCES, Defence, apply
from unembed.measures.vectors import normalise

TEXTS, QUERIES, STRENGTHS, NEAREST = 3000, 500, 11, 10


def main() -> None:
    """Print, for each kind, the share of a vector's ten nearest neighbours that stay, from strength 0 to 1."""
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
    print(json.dumps(shares, indent=1))


def nearest(documents: np.ndarray, queries: np.ndarray) -> list[list[int]]:
    """Return the nearest documents of each of the first ones, without itself."""
    nearness = queries @ documents.T
    nearness[np.arange(len(queries)), np.arange(len(queries))] = -np.inf
    found: list[list[int]] = np.argpartition(-nearness, NEAREST, axis=1)[:, :NEAREST].tolist()
    return found


if __name__ == "__main__":
    main()
