"""Tables that compare inverters, strategies, options and baselines, most of them the paper's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unembed.evaluation.baselines import nearest_neighbours, random_tokens
from unembed.evaluation.bench import Scored, Subject, describe, mode_of
from unembed.evaluation.masked import masked_accuracy
from unembed.evaluation.recover import Recovered
from unembed.evaluation.setup import Setup
from unembed.evaluation.table import Fact, Row, RowMode, Table
from unembed.store import Store

REMASK_SHARES = (0.0, 0.05, 0.1, 0.2)
REMASK_THRESHOLD = 0.2
GUIDANCE = (0.0, 0.5, 1.0)


def encoders(setup: Setup) -> Table:
    """Compare all inverters, decoded with the first strategy."""
    first = setup.ways[0]
    rows = [
        _with_perplexity(
            setup,
            bench.outcome(first),
            bench.subject.name,
            mode_of(first),
            model_facts(bench.subject) | {"lost tokens": bench.examiner.references.lost_share},
        )
        for bench in setup.benches
    ]
    note = (
        f"One row per inverter, decoded with {describe(first)}. Lost tokens: the share of the texts' tokens that "
        "the inverter's vocabulary has no piece for."
    )
    return Table("encoders", "Table 1: encoders", note, rows, "inverter")


def strategies(setup: Setup, store: Store | None) -> Table:
    """Compare all strategies with the baselines."""
    bench = setup.bench
    rows = [_with_perplexity(setup, bench.outcome(way), describe(way), mode_of(way)) for way in setup.ways]
    lengths = [len(ids) for ids in setup.references.ids]
    drawn = random_tokens(lengths, bench.subject.inverter.info.vocabulary, setup.settings.seed)
    rows.append(_with_perplexity(setup, bench.judge(Recovered.without_model(drawn)), "random tokens", "baseline"))
    without = bench.outcome(setup.denoising, unconditional=True)
    rows.append(_with_perplexity(setup, without, f"unconditional model ({setup.denoising.strategy})", "baseline"))
    if store is not None:
        label, total = f"{setup.name}: nearest neighbours", len(store)
        near = nearest_neighbours(bench.examiner.vectors, store, lambda count: setup.on_progress(label, count, total))
        nearest = bench.judge(Recovered.without_model(near))
        facts: dict[str, Fact] = {"store rows": total}
        rows.append(_with_perplexity(setup, nearest, "nearest neighbour in the store", "baseline", facts))
    if own := bench.examiner.perplexity(setup.references.texts):
        rows.append(Row("the texts themselves", "baseline", len(setup.references), own))
    note = (
        "Random tokens have the true length. The unconditional model is the same one with its vector dropped, so "
        "that only the length comes from the vector."
    )
    return Table("strategies", "Table 2: decoding strategies and baselines", note, rows, "strategy")


def masked(setup: Setup) -> Table:
    """Measure the teacher-forced accuracy of all inverters."""
    rows = []
    for bench in setup.benches:
        references, vectors = bench.examiner.references, bench.examiner.vectors
        figures = masked_accuracy(bench.subject.inverter, references, vectors, setup.bootstrap)
        rows.append(Row(bench.subject.name, "teacher-forced", len(references), figures))
    note = (
        "Accuracy at masked positions while the rest of the true text is visible. This is no inversion and must "
        "not be compared with token_accuracy; masked_accuracy@0.1 is what the paper's code reports."
    )
    return Table("masked_accuracy", "Teacher-forced accuracy", note, rows, "inverter")


def remasking(setup: Setup) -> Table:
    """Compare shares and a threshold of ``euler-remask``."""
    ways = {f"share {share:g}": setup.options(strategy="euler-remask", remask_share=share) for share in REMASK_SHARES}
    ways[f"below probability {REMASK_THRESHOLD:g}"] = setup.options(
        strategy="euler-remask", remask_threshold=REMASK_THRESHOLD
    )
    rows = [setup.bench.outcome(way).row(name, "blind") for name, way in ways.items()]
    note = "euler-remask: the share of revealed positions that is masked again after each pass, or a threshold."
    return Table("remasking", "Table 3: re-masking", note, rows, "masked again")


def guidance(setup: Setup) -> Table:
    """Compare strengths of classifier-free guidance."""
    ways = {strength: setup.denoising.model_copy(update={"guidance": strength}) for strength in GUIDANCE}
    rows = [setup.bench.outcome(way).row(f"strength {strength:g}", "blind") for strength, way in ways.items()]
    note = f"{setup.denoising.strategy}; above 0 every pass runs the model twice."
    return Table("guidance", "Classifier-free guidance", note, rows, "guidance")


def cost(setup: Setup) -> Table:
    """Say what each strategy costs, except for the time."""
    rows = []
    for way in setup.ways:
        recovered, mode = setup.bench.outcome(way).recovered, mode_of(way)
        facts: dict[str, Fact] = {
            "parameters": _parameters(setup.bench.subject),
            "passes": float(np.mean(recovered.passes)),
            "encoder needed": "yes" if way.needs_encoder else "no",
            "encoder calls": float(np.mean(recovered.encoder_calls)),
        }
        rows.append(Row(describe(way), mode, len(recovered.ids), facts=facts))
    note = "Means per text. Passes are those over canvases of the text that was kept."
    return Table("cost", "Table 5: cost", note, rows, "strategy")


def training_milestones(setup: Setup, milestones: Sequence[Subject]) -> Table:
    """Compare inverters that were saved during the training run."""
    rows = []
    for milestone in milestones:
        metrics = milestone.inverter.info.metrics
        names = {"saved_step": "step", "samples": "samples", "elbo": "validation ELBO"}
        facts = {label: metrics[key] for key, label in names.items() if key in metrics}
        outcome = setup.bench_for(milestone, setup.bench.examiner).outcome(setup.denoising)
        rows.append(outcome.row(milestone.name, "blind", facts))
    note = f"Inverters saved during the training run, decoded with {describe(setup.denoising)}."
    return Table("milestones", "Table 7: training milestones", note, rows, "inverter")


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


def _with_perplexity(
    setup: Setup, outcome: Scored, name: str, mode: RowMode, facts: dict[str, Fact] | None = None
) -> Row:
    """Return a row of the first two tables: with perplexity, which takes longer than most decodings."""
    row = outcome.row(name, mode, facts)
    return replace(row, figures=row.figures | setup.bench.examiner.perplexity(outcome.scores.texts))


def _parameters(subject: Subject) -> int:
    return sum(parameter.numel() for parameter in subject.inverter.model.parameters())
