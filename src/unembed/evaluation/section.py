"""All tables on the texts of one file under one protocol. Knows neither files nor pictures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unembed.config import DecodingConfig, GuidedConfig
from unembed.evaluation import breakdowns
from unembed.evaluation.baselines import nearest_neighbours, random_tokens
from unembed.evaluation.bench import Bench, Outcome, Subject, describe, mode_of
from unembed.evaluation.bootstrap import Bootstrap
from unembed.evaluation.budget import budget_rows
from unembed.evaluation.denoising import Pass
from unembed.evaluation.examiner import Examiner
from unembed.evaluation.masked import masked_accuracy
from unembed.evaluation.perplexity import LanguageModel
from unembed.evaluation.recover import Recovered
from unembed.evaluation.table import Fact, Mode, Row, Table
from unembed.evaluation.texts import Protocol, choose_references
from unembed.measures import token_hits
from unembed.progress import Tell
from unembed.store import Store

REMASK_SHARES = (0.0, 0.05, 0.1, 0.2)
REMASK_THRESHOLD = 0.2
GUIDANCE = (0.0, 0.5, 1.0)
EXAMPLES_OF_A_KIND = 3

Seconds = dict[str, dict[str, float]]
"""Wall time per text, by strategy."""


@dataclass(frozen=True)
class Settings:
    """What is measured, and on how much."""

    strategies: tuple[str, ...]
    """The first one is broken down."""
    protocols: tuple[Protocol, ...] = ("canvas",)
    limit: int = 300
    guided_limit: int = 30
    rounds: int = GuidedConfig().rounds
    """Of guided searches, at most."""
    seed: int = 0
    resamples: int = 1000


@dataclass(frozen=True)
class Denoising:
    """One inversion, pass by pass."""

    strategy: str
    reference: str
    recovered: str
    passes: list[Pass]


@dataclass(frozen=True)
class Section:
    """All tables on the texts of one file under one protocol."""

    name: str
    texts: str
    protocol: Protocol
    canvas_length: int
    n: int
    looked_at: int
    available: int
    tables: list[Table]
    denoising: Denoising

    def table(self, key: str) -> Table | None:
        """Return a table, if the section has it."""
        return next((table for table in self.tables if table.key == key), None)


class SectionMaker:
    """Makes a section, decoding each thing once."""

    def __init__(
        self,
        subjects: Sequence[Subject],
        texts_name: str,
        texts: Sequence[str],
        protocol: Protocol,
        settings: Settings,
        language_model: LanguageModel | None,
        tell: Tell,
    ) -> None:
        self.name = re.sub(r"[^\w-]+", "-", f"{texts_name.removesuffix('.txt')}-{protocol}")
        self.texts_name = texts_name
        self.settings = settings
        self.tell = tell
        self.bootstrap = Bootstrap(settings.resamples, settings.seed)
        self.benches = []
        for subject in subjects:
            references = choose_references(
                texts,
                subject.inverter.tokenizer,
                protocol=protocol,
                canvas_length=subject.inverter.info.model.canvas_length,
                limit=settings.limit,
                seed=settings.seed,
                name=texts_name,
            )
            examiner = Examiner(references, subject.inverter.tokenizer, subject.encoder, self.bootstrap, language_model)
            self.benches.append(self._bench(subject, examiner))
        self.bench = self.benches[0]
        self.references = self.bench.examiner.references
        self.ways = [self._options(strategy=strategy) for strategy in settings.strategies]
        self.blind = next(
            (way for way in self.ways if way.strategy != "guided"), self._options(strategy=GuidedConfig().start)
        )

    def section(
        self, store: Store | None, counts: np.ndarray | None, milestones: Sequence[Subject]
    ) -> tuple[Section, Seconds]:
        """Make all tables; also return the seconds that each strategy took per text."""
        self.bench.passes(self.blind, 0)  # the first decoding of all is slow, and times are taken below
        tables = [self._encoders(), self._strategies(store), self._masked()]
        if any(way.strategy == "euler-remask" for way in self.ways):
            tables.append(self._remasking())
        tables.append(self._guidance())
        tables.append(self._cost())
        seconds = self._seconds()
        if milestones:
            tables.append(self._milestones(milestones))
        tables += self._breakdowns(counts)
        guided = [way for way in self.ways if way.strategy == "guided"]
        tables += [self._budget(way) for way in guided]
        tables += [self._examples(way) for way in dict.fromkeys([self.ways[0], *guided])]
        return (
            Section(
                name=self.name,
                texts=self.texts_name,
                protocol=self.references.protocol,
                canvas_length=self.references.canvas_length,
                n=len(self.references),
                looked_at=self.references.looked_at,
                available=self.references.available,
                tables=tables,
                denoising=self._denoising(),
            ),
            seconds,
        )

    def _options(self, **changes: object) -> DecodingConfig:
        fixed = {"seed": self.settings.seed, "guided": {"rounds": self.settings.rounds}}
        return DecodingConfig.model_validate(fixed | changes)

    def _bench(self, subject: Subject, examiner: Examiner) -> Bench:
        label = f"{self.name}, {subject.name}"
        return Bench(subject, examiner, guided_limit=self.settings.guided_limit, label=label, tell=self.tell)

    def _row(self, outcome: Outcome, name: str, mode: Mode, facts: dict[str, Fact] | None = None) -> Row:
        """Return a row of the first two tables: with perplexity, which takes longer than most decodings."""
        row = outcome.row(name, mode, facts)
        return replace(row, figures=row.figures | self.bench.examiner.perplexity(outcome.scores.texts))

    def _encoders(self) -> Table:
        first = self.ways[0]
        rows = [
            self._row(
                bench.outcome(first),
                bench.subject.name,
                mode_of(first),
                model_facts(bench.subject) | {"lost tokens": bench.examiner.references.lost_share},
            )
            for bench in self.benches
        ]
        note = (
            f"One row per inverter, decoded with {describe(first)}. Lost tokens: the share of the texts' tokens that "
            "the inverter's vocabulary has no piece for."
        )
        return Table("encoders", "Table 1: encoders", note, rows, "inverter")

    def _strategies(self, store: Store | None) -> Table:
        rows = [self._row(self.bench.outcome(way), describe(way), mode_of(way)) for way in self.ways]
        vocabulary = self.bench.subject.inverter.info.vocabulary
        drawn = random_tokens([len(ids) for ids in self.references.ids], vocabulary, self.settings.seed)
        rows.append(self._row(self.bench.judge(Recovered.without_model(drawn)), "random tokens", "baseline"))
        without = self.bench.outcome(self.blind, unconditional=True)
        rows.append(self._row(without, f"unconditional model ({self.blind.strategy})", "baseline"))
        if store is not None:
            label = f"{self.name}: nearest neighbours"
            near = nearest_neighbours(
                self.bench.examiner.vectors, store, lambda done: self.tell(label, done, len(store))
            )
            facts: dict[str, Fact] = {"store rows": len(store)}
            nearest = self.bench.judge(Recovered.without_model(near))
            rows.append(self._row(nearest, "nearest neighbour in the store", "baseline", facts))
        if own := self.bench.examiner.perplexity(self.references.texts):
            rows.append(Row("the texts themselves", "baseline", len(self.references), own))
        note = (
            "Random tokens have the true length. The unconditional model is the same one with its vector dropped, so "
            "that only the length comes from the vector."
        )
        return Table("strategies", "Table 2: decoding strategies and baselines", note, rows, "strategy")

    def _masked(self) -> Table:
        rows = []
        for bench in self.benches:
            references, vectors = bench.examiner.references, bench.examiner.vectors
            figures = masked_accuracy(bench.subject.inverter, references, vectors, self.bootstrap)
            rows.append(Row(bench.subject.name, "teacher-forced", len(references), figures))
        note = (
            "Accuracy at masked positions while the rest of the true text is visible. This is no inversion and must "
            "not be compared with token_accuracy; masked_accuracy@0.1 is what the paper's code reports."
        )
        return Table("masked_accuracy", "Teacher-forced accuracy", note, rows, "inverter")

    def _remasking(self) -> Table:
        ways = {
            f"share {share:g}": self._options(strategy="euler-remask", remask_share=share) for share in REMASK_SHARES
        }
        ways[f"below probability {REMASK_THRESHOLD:g}"] = self._options(
            strategy="euler-remask", remask_threshold=REMASK_THRESHOLD
        )
        rows = [self.bench.outcome(way).row(name, "blind") for name, way in ways.items()]
        note = "euler-remask: the share of revealed positions that is masked again after each pass, or a threshold."
        return Table("remasking", "Table 3: re-masking", note, rows, "masked again")

    def _guidance(self) -> Table:
        ways = {strength: self.blind.model_copy(update={"guidance": strength}) for strength in GUIDANCE}
        rows = [self.bench.outcome(way).row(f"strength {strength:g}", "blind") for strength, way in ways.items()]
        note = f"{self.blind.strategy}; above 0 every pass runs the model twice."
        return Table("guidance", "Classifier-free guidance", note, rows, "guidance")

    def _cost(self) -> Table:
        rows = []
        for way in self.ways:
            recovered, mode = self.bench.outcome(way).recovered, mode_of(way)
            facts: dict[str, Fact] = {
                "parameters": _parameters(self.bench.subject),
                "passes": float(np.mean(recovered.passes)),
                "encoder needed": "yes" if mode == "guided" else "no",
                "encoder calls": float(np.mean(recovered.encoder_calls)),
            }
            rows.append(Row(describe(way), mode, len(recovered.ids), facts=facts))
        note = "Means per text. Passes are those over canvases of the text that was kept."
        return Table("cost", "Table 5: cost", note, rows, "strategy")

    def _seconds(self) -> Seconds:
        seconds: Seconds = {}
        for done, way in enumerate(self.ways, start=1):
            self.tell(f"{self.name}: time at batch 1", int(done > 1), len(self.ways))
            seconds[describe(way)] = self.bench.seconds_per_text(way)
        return seconds

    def _milestones(self, milestones: Sequence[Subject]) -> Table:
        rows = []
        for milestone in milestones:
            metrics = milestone.inverter.info.metrics
            names = {"saved_step": "step", "samples": "samples", "elbo": "validation ELBO"}
            facts = {label: metrics[key] for key, label in names.items() if key in metrics}
            outcome = self._bench(milestone, self.bench.examiner).outcome(self.blind)
            rows.append(outcome.row(milestone.name, "blind", facts))
        note = f"Inverters kept on the way of the training run, decoded with {describe(self.blind)}."
        return Table("milestones", "Table 7: training milestones", note, rows, "inverter")

    def _breakdowns(self, counts: np.ndarray | None) -> list[Table]:
        first, mode = self.ways[0], mode_of(self.ways[0])
        recovered = self.bench.outcome(first).recovered.ids
        ids = self.references.ids[: len(recovered)]
        hits = [token_hits(*pair) for pair in zip(recovered, ids, strict=True)]
        where = "the store" if counts is not None else "the evaluated texts (no --store was given)"
        if counts is None:
            size = self.bench.subject.inverter.info.vocabulary.size
            counts = np.bincount(np.concatenate([np.array(text) for text in self.references.ids]), minlength=size)
        decoded = f"Decoded with {describe(first)}."
        position = breakdowns.by_position(hits, self.bootstrap, mode)
        frequency = breakdowns.by_frequency(hits, ids, counts, self.bootstrap, mode)
        length = breakdowns.by_length(hits, self.references.canvas_length, self.bootstrap, mode)
        return [
            Table("by_position", "Accuracy by position", decoded, position, "position of the token"),
            Table(
                "by_frequency",
                "Accuracy by token frequency",
                f"{decoded} Ranks by the counts in {where}.",
                frequency,
                "rank of the token",
            ),
            Table("by_length", "Accuracy by text length", decoded, length, "tokens in the text"),
        ]

    def _budget(self, way: DecodingConfig) -> Table:
        rows = budget_rows(self.bench.outcome(way).recovered.ways, self.bench.examiner)
        note = (
            "What the search had found by a number of encoder calls per text; 0 is its blind start. Texts that ended "
            "earlier keep their result."
        )
        return Table("guided_budget", "Guided decoding by budget", note, rows, "encoder calls per text")

    def _examples(self, way: DecodingConfig) -> Table:
        outcome = self.bench.outcome(way)
        rows = [
            Row(
                f"{kind} {number + 1}",
                mode_of(way),
                1,
                facts={
                    "token_f1": float(outcome.scores.per_text["token_f1"][place]),
                    "cosine": float(outcome.scores.per_text["cosine"][place]),
                    "original": self.references.texts[place],
                    "recovered": outcome.scores.texts[place],
                },
            )
            for kind, places in choose_examples(outcome.scores.per_text["token_f1"]).items()
            for number, place in enumerate(places)
        ]
        note = "By rule: all texts ordered by token_f1 (ties by their random order); the first, the middle, the last."
        return Table(f"examples_{way.strategy}", f"Examples: {way.strategy}", note, rows)

    def _denoising(self) -> Denoising:
        outcome = self.bench.outcome(self.blind)
        place = choose_examples(outcome.scores.per_text["token_f1"])["median"][0]
        return Denoising(
            self.blind.strategy,
            self.references.texts[place],
            outcome.scores.texts[place],
            self.bench.passes(self.blind, place),
        )


def choose_examples(values: np.ndarray) -> dict[str, list[int]]:
    """Return the places of the best, the median and the worst values, the worst of all first; of three none twice."""
    order = np.argsort(-values, kind="stable").tolist()
    count = min(EXAMPLES_OF_A_KIND, max(1, len(order) // 3))
    middle = (len(order) - count) // 2
    return {"best": order[:count], "median": order[middle : middle + count], "worst": order[: -count - 1 : -1]}


def model_facts(subject: Subject) -> dict[str, Fact]:
    """Say which encoder an inverter is for, and how large it is."""
    info = subject.inverter.info
    return {
        "encoder": info.encoder.name,
        "dimension": info.encoder.dim,
        "vocabulary": info.vocabulary.size,
        "training rows": info.training_rows,
        "parameters": _parameters(subject),
    }


def _parameters(subject: Subject) -> int:
    return sum(parameter.numel() for parameter in subject.inverter.model.parameters())
