"""Runs one inverter on one set of texts, and remembers the results. Knows options, not tables."""

from dataclasses import dataclass

from unembed.config import SEARCHES, DecodingConfig
from unembed.encoders import Encoder
from unembed.evaluation.baselines import Unconditional
from unembed.evaluation.denoising import Pass, read_passes
from unembed.evaluation.examiner import Examiner, Scores
from unembed.evaluation.recover import BATCH_SIZE, Recovered, recover
from unembed.evaluation.table import Fact, Row, RowMode
from unembed.inverter import Inverter
from unembed.progress import OnProgress

TIMED_TEXTS = 5
"""Texts that are decoded one by one, to time them."""
TIMED_SEARCHES = 2
"""The same for searches, which take seconds per text."""


@dataclass(frozen=True)
class Subject:
    """An inverter under a name, and the encoder whose vectors it reads."""

    name: str
    inverter: Inverter
    encoder: Encoder


@dataclass(frozen=True)
class Scored:
    """What was recovered, and how good it is."""

    recovered: Recovered
    scores: Scores

    def row(self, name: str, mode: RowMode, facts: dict[str, Fact] | None = None) -> Row:
        """Return the figures as a row of a table."""
        return Row(name, mode, len(self.recovered.ids), self.scores.figures, facts or {})


class Bench:
    """Runs one inverter over an examiner's vectors, each way of decoding once."""

    def __init__(
        self, subject: Subject, examiner: Examiner, *, guided_limit: int, label: str, on_progress: OnProgress
    ) -> None:
        self.subject = subject
        self.examiner = examiner
        self._guided_limit = guided_limit
        self._label = label
        self._on_progress = on_progress
        self._outcomes: dict[str, Scored] = {}

    def outcome(self, options: DecodingConfig, *, unconditional: bool = False) -> Scored:
        """Decode and measure, unless that was done before; searches take the first texts only."""
        key = f"{options.model_dump_json()} {unconditional}"
        if key not in self._outcomes:
            count = len(self.examiner.references)
            if options.searches:
                count = min(count, self._guided_limit)
            inverter = self.subject.inverter
            if unconditional:
                inverter = Inverter(
                    inverter.model, inverter.tokenizer, inverter.info, engine=Unconditional(inverter.engine)
                )
            label = f"{self._label}: {'unconditional' if unconditional else describe(options)}"
            recovered = recover(
                inverter,
                self.examiner.vectors[:count],
                options,
                encoder=self.subject.encoder,
                lengths=self._lengths(count),
                on_finished=lambda done: self._on_progress(label, done, count),
            )
            self._outcomes[key] = self.judge(recovered)
        return self._outcomes[key]

    def judge(self, recovered: Recovered) -> Scored:
        """Measure what was recovered, by this inverter or otherwise."""
        return Scored(recovered, self.examiner.score(recovered.ids))

    def seconds_per_text(self, options: DecodingConfig) -> dict[str, float]:
        """Return the wall time of a text by itself, and within the batches of :meth:`outcome`."""
        wanted = TIMED_SEARCHES if options.searches else TIMED_TEXTS
        alone = min(wanted, len(self.examiner.references))
        seconds = sum(
            recover(
                self.subject.inverter,
                self.examiner.vectors[row : row + 1],
                options,
                encoder=self.subject.encoder,
                lengths=self._lengths(1),
                batch_size=1,
            ).seconds
            for row in range(alone)
        )
        together = self.outcome(options).recovered
        return {
            "seconds at batch 1": seconds / alone,
            "texts at batch 1": alone,
            f"seconds at batch {BATCH_SIZE}": together.seconds / len(together.ids),
            f"texts at batch {BATCH_SIZE}": len(together.ids),
        }

    def passes(self, options: DecodingConfig, row: int) -> list[Pass]:
        """Decode one text again and return its passes."""
        steps = self.subject.inverter.decode(
            self.examiner.vectors[row : row + 1], options, lengths=self._lengths(1), batch_size=1
        )
        return read_passes(steps, self.subject.inverter)

    def _lengths(self, count: int) -> list[int] | None:
        """Return what the protocol makes known: all texts cut to the canvas have its length, as in the paper."""
        references = self.examiner.references
        if references.protocol == "natural" or self.subject.inverter.info.model.canvas == "fixed":
            return None
        return [references.canvas_length] * count


def describe(options: DecodingConfig) -> str:
    """Name a way of decoding: its strategy, and the options that are not the default."""
    changed = options.model_dump(exclude_defaults=True, exclude={"strategy", "seed", *SEARCHES})
    if options.searches:
        changed |= options.search.model_dump(exclude_defaults=True)
    return ", ".join([options.strategy, *(f"{name.replace('_', ' ')} {value}" for name, value in changed.items())])


def mode_of(options: DecodingConfig) -> RowMode:
    """Say what a way of decoding asks the encoder for."""
    if options.needs_encoder:
        return "guided" if options.searches else "reranked"
    return "surrogate" if options.searches else "blind"
