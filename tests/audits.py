"""Builds audits from pairs of an original and a recovered text, without a model: what reports are tested on."""

from collections import Counter

import numpy as np

from unembed.auditing.encoder import Identified
from unembed.auditing.estimate import KnownRecoveries
from unembed.auditing.findings import OriginalTexts, RowMaker, Sight, describe_attack
from unembed.auditing.leaks import Leak
from unembed.auditing.recover import Recovery
from unembed.auditing.result import SIGHT, Audit, CalibrationFacts, SourceFacts
from unembed.auditing.verdict import judge
from unembed.connectors import StorageInfo
from unembed.evaluation import Bootstrap

SUBSTANCE = ["insulin", "salary", "maria", "keller", "lisbon", "invoice", "doctor", "monday", "contract", "report"]
WORDS = [*SUBSTANCE, "the", "of", "with", "and"]


class Spaces:
    """A tokenizer for texts that are only decoded here."""

    def decode_batch(self, ids):
        return [" ".join(WORDS[token] for token in each) for each in ids]


class Detectors:
    """Finds a few words."""

    kinds = ("names", "places", "medical terms")

    def find(self, text):
        kinds = {"maria": "names", "keller": "names", "lisbon": "places"}
        return [Leak(kinds[word], word) for word in text.split() if word in kinds]

    def find_all(self, texts):
        return [self.find(text) for text in texts]


def ids_of(text):
    return [WORDS.index(word) for word in text.split()]


def recovery(text, guided, cosine=0.7):
    return Recovery(ids_of(text), text, 0.5, 0.5, cosine, 9, 0.1, ids_of(text)[:2] if guided else None)


def measured(name, pairs):
    originals = [original for original, _ in pairs]
    known = OriginalTexts(originals, originals, [ids_of(text) for text in originals], ["English"] * len(pairs))
    make = RowMaker([f"id-{row}" for row in range(len(pairs))], Inverter, Sight(8, ["English"]), True, Detectors())
    rows = make.measured(0, [recovery(text, name == "guided") for _, text in pairs], known)
    recovered = [text for _, text in pairs]
    return describe_attack(
        name,
        rows,
        Bootstrap(20),
        widening=None,
        recovered=recovered,
        originals=originals,
        show_text=True,
        kinds=Detectors.kinds,
    )


def estimated(name, pairs, seed, cosine=0.7):
    random = np.random.default_rng(seed)
    recall = random.uniform(0, 1, 60)
    readable, (long, other) = (recall >= 0.5) * 1.0, (random.uniform(0, 1, (2, 60)) > 0.7) * 1.0
    values = {"passage_recall": recall, "readable": readable, "tokens": random.uniform(1, 80, 60)}
    unseen = np.maximum(long, other)
    values |= dict(zip(SIGHT, (long, other, unseen, np.maximum(unseen, readable)), strict=True))
    values |= {name: random.uniform(0, 1, 60) for name in ("content_precision", "content_recall", "exact_match")}
    known = KnownRecoveries(["a", "b", "c"] * 20, random.normal(size=(60, 4)), values)
    make = RowMaker([f"id-{row}" for row in range(len(pairs))], Inverter, Sight(8, ["English"]), True, Detectors())
    recovered = [text for _, text in pairs]
    rows = make.estimated(
        0, [recovery(text, False, cosine) for text in recovered], known, random.normal(size=(len(pairs), 4))
    )
    return describe_attack(
        name,
        rows,
        Bootstrap(20),
        widening=known.widening,
        recovered=recovered,
        originals=None,
        show_text=True,
        kinds=Detectors.kinds,
    )


class Inverter:
    tokenizer = Spaces()


def audit_of(attacks, threshold):
    estimated = not attacks[0].known
    return Audit(
        unembed_version="1",
        made="2026-01-01T00:00+00:00",
        source=SourceFacts("db", StorageInfo("x"), 8, 1000, Counter(), (1, 1, 1), not estimated, {"all": 1000}),
        encoder=Identified("e", "because", True),
        inverter={"parameters": 1, "training texts": 1},
        languages=["English"],
        sample=attacks[0].n,
        wanted=attacks[0].n,
        seed=0,
        attacks=attacks,
        calibration=CalibrationFacts("known texts", ["a"], 60, 0.1) if estimated else None,
        verdict=judge(attacks, threshold),
        assumptions=[],
        command="",
        shows_text=True,
        canvas_length=8,
    )
