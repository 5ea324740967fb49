"""How well fingerprints tell encoders apart: false alarms on an encoder's own vectors, and foreign ones that are found.

    python benchmarks/fingerprints.py --corpus english.txt.gz news.txt queries.txt

The fingerprint of each encoder is taken from lines of the corpus; the other files are what is given to it. All encoders
must have vectors of one dimension.
"""

import argparse
from itertools import islice
from pathlib import Path

import numpy as np

from unembed.corpus import read_texts
from unembed.encoders import load_encoder
from unembed.store import Fingerprint

ROWS, TEXTS, TOGETHER = 4000, 300, 8
CHARACTERS = 200


def main() -> None:
    """Print a table: whose fingerprint, whose vectors, of which texts, how many of them raise a doubt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--encoders", nargs="+", default=["all-MiniLM-L6-v2", "granite-embedding-30m-english"])
    options = parser.parse_args()
    # Every 150th line: a corpus is often sorted by where it comes from.
    lines = [text[:CHARACTERS] for text in islice(read_texts(options.corpus), 0, ROWS * 150, 150)]
    given = {path.name: [text[:CHARACTERS] for text in islice(read_texts(path), TEXTS)] for path in options.texts}
    fingerprints: dict[str, Fingerprint] = {}
    vectors: dict[tuple[str, str], np.ndarray] = {}
    for name in options.encoders:
        encoder = load_encoder(name, device="cpu")
        found = Fingerprint.of([encoder.encode(lines).astype(np.float16)])
        assert found is not None
        fingerprints[name] = found
        vectors |= {(name, texts): encoder.encode(some) for texts, some in given.items()}
    print(f"| fingerprint ({len(lines):,} lines) | vectors | texts | n | distance | doubted alone | in {TOGETHER}s |")
    print("|---|---|---|---|---|---|---|")
    for own, fingerprint in fingerprints.items():
        for (name, texts), some in vectors.items():
            alone, together = (
                np.mean([bool(fingerprint.doubts(some[start : start + size])) for start in range(0, len(some), size)])
                for size in (1, TOGETHER)
            )
            row = f"{fingerprint.distance(some):.2f} | {alone:.1%} | {together:.1%}"
            print(f"| {own} | {name} | {texts} | {len(some)} | {row} |")


if __name__ == "__main__":
    main()
