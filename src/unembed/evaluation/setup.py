"""What is measured: the texts of one file under one protocol, and the inverters that invert them. Makes no tables."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from unembed.config import SEARCHES, DecodingConfig
from unembed.evaluation.bench import Bench, Subject
from unembed.evaluation.bootstrap import Bootstrap
from unembed.evaluation.examiner import Examiner
from unembed.evaluation.perplexity import LanguageModel
from unembed.evaluation.texts import Protocol, ReferenceTexts, choose_references
from unembed.progress import OnProgress


@dataclass(frozen=True)
class EvaluationSettings:
    """What is measured, and on how much."""

    strategies: tuple[str, ...]
    """The breakdowns are of the first one."""
    protocols: tuple[Protocol, ...] = ("canvas",)
    limit: int = 300
    """Texts per file and protocol."""
    guided_limit: int = 30
    """Of these, texts that are searched for."""
    rounds: int | None = None
    """Of searches, at most; None: as many as they usually take."""
    rerank: int = 0
    """Blind hypotheses of the row in which the encoder chooses among them; 0 leaves it out."""
    brief: bool = False
    """Whether to leave out the strengths of guidance, which take longer than all other blind tables together."""
    seed: int = 0
    resamples: int = 1000
    """Behind each interval."""


@dataclass(frozen=True)
class Setup:
    """All that the tables of one section have in common. Decodes each thing once."""

    subjects: Sequence[Subject]
    """The tables are about the first, except where inverters are compared."""
    texts_name: str
    texts: Sequence[str]
    protocol: Protocol
    settings: EvaluationSettings
    language_model: LanguageModel | None
    on_progress: OnProgress

    @property
    def name(self) -> str:
        """The name of the section, which is also part of file names."""
        return re.sub(r"[^\w-]+", "-", f"{self.texts_name.removesuffix('.txt')}-{self.protocol}")

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Draws the intervals."""
        return Bootstrap(self.settings.resamples, self.settings.seed)

    @cached_property
    def benches(self) -> list[Bench]:
        """One per inverter, each with texts in the normal form of its own tokenizer."""
        return [self.bench_for(subject, self._examiner(subject)) for subject in self.subjects]

    @property
    def bench(self) -> Bench:
        """The one of the first inverter."""
        return self.benches[0]

    @property
    def references(self) -> ReferenceTexts:
        """The texts as the first inverter's tokenizer writes them."""
        return self.bench.examiner.references

    @cached_property
    def ways(self) -> list[DecodingConfig]:
        """The strategies to measure, with their options."""
        ways = [self.options(strategy=strategy) for strategy in self.settings.strategies]
        if self.settings.rerank:
            ways.append(self.options(strategy=self.blind.strategy, rerank=self.settings.rerank))
        return ways

    @cached_property
    def guided_ways(self) -> list[DecodingConfig]:
        """Those of them that search with the encoder."""
        return [way for way in self.ways if way.strategy == "guided"]

    @cached_property
    def blind(self) -> DecodingConfig:
        """The first strategy that does not search; the start of a search where there is none."""
        blind = (name for name in self.settings.strategies if name not in SEARCHES)
        return self.options(strategy=next(blind, DecodingConfig().strategy))

    @cached_property
    def denoising(self) -> DecodingConfig:
        """The first strategy that denoises canvases: with guidance, without a vector, and before there is a writer."""
        names = (name for name in self.settings.strategies if name not in (*SEARCHES, "writer"))
        return self.options(strategy=next(names, DecodingConfig().strategy))

    def options(self, **changes: object) -> DecodingConfig:
        """Return how to decode, with the seed and the rounds of the settings."""
        fixed = {"seed": self.settings.seed} | {name: {"rounds": self.settings.rounds} for name in SEARCHES}
        return DecodingConfig.model_validate(fixed | changes)

    def bench_for(self, subject: Subject, examiner: Examiner) -> Bench:
        """Combine an inverter with an examiner."""
        return Bench(
            subject,
            examiner,
            guided_limit=self.settings.guided_limit,
            label=f"{self.name}, {subject.name}",
            on_progress=self.on_progress,
        )

    def _examiner(self, subject: Subject) -> Examiner:
        references = choose_references(
            self.texts,
            subject.inverter.tokenizer,
            protocol=self.protocol,
            canvas_length=subject.inverter.info.model.canvas_length,
            limit=self.settings.limit,
            seed=self.settings.seed,
            name=self.texts_name,
        )
        return Examiner(references, subject.inverter.tokenizer, subject.encoder, self.bootstrap, self.language_model)
