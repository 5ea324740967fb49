"""Puts the evaluation together: texts, inverters and measures in, a report out. Knows neither files nor pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unembed._version import __version__
from unembed.errors import ConfigError
from unembed.evaluation.baselines import check_store, count_tokens
from unembed.evaluation.bench import Subject
from unembed.evaluation.bootstrap import LEVEL
from unembed.evaluation.comparisons import model_facts
from unembed.evaluation.examiner import PERPLEXITY_TEXTS
from unembed.evaluation.perplexity import MODEL, REMEDY, LanguageModel
from unembed.evaluation.section import Seconds, Section, make_section
from unembed.evaluation.setup import EvaluationSettings, Setup
from unembed.evaluation.table import Fact
from unembed.measures import MEASURES, bleu_signature
from unembed.progress import OnProgress
from unembed.store import Store

Timing = dict[str, Seconds]
"""Wall time per text, by section and strategy: all that differs when the same is measured again."""


@dataclass(frozen=True)
class Report:
    """Everything that was measured, but for the time it took."""

    unembed_version: str
    seed: int
    bootstrap_resamples: int
    bootstrap_level: float
    bleu: str
    perplexity_model: str | None
    notes: list[str]
    models: list[dict[str, Fact]]
    sections: list[Section] = field(default_factory=list)


def evaluate(
    subjects: Sequence[Subject],
    sources: Mapping[str, Sequence[str]],
    settings: EvaluationSettings,
    *,
    store: Store | None = None,
    milestones: Sequence[Subject] = (),
    language_model: LanguageModel | None = None,
    on_progress: OnProgress = lambda label, done, total: None,
) -> tuple[Report, Timing]:
    """Measure inverters on texts.

    Args:
        subjects: the inverters. All are compared in Table 1; the other tables are about the first.
        sources: texts by the name of their file.
        settings: what is measured.
        store: what the first inverter was trained on, for the nearest neighbours and the token frequencies.
        milestones: earlier states of the first inverter, in order.
        language_model: for perplexity.
        on_progress: called with what is being done, how many more texts are done, and of how many.
    """
    first = subjects[0].inverter.info
    if store is not None:
        check_store(store, first)
    for milestone in milestones:
        info = milestone.inverter.info
        if (info.encoder, info.tokenizer_hash) != (first.encoder, first.tokenizer_hash):
            raise ConfigError(
                f"{milestone.name} reads vectors of '{info.encoder.name}', the first model those of "
                f"'{first.encoder.name}'.",
                "Give the run that the first `model` comes from.",
            )
    counts = None if store is None else count_tokens(store)
    report = Report(
        unembed_version=__version__,
        seed=settings.seed,
        bootstrap_resamples=settings.resamples,
        bootstrap_level=LEVEL,
        bleu=bleu_signature(),
        perplexity_model=MODEL if language_model else None,
        notes=_notes(language_model, store),
        models=[{"name": subject.name, **model_facts(subject)} for subject in subjects],
    )
    timing: Timing = {}
    for name, texts in sources.items():
        for protocol in settings.protocols:
            setup = Setup(subjects, name, texts, protocol, settings, language_model, on_progress)
            section, timing[setup.name] = make_section(setup, store, counts, milestones)
            report.sections.append(section)
    return report, timing


def _notes(language_model: LanguageModel | None, store: Store | None) -> list[str]:
    notes = [
        "Texts are compared in the normal form of the encoder's tokenizer: what its tokens say when they are written "
        "as text again. An uncased tokenizer (all-MiniLM-L6-v2) makes everything lower case.",
        "canvas: texts are cut to the canvas and shorter ones left out, as in the paper; their length is known. "
        "natural: texts that fit the canvas as they are; their length is guessed from the vector.",
        "blind: from the vector alone. surrogate: by a search with the inverter's stand-in for the encoder. "
        "reranked: the encoder chooses among blind texts. guided: the encoder is asked on the way.",
        "Brackets hold 95 % bootstrap intervals (percentiles, texts resampled). Where nothing or everything was hit "
        "they shrink to a point; the true rate may still be as far away as about 3 / n.",
        "sentence_bleu and word_set_f1 are the measures that vec2text reports. Both mind the case of letters, but an "
        "uncased tokenizer has none to give back: its texts are compared in lower case.",
        *(f"{measure.name}: {measure.meaning}" for measure in MEASURES),
    ]
    if language_model is None:
        notes.append(f"perplexity is left out: no language model is installed. To have it: {REMEDY}")
    else:
        notes.append(
            f"perplexity (Tables 1 and 2) is per token under {MODEL}, on the first {PERPLEXITY_TEXTS} texts of a row "
            "at most; it does not compare with perplexities under other models."
        )
    if store is None:
        notes.append("The nearest neighbour in the training set is left out: no `store` was given.")
    return notes
