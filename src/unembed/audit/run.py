"""The audit: a store and an inverter in, what the store gives away out. Knows neither files nor pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from unembed._version import __version__
from unembed.audit.encoder import check_texts, identify
from unembed.audit.estimate import Estimate, estimate
from unembed.audit.findings import References, describe_mode, measure
from unembed.audit.lists import load_lines
from unembed.audit.recover import Attacker, Notebook, Recovery
from unembed.audit.result import Audit, Calibration, Mode, ModeName, StoreFacts, Verdict
from unembed.audit.sample import Sample, draw
from unembed.connectors import VectorSource
from unembed.encoders import Encoder
from unembed.errors import CorpusError, EncoderError
from unembed.evaluation import Bootstrap
from unembed.inverter import Inverter
from unembed.progress import Tell

BUILT_IN = "the built-in sentences"
_MINIMUM_KNOWN = 20
# Fewer guided vectors than this are shown, but decide nothing.
_ENOUGH = 20


@dataclass(frozen=True)
class Settings:
    """What is audited, and how thoroughly."""

    size: int | None = 300
    """Vectors that are drawn; None for all."""
    guided: int = 20
    """Of these, vectors that are also inverted with the encoder's help."""
    minutes: float = 10.0
    """For the guided ones, with those of the calibration; what is not done by then is left out."""
    fail_over: float = 0.1
    seed: int = 0
    resamples: int = 1000
    show_text: bool = False


@dataclass(frozen=True)
class _Known:
    """Texts whose vectors are inverted only to see how signs go with the truth."""

    name: str
    vectors: np.ndarray
    references: References


def audit(
    source: VectorSource,
    inverter: Inverter,
    settings: Settings,
    *,
    encoder: Encoder | None,
    notebook: Path,
    asked: str | None = None,
    calibration: Sequence[str] | None = None,
    calibration_name: str = BUILT_IN,
    command: str = "",
    tell: Tell = lambda label, done, total: None,
) -> Audit:
    """Find out how much of its texts a store gives away.

    Args:
        source: the store, which is read once and never written to.
        inverter: for the encoder that made the vectors.
        settings: how many, how long, from where on it is too much.
        encoder: that encoder, where it is at hand.
        notebook: a folder for finished parts, which is removed at the end; with one of an earlier, killed audit of the
            same, that one goes on.
        asked: the encoder's name as the user gave it.
        calibration: texts that are known, for the estimate; only used where the store holds no texts.
        calibration_name: where they come from.
        command: what was typed, for the report.
        tell: hears of progress.
    """
    rows = source.rows or 0
    sample = draw(source, settings.size, seed=settings.seed, tell=lambda done: tell("Reading the store", done, rows))
    identified = identify(inverter.info, source.keeping, sample, asked)
    if encoder is not None and sample.texts is not None:
        identified = check_texts(encoder, sample, identified)
    if encoder is None and sample.texts is None:
        raise EncoderError(
            f"{source.name} holds no texts, and {identified.name} is not at hand: there is nothing to measure by.",
            "Run: pip install 'unembed[encoders]', or say where the encoder lies with --encoder.",
        )
    references = None if sample.texts is None else References.of(sample.texts, inverter)
    known = None
    if references is None and encoder is not None:
        texts = load_lines("calibration") if calibration is None else calibration
        known = _embed_known(calibration_name, texts, inverter, encoder)
    key = {
        "store": source.name,
        "ids": [str(one) for one in sample.ids],
        "vectors": float(np.abs(sample.vectors).sum()),
        "inverter": inverter.info.model_dump(mode="json"),
        "encoder": encoder is not None,
        "known": None if known is None else known.references.texts,
    }
    attacker = Attacker(inverter, encoder, Notebook(notebook, key), tell)
    runs = _Runs(attacker, sample, known, settings)
    modes = [runs.mode("blind", references)]
    if encoder is not None and settings.guided:
        modes.append(runs.mode("guided", references))
    found = Audit(
        unembed_version=__version__,
        made=datetime.now(UTC).isoformat(timespec="minutes"),
        store=StoreFacts(
            name=source.name,
            keeping=source.keeping,
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
        modes=modes,
        calibration=runs.calibration(),
        verdict=_judge(modes, settings.fail_over),
        assumptions=runs.assumptions(identified.certain),
        command=command,
        shows_text=settings.show_text,
        canvas_length=inverter.info.model.canvas_length,
    )
    attacker.notebook.discard()
    return found


class _Runs:
    """Both modes over one sample, and what the second may learn from the first."""

    def __init__(self, attacker: Attacker, sample: Sample, known: _Known | None, settings: Settings) -> None:
        self._attacker = attacker
        self._sample = sample
        self._known = known
        self._settings = settings
        self._bootstrap = Bootstrap(settings.resamples, settings.seed)
        self._known_recoveries: dict[ModeName, list[Recovery]] = {}
        self._recoveries: dict[ModeName, list[Recovery]] = {}
        self._errors: dict[ModeName, float] = {}

    def mode(self, name: ModeName, references: References | None) -> Mode:
        """Invert the sample, or what of it there is time for, and measure or estimate how well that went."""
        settings = self._settings
        seconds = 60.0 * settings.minutes / (1 if self._known is None else 2)
        vectors = self._sample.vectors
        if name == "blind":
            recoveries = self._attacker.blind(vectors, "store")
        else:
            recoveries = self._attacker.guided(vectors[: settings.guided], "store", seconds)
        self._recoveries[name] = recoveries
        estimated = None if references is not None else self._estimate(name, recoveries, seconds)
        return describe_mode(
            name,
            recoveries,
            self._sample.ids,
            self._bootstrap,
            references=references,
            estimated=estimated,
            show_text=settings.show_text,
        )

    def _estimate(self, name: ModeName, recoveries: list[Recovery], seconds: float) -> Estimate:
        known = self._known
        assert known is not None
        if name == "blind":
            recovered = self._attacker.blind(known.vectors, "calibration")
        else:
            many = max(_MINIMUM_KNOWN, self._settings.guided)
            recovered = self._attacker.guided(known.vectors[:many], "calibration", seconds)
        self._known_recoveries[name] = recovered
        truth = measure(recovered, known.references)
        truth.pop("cosine")  # known for every recovery, nothing to estimate
        found = estimate(recoveries, recovered, truth, resamples=self._settings.resamples, seed=self._settings.seed)
        self._errors[name] = found.errors["token_f1"]
        return found

    def calibration(self) -> Calibration | None:
        """Say what the estimates rest on."""
        if self._known is None:
            return None
        counts = {name: len(found) for name, found in self._known_recoveries.items()}
        return Calibration(self._known.name, counts, self._errors)

    def assumptions(self, certain: bool) -> list[str]:
        """Say what was taken for granted, in sentences."""
        inverter = self._attacker.inverter
        length = inverter.info.model.canvas_length
        said = [
            f"The attacker uses unembed {__version__} and an inverter trained on {inverter.info.training_rows:,} "
            "texts; one with more training recovers more. What is found here can be done; that no more can be done is "
            "not shown.",
            f"This inverter writes at most {length} tokens. Of longer texts it can give back no more than that.",
            "Texts are compared in the normal form of the encoder's tokenizer; where that is lower case, capital "
            "letters are not asked for.",
        ]
        if self._attacker.encoder is None:
            said.append("The encoder was not at hand: the stronger attacker, who asks it on the way, was not tried.")
        guided = self._recoveries.get("guided")
        if guided is not None and len(guided) < min(self._settings.guided, len(self._sample)):
            said.append(
                f"The time for guided inversion ({self._settings.minutes:g} minutes) was over after {len(guided)} of "
                f"{min(self._settings.guided, len(self._sample))} vectors."
            )
        if guided is not None and len(guided) < _ENOUGH:
            said.append(f"The verdict rests on the blind attacker: {len(guided)} guided vectors are too few to decide.")
        if self._known is not None:
            said.append(
                "The store holds no texts, so recovery is estimated: from how near the recovered text comes to the "
                "vector, how well several attempts agree and how sure the model is, as these went with the truth on "
                f"{self._known.name}. Where your texts are of another kind, the estimate may be off; --calibrate FILE "
                "takes texts of your own."
            )
            said += self._doubts(certain)
        return said

    def _doubts(self, certain: bool) -> list[str]:
        """Say so when recoveries lie farther from their vectors than those of the encoder's own vectors do."""
        ours = np.median([one.cosine or 0.0 for one in self._recoveries["blind"]])
        theirs = [one.cosine or 0.0 for one in self._known_recoveries["blind"]]
        if certain or ours >= np.percentile(theirs, 5):
            return []
        return [
            f"DOUBTFUL: what is read out of these vectors lies unusually far from them (median cosine {ours:.2f}; "
            f"{np.median(theirs):.2f} on known texts). Another encoder may have made them; then nothing here holds."
        ]


def _embed_known(name: str, texts: Sequence[str], inverter: Inverter, encoder: Encoder) -> _Known:
    different = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if len(different) < _MINIMUM_KNOWN:
        raise CorpusError(
            f"{name} has {len(different)} different texts; an estimate needs {_MINIMUM_KNOWN} at least.",
            "Give more, one a line.",
        )
    return _Known(name, encoder.encode(different), References.of(different, inverter))


def _judge(modes: Sequence[Mode], threshold: float) -> Verdict:
    """Take the attacker that reads most, of those that were tried on enough vectors; blind ones are always enough."""
    tried = [mode for mode in modes if mode.name == "blind" or mode.n >= _ENOUGH]
    worst = max(tried, key=lambda mode: mode.figures["readable"].value)
    figure = worst.figures["readable"]
    return Verdict(figure.value > threshold, worst.name, figure, threshold)


def _describe(inverter: Inverter) -> dict[str, str | int | float]:
    info = inverter.info
    parameters = sum(parameter.numel() for parameter in inverter.model.parameters())
    return {
        "encoder": info.encoder.name,
        "parameters": parameters,
        "training texts": info.training_rows,
        "longest text (tokens)": info.model.canvas_length,
    }
