"""How often ``unembed fill`` finds what stands in a slot, what it costs, and whether its probabilities hold.

The texts are templates written for this purpose (``filling_texts.py``), other ones than those for calibration, with
values drawn at random. ``--only`` runs a part.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from filling_texts import KINDS, Case, make_cases
from measure import Figure, Result, finish, make_parser
from unembed.encoders import Encoder, load_encoder
from unembed.evaluation import Bootstrap
from unembed.filling import Template
from unembed.filling.filler import Filling
from unembed.filling.kinds import Free, candidates_of
from unembed.inverter import Inverter

_BOOTSTRAP = Bootstrap()
_NAMES = 500
_MANY = 100_000
_VERDICTS = ("certain", "likely", "a guess", "not in the list")


_SHORT = (
    "Dear {x}, thank you for your order.",
    "{x} was diagnosed with diabetes last spring.",
    "The contract was signed by {x} on behalf of the landlord.",
    "Please forward this message to {x} in accounting.",
)
_LONG = (
    "Following the meeting of the board on Tuesday, we have decided to offer the position of regional manager to {x}, "
    "who has led the sales team in the north for six years. The appointment takes effect at the beginning of next "
    "month, and we ask all departments to keep it confidential until then."
)


@dataclass(frozen=True)
class Part:
    """A row of the table: cases of one kind, filled in one way."""

    name: str
    make: Callable[[np.random.Generator], list[Case]]
    blind: bool = False

    @property
    def way(self) -> str:
        """Whether the encoder is asked."""
        return "blind" if self.blind else "encoder"


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: Case
    filling: Filling
    seconds: float
    fresh: bool
    """Whether nothing had been embedded for its template before."""

    @property
    def right(self) -> bool:
        """Whether the best answer is the truth."""
        return tuple(self.filling.answers[0].values.values()) == self.case.values

    @property
    def among(self) -> bool:
        """Whether the truth is among the first ten answers."""
        return any(tuple(answer.values.values()) == self.case.values for answer in self.filling.answers)


def many_names(random: np.random.Generator, *, in_long_text: bool = False) -> list[Case]:
    """Return texts with full names, of which there are many candidates; or one that is longer than a canvas."""
    lists = [candidates_of(kind) for kind in ("first-names", "surnames")]
    first, last = (list(own) for own in lists if not isinstance(own, Free))
    chosen = random.choice(len(first) * len(last), _MANY, replace=False)
    names = [f"{first[each // len(last)]} {last[each % len(last)]}" for each in chosen]
    return [
        Case("full names", template, (name,), Template.parse(template).fill([name]), (names,), listed=True)
        for template, name in zip([_LONG] if in_long_text else _SHORT, names, strict=False)
    ]


def many_numbers(random: np.random.Generator) -> list[Case]:
    """Return texts with numbers of five digits."""
    listed = candidates_of("digits:5")
    assert not isinstance(listed, Free)
    return [
        Case("5 digits", template, (number,), Template.parse(template).fill([number]), (listed,), listed=True)
        for template, number in zip(
            (
                "The combination of the safe is {x}.",
                "Your confirmation code is {x}.",
                "Please quote the reference {x} in your reply.",
                "His employee number is {x}, and he started in May.",
            ),
            [listed[each] for each in random.choice(len(listed), 4, replace=False)],
            strict=True,
        )
    ]


def make_parts(per_name: int, per_other: int, size: int = _NAMES, most: int | None = None) -> list[Part]:
    """Return all rows."""

    def cases(what: str, **options: object) -> Callable[[np.random.Generator], list[Case]]:
        return lambda random: make_cases(what, random, calibration=False, most=most, **options)  # type: ignore[arg-type]

    names = {"sizes": (size,)}
    parts = [
        Part(f"first names, {size} candidates", cases("first names", listed=per_name, **names)),
        Part("first names, the template has a mistake", cases("first names", listed=1, mistaken=True, **names)),
        Part("first names, the right one is missing", cases("first names", listed=0, unlisted=1, **names)),
        *(Part(what, cases(what, listed=per_other)) for what in KINDS if what != "first names"),
    ]
    many = [
        Part(f"full names, {_MANY:,} candidates", many_names),
        Part(
            f"full names, {_MANY:,} candidates, a text of 59 tokens",
            lambda random: many_names(random, in_long_text=True),
        ),
        Part(f"5 digits, {_MANY:,} candidates", many_numbers),
    ]
    in_turn = [each for part in parts for each in (part, Part(part.name, part.make, blind=True))]
    return [*in_turn[:6], *many, *in_turn[6:]]


def run_part(part: Part, inverter: Inverter, encoder: Encoder) -> list[Outcome]:
    """Fill the slots of each case; cases of one template share what was embedded."""
    cases = part.make(np.random.default_rng(1))
    vectors = encoder.encode([case.text for case in cases])
    filler, shared, outcomes = None, None, []
    for case, vector in zip(cases, vectors, strict=True):
        begun = time.process_time()
        fresh = shared != (case.known, id(case.candidates))
        if filler is None or fresh:
            given = dict(zip(("x", "y"), case.candidates, strict=False))
            filler = inverter.prepare_filling(case.known, given, encoder=None if part.blind else encoder)
            shared = (case.known, id(case.candidates))
        filling = filler.fill(vector)
        outcomes.append(Outcome(case, filling, time.process_time() - begun, fresh))
    return outcomes


def make_row(part: Part, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row of the table."""
    fresh = [each for each in outcomes if each.fresh]
    right = _BOOTSTRAP.mean(np.array([float(each.right) for each in outcomes]))
    calls = np.mean([each.filling.encoder_calls for each in fresh])
    found = [
        f"{sum(each.filling.verdict == verdict for each in outcomes)}"
        + (f" ({sum(each.right for each in outcomes if each.filling.verdict == verdict)})")
        for verdict in _VERDICTS
    ]
    return [
        part.name,
        part.way,
        f"{len(outcomes)}",
        f"{fresh[0].filling.candidates:,}",
        f"{right.value:.2f} [{right.low:.2f}, {right.high:.2f}]",
        f"{np.mean([each.among for each in outcomes]):.2f}",
        f"{calls:,.0f}",
        f"{np.mean([each.seconds for each in fresh]):.1f}",
        *found,
    ]


def describe_calibration(outcomes: Sequence[Outcome]) -> str:
    """Say how far probabilities are from what they promise."""
    promised = np.array([each.filling.answers[0].probability for each in outcomes])
    right = np.array([float(each.right) for each in outcomes])
    bins = np.minimum((promised * 5).astype(int), 4)
    gap = sum(abs(promised[bins == each].sum() - right[bins == each].sum()) for each in range(5)) / len(right)
    parts = [(promised[bins == each], right[bins == each]) for each in range(5) if (bins == each).any()]
    table = ", ".join(f"{said.mean():.2f} promised, {true.mean():.2f} right (n = {len(true)})" for said, true in parts)
    return f"Brier score {np.mean((promised - right) ** 2):.3f}, calibration error {gap:.3f}: {table}."


def main() -> None:
    """Fill all slots."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("--only", help="rows whose name begins like this; or blind, or encoder: those filled so")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    parts = make_parts(1, 1, size=20, most=2) if options.quick else make_parts(4, 2)
    if options.quick:
        parts = [part for part in parts if part.name.startswith("first names")]
    if options.only:
        parts = [part for part in parts if options.only in (part.way, part.name[: len(options.only)])]
    inverter, encoder = Inverter.default(device="cpu"), load_encoder(device="cpu")
    rows, figures, every = [], [], {False: list[Outcome](), True: list[Outcome]()}
    for part in parts:
        outcomes = run_part(part, inverter, encoder)
        rows.append(make_row(part, outcomes))
        every[part.blind] += outcomes
        print(f"  {' | '.join(rows[-1])}", file=sys.stderr, flush=True)
        print(f"    so far: {describe_calibration(every[part.blind])}", file=sys.stderr, flush=True)
        if part.name.startswith("first names") and part.name.endswith("candidates") and not part.blind:
            figures.append(Figure(part.name, float(np.mean([each.right for each in outcomes])), 0.8))
        if "100,000" in part.name and not part.blind:
            figures.append(Figure(f"{part.name}: seconds of one core", _seconds(outcomes), 240.0, at_least=False))
    notes = [
        f"{'Blind' if blind else 'With the encoder'}, all rows together: {describe_calibration(outcomes)}"
        for blind, outcomes in every.items()
        if outcomes
    ]
    finish(
        Result(
            title="Filling slots",
            compared="What stands in the slots of a text that is known otherwise, with the encoder and without.",
            columns=[
                *("slots", "way", "n", "candidates", "right", "among the first ten", "texts embedded", "seconds"),
                *(f"{verdict} (right)" for verdict in _VERDICTS),
            ],
            rows=rows,
            figures=figures,
            repetitions=1,
            sizes={"texts": sum(len(outcomes) for outcomes in every.values())},
            notes=[
                "Right: all slots; interval: 95 %, bootstrap over texts. Seconds of computing on one core, and texts "
                "embedded: of the first vector of each template; the next ones use what it has embedded.",
                *notes,
            ],
        ),
        options,
    )


def _seconds(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([each.seconds for each in outcomes]))


if __name__ == "__main__":
    main()
