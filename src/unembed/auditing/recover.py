"""Inverts a sample, blind and guided, part by part, so that a killed audit can go on. Knows no original texts."""

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unembed.config import DecodingConfig, GuidedConfig
from unembed.encoders import Encoder
from unembed.files import write_json
from unembed.inverter import Inversion, Inverter
from unembed.measures import cosine, token_f1
from unembed.progress import OnProgress

BLIND = DecodingConfig(candidates=3)
"""Three lengths: their agreement shows how sure the text is."""
GUIDED = DecodingConfig(strategy="guided", guided=GuidedConfig(calls=500))
"""Enough calls for most short texts; ``PatientAttacker`` says what ten times as many would give."""
EARLY = GUIDED.guided.call_limit // 10
"""Encoder calls of the early text that is kept beside the final one."""
_PART = {"blind": 64, "guided": 4}
_KEY = "key.json"


@dataclass(frozen=True)
class Recovery:
    """What was read out of one vector."""

    ids: list[int]
    text: str
    confidence: float
    agreement: float
    """Mean token F1 of the text with the other hypotheses of its vector; 1 when there is no other."""
    cosine: float | None
    """Of the text's own vector with the given one, if the encoder is available."""
    encoder_calls: int
    seconds: float
    """Its share of the time that its part took."""
    early_ids: list[int] | None = None
    """The guided attacker's best text after a tenth of the encoder calls; None for the blind one."""


class FinishedParts:
    """Keeps finished parts in a folder until all are done. They hold recovered texts, so the folder is removed then."""

    def __init__(self, folder: Path, key: dict[str, Any], *, resume: bool = True) -> None:
        """Open the folder; start again without ``resume``, or if it holds parts of other work than ``key`` says."""
        self.folder = folder
        try:
            same = json.loads((folder / _KEY).read_text(encoding="utf-8")) == json.loads(json.dumps(key))
        except (OSError, ValueError):
            same = False
        if not (same and resume):
            self.discard()
            folder.mkdir(parents=True, mode=0o700)
            write_json(folder / _KEY, key)

    def read(self, name: str) -> list[Recovery] | None:
        """Return a part; None if it was not finished."""
        try:
            return [Recovery(**values) for values in json.loads((self.folder / name).read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError):
            return None

    def write(self, name: str, part: list[Recovery]) -> None:
        """Keep a part."""
        write_json(self.folder / name, [asdict(recovery) for recovery in part])

    def discard(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Attacker:
    """An inverter, the encoder if it is available, and where finished parts are kept."""

    inverter: Inverter
    encoder: Encoder | None
    finished: FinishedParts
    on_progress: OnProgress = lambda label, done, total: None
    interrupted: Callable[[], bool] = lambda: False
    """Asked before each part; once it says yes, what is finished is all there is."""

    def blind(self, vectors: np.ndarray, what: str) -> Iterator[list[Recovery]]:
        """Invert each vector from the vector alone; the encoder is asked afterwards how close the text came."""
        return self._run(vectors, BLIND, "blind", what)

    def guided(self, vectors: np.ndarray, what: str, seconds: float) -> Iterator[list[Recovery]]:
        """Invert with the encoder as many of the first vectors as the time allows."""
        spent = 0.0
        for part in self._run(vectors, GUIDED, "guided", what):
            yield part
            spent += sum(recovery.seconds for recovery in part)
            if spent > seconds:
                return

    def _run(self, vectors: np.ndarray, options: DecodingConfig, mode: str, what: str) -> Iterator[list[Recovery]]:
        """Yield part after part: as it was kept, or newly inverted."""
        for number, start in enumerate(range(0, len(vectors), _PART[mode])):
            name = f"{what}-{mode}-{number:05d}.json".replace(" ", "-")
            part = self.finished.read(name)
            if part is None:
                if self.interrupted():
                    return
                part = self._invert(vectors[start : start + _PART[mode]], options)
                self.finished.write(name, part)
            self.on_progress(f"{what}, {mode}", len(part), len(vectors))
            yield part

    def _invert(self, vectors: np.ndarray, options: DecodingConfig) -> list[Recovery]:
        begun = time.perf_counter()
        guided = options.strategy == "guided"
        hypotheses: defaultdict[int, dict[int, list[int]]] = defaultdict(dict)
        kept: dict[int, Inversion] = {}
        early: dict[int, list[int]] = {}
        for step in self.inverter.decode(vectors, options, encoder=self.encoder if guided else None):
            for text in step.complete(self.inverter.info.vocabulary):
                hypotheses[text.row][text.candidate] = text.ids
                if guided and (text.texts_embedded <= EARLY or text.row not in early):
                    early[text.row] = text.ids
            kept |= self.inverter.read(step, options)
        texts = [kept[row].text for row in range(len(vectors))]
        cosines = None if self.encoder is None else cosine(self.encoder.encode(texts), vectors)
        each = (time.perf_counter() - begun) / max(1, len(vectors))
        recoveries = []
        for row, inversion in sorted(kept.items()):
            ids = inversion.ids
            others = [token_f1(other, ids) for other in hypotheses[row].values() if other != ids]
            recoveries.append(
                Recovery(
                    ids=ids,
                    text=inversion.text,
                    confidence=inversion.confidence,
                    agreement=float(np.mean(others)) if others else 1.0,
                    cosine=None if cosines is None else float(cosines[row]),
                    encoder_calls=inversion.encoder_calls,
                    seconds=each,
                    early_ids=early.get(row),
                )
            )
        return recoveries
