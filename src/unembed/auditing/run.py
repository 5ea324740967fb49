"""The audit: vectors and an inverter in, results out. Knows neither files nor pages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from unembed._version import __version__
from unembed.auditing.assumptions import doubt_the_encoder, state_assumptions, state_coverage
from unembed.auditing.calibration import Calibration, stored_for
from unembed.auditing.encoder import check_texts, identify
from unembed.auditing.estimate import signs_of
from unembed.auditing.findings import OriginalTexts, RowMaker, Sight, describe_attack
from unembed.auditing.known import KnownTexts
from unembed.auditing.language import languages_of_inverter
from unembed.auditing.leaks import LeakDetectors
from unembed.auditing.recover import Attacker, FinishedParts, Recovery
from unembed.auditing.result import Attack, AttackerName, Audit, CalibrationFacts, Row, SourceFacts
from unembed.auditing.sample import Sample, draw
from unembed.auditing.verdict import judge
from unembed.connectors import VectorSource
from unembed.distribution import MakeWorker, MapShards, map_here
from unembed.encoders import Encoder
from unembed.errors import EncoderError, UnembedError
from unembed.evaluation import Bootstrap
from unembed.inverter import Inverter
from unembed.lists import load_lines
from unembed.progress import OnProgress

OnRows = Callable[[AttackerName, list[Row], int], None]


@dataclass(frozen=True)
class AuditSettings:
    """What is audited, and how thoroughly."""

    size: int | None = 300
    """Vectors that are drawn; None for all."""
    guided: int = 40
    """Of these, vectors that are also inverted with the encoder's help."""
    minutes: float = 10.0
    """Time limit of guided inversion; what is not done by then is left out."""
    fail_over: float = 0.1
    """The texts count as exposed when a greater share of them is readable."""
    seed: int = 0
    resamples: int = 1000
    """Behind each interval."""
    show_text: bool = False
    detectors: LeakDetectors = field(default_factory=LeakDetectors)
    """What texts say about people: the built-in kinds, and the user's own."""


def run_audit(
    source: VectorSource,
    inverter: Inverter,
    settings: AuditSettings,
    *,
    encoder: Encoder | None,
    unfinished: Path,
    resume: bool = True,
    asked: str | None = None,
    calibration: Sequence[str] | None = None,
    calibration_name: str = "given texts",
    command: str = "",
    on_progress: OnProgress = lambda label, done, total: None,
    on_encoder: Callable[[str], None] = lambda sentence: None,
    on_rows: OnRows = lambda attacker, rows, total: None,
    interrupted: Callable[[], bool] = lambda: False,
    map_shards: MapShards = map_here,
    load_worker: MakeWorker | None = None,
) -> Audit:
    """Find out how much of its texts a vector database gives away.

    Args:
        source: the database, which is read once and never written to.
        inverter: for the encoder that made the vectors.
        settings: how many vectors, how long, and the threshold of the verdict.
        encoder: that encoder, if it is available.
        unfinished: a folder for finished parts, which is removed at the end. If it holds those of a stopped audit of
            the same vectors, that audit goes on.
        resume: False throws such parts away.
        asked: the encoder's name as the user gave it.
        calibration: known texts, for the estimate; only used where the database holds no texts.
        calibration_name: where they come from.
        command: what was typed, for the report.
        on_progress: called with what is being done, how many more vectors are done, and of how many.
        on_encoder: called with what is known about the encoder, as a sentence.
        on_rows: called with all rows so far whenever there are more: whose they are, the rows, and how many there will
            be.
        interrupted: once it says yes, the results are those of the parts that are finished, and the parts are kept.
        map_shards: inverts parts of the sample, in this process or in others; whatever it is, the results are the same.
        load_worker: loads the same inverter and encoder in another process; without it, those given work.
    """
    rows = source.rows or 0
    sample = draw(
        source,
        settings.size,
        seed=settings.seed,
        on_rows=lambda count: on_progress("Reading the vectors", count, rows),
    )
    identified = identify(inverter.info, source.storage, sample, asked)
    if encoder is not None and sample.texts is not None:
        identified = check_texts(encoder, sample, identified)
    if encoder is None and sample.texts is None:
        raise EncoderError(
            f"{source.name} holds no texts, and the encoder {identified.name} is not available. One of them is needed.",
            "Run: pip install 'unembed[encoders]', or give the folder of the encoder: `encoder=FOLDER`.",
        )
    on_encoder(f"{identified.name}. {identified.because}")
    key = {
        "source": source.name,
        "ids": [str(vector_id) for vector_id in sample.ids],
        "vectors": float(np.abs(sample.vectors).sum()),
        "inverter": inverter.info.model_dump(mode="json"),
        "encoder": encoder is not None,
        "calibration": calibration,
    }
    finished = FinishedParts(unfinished, key, resume=resume)
    attacker = Attacker(inverter, encoder, finished, on_progress, interrupted, map_shards, load_worker)
    runs = _Runs(attacker, sample, settings, on_rows)
    if sample.texts is None:
        runs.calibrate(calibration, calibration_name)
    wanted: list[AttackerName] = ["blind", "guided"] if encoder is not None and settings.guided else ["blind"]
    attacks = [attack for name in wanted if (attack := runs.attack(name)) is not None]
    if not attacks:
        raise UnembedError("The audit was interrupted before its first vectors were done.", "Run it again.")
    result = Audit(
        unembed_version=__version__,
        made=datetime.now(UTC).isoformat(timespec="minutes"),
        source=SourceFacts(
            name=source.name,
            storage=source.storage,
            dim=sample.vectors.shape[1],
            vectors=sample.population,
            skipped={what: count for what, count in sample.skipped.items() if count},
            norms=sample.norms,
            texts=sample.texts is not None,
            groups=sample.groups,
        ),
        encoder=identified,
        inverter=_describe(inverter),
        languages=list(runs.sight.languages),
        sample=attacks[0].n,
        wanted=len(sample),
        seed=settings.seed,
        attacks=attacks,
        calibration=runs.calibration_facts(),
        verdict=judge(attacks, settings.fail_over),
        assumptions=runs.assumptions(identified.certain),
        command=command,
        shows_text=settings.show_text,
        canvas_length=inverter.info.model.canvas_length,
    )
    if not interrupted():
        finished.discard()
    return result


class _Runs:
    """Both attackers on one sample."""

    def __init__(self, attacker: Attacker, sample: Sample, settings: AuditSettings, on_rows: OnRows) -> None:
        self._attacker = attacker
        self._inverter = attacker.inverter
        self._sample = sample
        self._settings = settings
        self._on_rows = on_rows
        self._bootstrap = Bootstrap(settings.resamples, settings.seed)
        self._originals = None if sample.texts is None else OriginalTexts.of(sample.texts, self._inverter)
        self._calibration: Calibration | None = None
        self._recoveries: dict[AttackerName, list[Recovery]] = {}
        self.sight = Sight(self._inverter.info.model.canvas_length, languages_of_inverter(self._inverter))
        self._make = RowMaker(sample.ids, self._inverter, self.sight, settings.show_text, settings.detectors)

    def calibrate(self, texts: Sequence[str] | None, name: str) -> None:
        """Find what the estimate rests on: given texts, those stored for this inverter, or the built-in sentences."""
        stored = stored_for(self._inverter.info) if texts is None else None
        if stored is not None:
            self._calibration = stored
            return
        if texts is None:
            known = KnownTexts.embed(
                "the built-in English sentences", load_lines("calibration"), self._attacker, like_yours=False
            )
        else:
            known = KnownTexts.embed(name, texts, self._attacker, like_yours=True)
        self._calibration = known.recover(self._attacker, self.sight)

    def attack(self, name: AttackerName) -> Attack | None:
        """Invert the sample, or as much of it as there is time for, and measure or estimate the result."""
        settings, vectors = self._settings, self._sample.vectors
        if name == "blind":
            parts = self._attacker.blind(vectors, "sample")
        else:
            vectors = vectors[: min(settings.guided, len(self._recoveries["blind"]))]
            parts = self._attacker.guided(vectors, "sample", 60.0 * settings.minutes)
        recoveries = self._recoveries[name] = []
        rows: list[Row] = []
        for part in parts:
            rows += self._rows(name, len(rows), part)
            recoveries += part
            self._on_rows(name, rows, len(vectors))
        if not rows:
            return None
        return describe_attack(
            name,
            rows,
            self._bootstrap,
            widening=None if self._calibration is None else self._calibration.widening,
            recovered=[recovery.text for recovery in recoveries],
            originals=self._sample.texts,
            show_text=settings.show_text,
            kinds=settings.detectors.kinds,
        )

    def _rows(self, name: AttackerName, first: int, part: list[Recovery]) -> list[Row]:
        if self._originals is not None:
            return self._make.measured(first, part, self._originals.part(first, len(part)))
        assert self._calibration is not None
        clues = self._calibration.clues.read(self._sample.vectors[first : first + len(part)])
        blind = part if name == "blind" else self._recoveries["blind"][first : first + len(part)]
        return self._make.estimated(first, part, self._calibration.known, signs_of(blind, clues))

    def calibration_facts(self) -> CalibrationFacts | None:
        """Say what the estimates rest on."""
        if self._calibration is None:
            return None
        known = self._calibration.known
        return CalibrationFacts(
            self._calibration.name,
            list(dict.fromkeys(known.kinds)),
            len(known),
            self._calibration.widening["readable"],
        )

    def assumptions(self, certain: bool) -> list[str]:
        """Say what was assumed, in sentences."""
        guided = self._recoveries.get("guided")
        sentences = state_assumptions(
            self._inverter.info,
            languages=self.sight.languages,
            has_encoder=self._attacker.encoder is not None,
            blind_done=len(self._recoveries["blind"]),
            blind_wanted=len(self._sample),
            guided_done=None if guided is None else len(guided),
            guided_wanted=min(self._settings.guided, len(self._sample)),
            minutes=self._settings.minutes,
            calibration=self.calibration_facts(),
        )
        sentences.append(self._settings.detectors.note)
        sentences += state_coverage(self._settings.detectors.kinds, self.sight.languages)
        if self._calibration is not None and not certain:
            cosines = self._calibration.known.signs[:, 0]
            sentences += doubt_the_encoder(self._recoveries["blind"], cosines)
        return sentences


def _describe(inverter: Inverter) -> dict[str, str | int | float]:
    info = inverter.info
    parameters = sum(parameter.numel() for parameter in inverter.model.parameters())
    return {
        "encoder": info.encoder.name,
        "parameters": parameters,
        "training texts": info.training_rows,
        "longest text (tokens)": info.model.canvas_length,
    }
