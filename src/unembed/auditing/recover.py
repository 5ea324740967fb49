"""Inverts a sample, blind and guided, part by part, so that a killed audit can go on. Knows no original texts."""

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unembed.checkpoint import CheckpointInfo
from unembed.config import DecodingConfig, GuidedConfig
from unembed.distribution import MakeWorker, MapShards, Shard, Values, map_here
from unembed.encoders import Encoder, EncoderDescription, quicker
from unembed.engine.loading import EngineName
from unembed.errors import EncoderError
from unembed.files import write_json
from unembed.inverter import Inversion, Inverter
from unembed.inverter.elsewhere import load_inverter
from unembed.measures import cosine, token_f1
from unembed.progress import OnProgress

BLIND = DecodingConfig(candidates=3)
"""Three lengths: their agreement shows how sure the text is."""
GUIDED = DecodingConfig(strategy="guided", guided=GuidedConfig(calls=500))
"""Enough calls for most short texts; ``PatientAttacker`` says what ten times as many would give."""
EARLY = GUIDED.guided.call_limit // 10
"""Encoder calls of the early text that is kept beside the final one."""
Mode = Literal["blind", "guided"]
_PART: dict[Mode, int] = {"blind": 64, "guided": 4}
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
        write_json(self.folder / name, [vars(recovery) for recovery in part])

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
    map_shards: MapShards = map_here
    """Inverts parts, in this process or in others."""
    load_worker: MakeWorker | None = None
    """Loads the same inverter and encoder in another process; without it, those above work."""

    def blind(self, vectors: np.ndarray, what: str) -> Iterator[list[Recovery]]:
        """Invert each vector from the vector alone; the encoder is asked afterwards how close the text came."""
        return self._run(vectors, "blind", what)

    def guided(self, vectors: np.ndarray, what: str, seconds: float) -> Iterator[list[Recovery]]:
        """Invert with the encoder as many of the first vectors as the time allows."""
        spent = 0.0
        for part in self._run(vectors, "guided", what):
            yield part
            spent += sum(recovery.seconds for recovery in part)
            if spent > seconds:
                return

    def _run(self, vectors: np.ndarray, mode: Mode, what: str) -> Iterator[list[Recovery]]:
        """Yield part after part: as it was kept, or newly inverted. Parts that come too early are kept until then."""
        names = [
            f"{what}-{mode}-{number:05d}.json".replace(" ", "-") for number in range(-(-len(vectors) // _PART[mode]))
        ]
        missing = [number for number, name in enumerate(names) if self.finished.read(name) is None]
        results = self.map_shards(
            partial(_read_parts, vectors, mode, _PART[mode], missing), self.load_worker or self._make_worker
        )
        for name in names:
            part = self.finished.read(name)
            while part is None:
                if self.interrupted():
                    return
                number, found = next(results)
                recoveries = [Recovery(**values) for values in found["recoveries"]]
                self.finished.write(names[number], recoveries)
                part = recoveries if names[number] == name else None
            self.on_progress(f"{what}, {mode}", len(part), len(vectors))
            yield part

    def _make_worker(self) -> "PartInverter":
        return PartInverter(self.inverter, self.encoder)


def _read_parts(vectors: np.ndarray, mode: Mode, size: int, missing: Sequence[int]) -> Iterator[Shard]:
    """Yield the vectors of the parts that are not finished."""
    for number in missing:
        yield number, {"vectors": vectors[number * size : (number + 1) * size], "mode": mode}


@dataclass(frozen=True)
class PartInverter:
    """Inverts the vectors of one part. Knows no other part, and nothing of what is kept."""

    inverter: Inverter
    encoder: Encoder | None

    def __call__(self, values: Values) -> Values:
        """Return the recoveries of a part, as JSON has them."""
        options = GUIDED if values["mode"] == "guided" else BLIND
        return {"recoveries": [vars(recovery) for recovery in self._invert(values["vectors"], options)]}

    @cached_property
    def _quick(self) -> Encoder | None:
        """What says how near blind texts came: they are far enough from their vectors for rounded ones."""
        return None if self.encoder is None else quicker(self.encoder)

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
        judge = self.encoder if guided else self._quick
        cosines = None if judge is None else cosine(judge.encode(texts), vectors)
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


def load_worker(
    model: str,
    device: str,
    engine: EngineName,
    info: CheckpointInfo,
    location: str | None,
    known: EncoderDescription | None,
) -> PartInverter:
    """Load what inverts parts in another process, perhaps on another machine.

    Args:
        model: the inverter's name or folder.
        device: what it computes on.
        engine: what runs its denoiser.
        info: what the inverter must be.
        location: of the encoder, if the user gave one.
        known: what the encoder must be; None if there is none.
    """
    inverter = load_inverter(model, device, info, engine=engine)
    if known is None:
        return PartInverter(inverter, None)
    encoder = inverter.load_encoder(location, device=device)
    if encoder.description != known:
        raise EncoderError(
            f"A worker has another encoder: {encoder.description}, expected {known}.",
            "Install the same encoder on every machine.",
        )
    return PartInverter(inverter, encoder)
