"""Calibration: inverts known texts of many kinds, and writes what the audit estimates from to a file of the package.

The folder holds a file ``<kind>.txt`` for each kind of text, one text per line. Kinds that share what stands before a
hyphen come from one source, and are left out together when errors are measured. Kinds that are named with
``--other-languages`` are in another language than the inverter's. The first 300 lines of each file are kept for
``benchmarks/audit.py``; the texts here are taken from the others. docs/audit-benchmark.md says where ours come from.

    python benchmarks/calibration.py FOLDER --other-languages german spanish --work work/calibration
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from unembed.auditing.calibration import STORED, Calibration, Clues, identity_of
from unembed.auditing.estimate import KnownRecoveries
from unembed.auditing.finding import LENGTHS, RANKS
from unembed.auditing.findings import OriginalTexts, Sight
from unembed.auditing.known import KnownTexts
from unembed.auditing.language import languages_of_inverter
from unembed.auditing.recover import Attacker, FinishedParts, Recovery
from unembed.auditing.words import WordReader
from unembed.encoders import Encoder
from unembed.inverter import Inverter
from unembed.measures import content_words, stem

RESERVED = 300
"""Lines of each file that are kept for the report."""
_RIDGE = 3.0
# Longer texts are cut by the encoder, so that vectors cannot tell them apart.
_LONGEST = 256


def main() -> None:
    """Invert, fit, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the texts")
    parser.add_argument("--other-languages", nargs="*", default=[], help="kinds in another language")
    parser.add_argument("--blind", type=int, default=60, help="texts of each kind that are inverted")
    parser.add_argument("--embedded", type=int, default=150, help="texts of each kind for the clues and the words")
    parser.add_argument("--work", type=Path, default=Path("work/calibration"), help="finished parts; they are kept")
    parser.add_argument(
        "--output", type=Path, default=Path("src/unembed/auditing") / STORED, help="the file (default: %(default)s)"
    )
    options = parser.parse_args()
    inverter = Inverter.default(device="cpu")
    encoder = inverter.load_encoder(device="cpu")
    maker = CalibrationMaker(inverter, encoder, options.work, set(options.other_languages))
    for path in sorted(options.folder.glob("*.txt")):
        texts = list(dict.fromkeys(path.read_text(encoding="utf-8").splitlines()))[RESERVED:]
        if len(texts) >= options.blind:
            maker.add(path.stem, texts, options.blind, options.embedded)
    made = maker.finish()
    options.output.write_text(json.dumps(made.to_json(), separators=(",", ":")) + "\n", encoding="utf-8")
    print(len(made.known), {name: round(each, 3) for name, each in made.known.widening.items()})
    for source, error in made.known.errors["readable"].items():
        print(f"  {source}: {error:+.3f}")


class CalibrationMaker:
    """Collects recoveries kind by kind."""

    def __init__(self, inverter: Inverter, encoder: Encoder, work: Path, other_languages: set[str]) -> None:
        self._inverter, self._encoder, self._work, self._other = inverter, encoder, work, other_languages
        self._sight = Sight(inverter.info.model.canvas_length, languages_of_inverter(inverter))
        self._texts: dict[str, KnownTexts] = {}
        self._recoveries: dict[str, list[Recovery]] = {}

    def add(self, kind: str, texts: list[str], blind: int, embedded: int) -> None:
        """Invert texts of a kind."""
        print(f"{kind}: {len(texts)} texts", file=sys.stderr, flush=True)
        texts = texts[: max(blind, embedded)]
        originals = OriginalTexts.of(texts, self._inverter)
        if kind in self._other:  # the kind is known, where a text is too short to tell
            originals = OriginalTexts(originals.written, originals.texts, originals.ids, [kind] * len(texts))
        known = KnownTexts(kind, [kind] * len(texts), self._encoder.encode(texts), originals)
        finished = FinishedParts(self._work / kind, {"texts": texts, "inverter": identity_of(self._inverter.info)})
        attacker = Attacker(self._inverter, self._encoder, finished)
        self._texts[kind] = known
        parts = attacker.blind(known.vectors[:blind], "known")
        self._recoveries[kind] = [recovery for part in parts for recovery in part]

    def finish(self) -> Calibration:
        """Fit the clues, and put everything together."""
        parts = []
        for kind, recoveries in self._recoveries.items():
            # The clues of a source are fitted to the others, as they are for the texts that will be audited.
            others = [other for other in self._texts if _source(other) != _source(kind)]
            parts.append(self._texts[kind].know(recoveries, self._sight, self._clues(others)))
        return Calibration(
            name="the stored calibration",
            clues=self._clues(list(self._texts)),
            known=_join(parts),
            inverter=identity_of(self._inverter.info),
            words=self._measure_words(),
        )

    def _clues(self, kinds: list[str]) -> Clues:
        """Fit what vectors say about the length and the language of their texts."""
        texts = [self._texts[kind] for kind in kinds]
        lengths = [len(ids) for known in texts for ids in known.originals.ids]
        other = [float(kind in self._other) for kind, known in zip(kinds, texts, strict=True) for _ in known.kinds]
        targets = np.stack([np.log(np.clip(lengths, 1, _LONGEST)), other], axis=1)
        return Clues.fit(np.concatenate([known.vectors for known in texts]), targets, _RIDGE)

    def _measure_words(self) -> list[dict[str, object]]:
        """Measure how often a content word of a text is among its likeliest words, for texts of several lengths."""
        reader = WordReader(self._inverter, top=RANKS[-1], vocabulary=1_000_000)
        stems = np.array([stem(word) for word in reader.words])
        ranks: dict[int, list[float]] = {limit: [] for limit in LENGTHS}
        right: dict[int, list[np.ndarray]] = {limit: [] for limit in LENGTHS}
        for kind, known in self._texts.items():
            if kind in self._other:
                continue
            found = reader.read(known.vectors)
            for row, (text, ids) in enumerate(zip(known.originals.texts, known.originals.ids, strict=True)):
                limit = next((limit for limit in LENGTHS if len(ids) <= limit), LENGTHS[-1])
                named, held = stems[found.indices[row]], set(content_words(text))
                there = np.isin(named, list(held))
                first = {word: rank for rank, word in reversed(list(enumerate(named, 1)))}
                ranks[limit] += [first.get(word, np.inf) for word in held if not word.isdigit()]
                right[limit].append(np.cumsum(there)[np.array(RANKS) - 1] / np.array(RANKS))
        return [
            {
                "tokens": limit,
                "texts": len(right[limit]),
                "recall": [round(float(np.mean(np.array(ranks[limit]) <= rank)), 3) for rank in RANKS],
                "precision": np.round(np.mean(right[limit], axis=0), 3).tolist(),
            }
            for limit in LENGTHS
            if right[limit]
        ]


def _source(kind: str) -> str:
    return kind.partition("-")[0]


def _join(parts: list[KnownRecoveries]) -> KnownRecoveries:
    return KnownRecoveries(
        [kind for part in parts for kind in part.kinds],
        np.concatenate([part.signs for part in parts]),
        {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values},
    )


if __name__ == "__main__":
    main()
