"""The audit against known truth: stores of several kinds of text, audited with their texts and without them.

The folder holds a file ``<kind>.txt`` for each kind of text, one text per line; the first 300 lines of each are used,
which ``benchmarks/calibration.py`` leaves alone. A kind is estimated from the other sources: what the stored
calibration knows of its own source is left out. With the texts recovery is measured, without them it is estimated; the
two verdicts must not contradict each other.

    python benchmarks/audit.py FOLDER --kinds queries sentences documents legal medical german
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leaks import load_labelled
from measure import Result, finish, make_parser
from unembed.auditing.calibration import load_stored
from unembed.auditing.estimate import KnownRecoveries, signs_of
from unembed.auditing.findings import OriginalTexts, RowMaker, Sight, describe_attack
from unembed.auditing.language import languages_of_inverter
from unembed.auditing.leaks import KINDS as LEAK_KINDS
from unembed.auditing.leaks import LeakDetectors, find_leaks
from unembed.auditing.leaks.scoring import score
from unembed.auditing.recover import Attacker, FinishedParts, Recovery
from unembed.auditing.result import Attack, Row, Verdict
from unembed.auditing.verdict import judge
from unembed.encoders import Encoder
from unembed.evaluation import Bootstrap, Figure
from unembed.inverter import Inverter
from unembed.measures import percent

KINDS = ("queries", "sentences", "documents", "news", "web", "legal", "medical", "science", "support", "german")
SHOWN = ("readable", "passage_recall", "token_f1", "unseen")
LINES = 300
THRESHOLD = 0.1
_OURS = ("The cat is sleeping on the sofa.", "She bought a new car last week.", "Where is the nearest pharmacy?")


@dataclass(frozen=True)
class Audited:
    """A kind of text, audited in both ways."""

    kind: str
    measured: Attack
    estimated: Attack

    def verdict(self, attack: Attack) -> Verdict:
        """Judge by one of the two."""
        return judge([attack], THRESHOLD)

    @property
    def contradiction(self) -> bool:
        """Whether one verdict says above and the other below."""
        return {self.verdict(attack).outcome for attack in (self.measured, self.estimated)} == {"above", "below"}

    def covered(self, name: str) -> bool:
        """Return whether the measured figure lies in the estimate's interval."""
        return (
            self.estimated.figures[name].low <= self.measured.figures[name].value <= self.estimated.figures[name].high
        )


def main() -> None:
    """Audit every kind, and print what was measured beside what was estimated."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("folder", type=Path, nargs="?", help="the texts (default: a few of our own)")
    parser.add_argument("--kinds", nargs="+", default=KINDS, help="which files (default: %(default)s)")
    parser.add_argument("--count", type=int, default=100, help="texts of each kind (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("work/audit-benchmark"), help="finished parts; they are kept")
    options = parser.parse_args()
    if options.quick:
        options.kinds, options.count = options.kinds[:1], 3
    inverter = Inverter.default(device="cpu")
    encoder = inverter.load_encoder(device="cpu")
    audited = []
    for kind in options.kinds:
        texts = _texts(options.folder, kind)[: options.count]
        print(f"{kind}: {len(texts)} texts", file=sys.stderr, flush=True)
        audited.append(audit_kind(kind, texts, inverter, encoder, options.work))
    finish(
        Result(
            title="The audit, measured and estimated",
            compared="The figures with the texts (measured) and without them (estimated from other kinds of text).",
            columns=["kind", "tokens", "figure", "measured", "estimated", "covered", "verdict with texts", "without"],
            rows=[row for each in audited for row in _table(each)],
            figures=[],
            repetitions=1,
            sizes={"texts of each kind": options.count, "kinds": len(audited), "threshold": THRESHOLD},
            notes=[
                *(_coverage(audited, name) for name in SHOWN),
                f"Verdicts that contradict each other: {sum(each.contradiction for each in audited)} of {len(audited)}",
                _leaks(),
            ],
        ),
        options,
    )


def audit_kind(kind: str, texts: Sequence[str], inverter: Inverter, encoder: Encoder, work: Path) -> Audited:
    """Invert the vectors of texts once, and look at the result with the texts and without them."""
    vectors = encoder.encode(list(texts))
    attacker = Attacker(inverter, encoder, FinishedParts(work / kind, {"texts": list(texts)}))
    recoveries = [recovery for part in attacker.blind(vectors, "sample") for recovery in part]
    sight = Sight(inverter.info.model.canvas_length, languages_of_inverter(inverter))
    make = RowMaker(list(range(len(texts))), inverter, sight, False, LeakDetectors())
    stored = load_stored()
    known = stored.known.without(kind.partition("-")[0])
    measured = make.measured(0, recoveries, OriginalTexts.of(texts, inverter))
    estimated = make.estimated(0, recoveries, known, signs_of(recoveries, stored.clues.read(vectors)))
    return Audited(kind, _describe(measured, recoveries, texts, None), _describe(estimated, recoveries, None, known))


def _describe(
    rows: list[Row], recoveries: Sequence[Recovery], texts: Sequence[str] | None, known: KnownRecoveries | None
) -> Attack:
    return describe_attack(
        "blind",
        rows,
        Bootstrap(),
        widening=None if known is None else known.widening,
        recovered=[recovery.text for recovery in recoveries],
        originals=texts,
        show_text=False,
        kinds=(),
    )


def _table(audited: Audited) -> list[list[str]]:
    measured, estimated = audited.measured, audited.estimated
    tokens = sum(row.tokens for row in measured.rows) / measured.n
    rows = []
    for name in SHOWN:
        rows.append(
            [
                audited.kind if name == SHOWN[0] else "",
                f"{tokens:.0f}" if name == SHOWN[0] else "",
                name,
                _show(measured.figures[name]),
                _show(estimated.figures[name]),
                "yes" if audited.covered(name) else "NO",
                audited.verdict(measured).outcome if name == SHOWN[0] else "",
                audited.verdict(estimated).outcome if name == SHOWN[0] else "",
            ]
        )
    return rows


def _show(figure: Figure) -> str:
    return f"{percent(figure.value)} ({percent(figure.low)} to {percent(figure.high)})"


def _coverage(audited: Sequence[Audited], name: str) -> str:
    covered = sum(each.covered(name) for each in audited)
    return f"The estimate's interval of {name} holds for {covered} of {len(audited)} kinds, each left out."


def _leaks() -> str:
    scores = score(load_labelled(), find_leaks, LEAK_KINDS)
    shown = ", ".join(f"{kind} {each.precision:.2f} / {each.recall:.2f}" for kind, each in scores.items())
    return f"Precision / recall of the kinds of information, on the labelled lines of benchmarks/leaks.py: {shown}."


def _texts(folder: Path | None, kind: str) -> list[str]:
    if folder is None:
        return list(_OURS)
    return list(dict.fromkeys((folder / f"{kind}.txt").read_text(encoding="utf-8").splitlines()))[:LINES]


if __name__ == "__main__":
    main()
