"""The fingerprints that come with the package, and how well `unembed identify` tells encoders apart.

    python benchmarks/identification.py --write
    python benchmarks/identification.py queries.txt sentences.txt

The first command embeds 1,500 texts of the package with every packaged encoder that is installed, and writes
src/unembed/identification/fingerprints.json. The second embeds 300 texts of each file, and prints what is found out
about samples of these vectors. Vectors are kept in --work: a stopped run continues.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import unembed.identification
from unembed.corpus import bundled_texts, read_texts
from unembed.encoders import CATALOGUE, Encoder, EncoderDescription, load_encoder
from unembed.identification import Identification, KnownVectors, identify, known_vectors
from unembed.identification.known import FINGERPRINTS, PROMPTS
from unembed.store import Fingerprint

ROWS, TEXTS, CHARACTERS = 1500, 300, 200
SIZES = (8, 64, 300)
MOST_PROMPTS = 3  # of an encoder that have a fingerprint of their own


class Embeddings:
    """Vectors of texts by encoder and prompt, kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._encoders: dict[str, Encoder] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def encoder(self, name: str) -> Encoder:
        """Return an encoder, without a prompt if it has a choice."""
        if name not in self._encoders:
            self._encoders[name] = load_encoder(
                name, prompt="" if name in PROMPTS else None, device="cpu", precision="auto"
            )
        return self._encoders[name]

    def get(self, name: str, prompt: str, kind: str, texts: list[str]) -> np.ndarray:
        """Return the vectors of texts (n, d)."""
        path = self._folder / f"{name}.{prompt.strip(': ') or 'none'}.{kind}.npy"
        if not path.exists():
            np.save(path, self.encoder(name).encode([prompt + text for text in texts]))
        vectors: np.ndarray = np.load(path)
        assert len(vectors) == len(texts), f"{path} holds vectors of other texts: remove it"
        return vectors


class Remembering:
    """An encoder that embeds no text twice: samples share their texts."""

    def __init__(self, embeddings: Embeddings, name: str) -> None:
        self._embeddings, self._name = embeddings, name
        self._known: dict[str, np.ndarray] = {}
        self.tokenizer = None

    @property
    def description(self) -> EncoderDescription:
        """That of the encoder."""
        return self._embeddings.encoder(self._name).description

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one row per sentence."""
        new = [text for text in dict.fromkeys(sentences) if text not in self._known]
        if new:
            self._known |= dict(zip(new, self._embeddings.encoder(self._name).encode(new), strict=True))
        return np.stack([self._known[text] for text in sentences])


def main() -> None:
    """Write the fingerprints, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="write the fingerprints that come with the package")
    parser.add_argument("--work", type=Path, default=Path("work/identification"))
    parser.add_argument("--encoders", nargs="+", help="by default all packaged ones that are installed")
    options = parser.parse_args()
    packaged = [name for name, encoder in CATALOGUE.items() if encoder.distributions and encoder.installed]
    names, embeddings = options.encoders or packaged, Embeddings(options.work)
    if options.write:
        write_fingerprints(embeddings, names)
    if options.texts:
        print_tables(embeddings, names, options.texts)


def write_fingerprints(embeddings: Embeddings, names: list[str]) -> None:
    """Write the fingerprints of encoders, rounded to three digits, one line each."""
    lines = []
    for name in names:
        for prompt in PROMPTS.get(name, ("",))[:MOST_PROMPTS]:
            if len(prompt) > len("search_document: "):
                continue  # an instruction for queries, which are not stored
            taken = Fingerprint.of([embeddings.get(name, prompt, "bundled", bundled_texts()[:ROWS])])
            assert taken is not None
            lines.append(json.dumps({"encoder": name, "prompt": prompt, "fingerprint": _shorten(taken)}))
    path = Path(unembed.identification.__file__).with_name(FINGERPRINTS)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{path}: {len(lines)} fingerprints of {ROWS:,} texts each, {path.stat().st_size / 1000:.0f} kB")


def _shorten(fingerprint: Fingerprint) -> dict[str, object]:
    values = fingerprint.model_dump()
    return {
        key: value if key == "rows" else [_round(one) for one in value] if key in ("mean", "spread") else _round(value)
        for key, value in values.items()
    }


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def print_tables(embeddings: Embeddings, names: list[str], files: list[Path]) -> None:
    """Print what is found out about each encoder's vectors."""
    texts = {path.stem: [text[:CHARACTERS] for text in islice(read_texts(path), TEXTS)] for path in files}
    vectors = {
        (name, kind): embeddings.get(name, PROMPTS.get(name, ("",))[0], kind, some)
        for name in names
        for kind, some in texts.items()
    }
    print(f"\nWithout texts; n = {TEXTS} texts of each of {', '.join(texts)}, all samples of each size\n")
    print("| encoder | " + " | ".join(f"{size} vectors" for size in SIZES) + " | 8 bits, 64 vectors | not known |")
    print("|---|" + "---|" * (len(SIZES) + 2))
    for name in names:
        own = [some for (made_by, _), some in vectors.items() if made_by == name]
        cells = [_count(name, own, size, known_vectors()) for size in SIZES]
        cells.append(_count(name, [_to_integers(some) for some in own], 64, known_vectors()))
        others = [known for known in known_vectors() if known.encoder != name]
        cells.append(_count(name, own, 64, others))
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("\nWith texts\n")
    print("| encoder | " + " | ".join(f"{size} vectors" for size in SIZES) + " | least median cosine |")
    print("|---|" + "---|" * (len(SIZES) + 1))
    remembering = {name: Remembering(embeddings, name) for name in names}
    for name in names:
        cells, cosines = [], []
        for size in SIZES:
            found = [_with_texts(vectors[name, kind][:size], some[:size], remembering) for kind, some in texts.items()]
            cells.append(_say(Counter(_outcome(name, one) for one in found)))
            agreements = [one.candidates[0].agreement for one in found]
            cosines += [agreement.median for agreement in agreements if agreement is not None]
        print(f"| {name} | " + " | ".join(cells) + f" | {min(cosines):.4f} |", flush=True)


def _with_texts(vectors: np.ndarray, texts: list[str], encoders: dict[str, Remembering]) -> Identification:
    dim = vectors.shape[1]
    asked = {name: (lambda one=one: one) for name, one in encoders.items() if CATALOGUE[name].dim == dim}
    return identify(vectors, texts, encoders=asked)


def _count(name: str, kinds: list[np.ndarray], size: int, known: Sequence[KnownVectors]) -> str:
    outcomes = (_outcome(name, identify(some, known=known)) for all_ in kinds for some in _samples(all_, size))
    return _say(Counter(outcomes))


def _samples(vectors: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield disjoint samples of one size, neighbours together."""
    for start in range(0, len(vectors) - size + 1, size):
        yield vectors[start : start + size]


def _outcome(name: str, found: Identification) -> str:
    if found.name is None:
        return found.verdict
    return "right" if found.name == name else f"wrong ({found.name})"


def _say(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())


def _to_integers(vectors: np.ndarray) -> np.ndarray:
    """Store vectors in 8 bits, each scaled to its own greatest number."""
    scaled: np.ndarray = np.rint(127 * vectors / np.abs(vectors).max(axis=1, keepdims=True))
    return scaled


if __name__ == "__main__":
    main()
