"""From what one attacker recovered to rows, and from rows to figures, groups, leaks and examples."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unembed.auditing.estimate import STEPS, KnownRecoveries, step_of
from unembed.auditing.intervals import widen, wilson
from unembed.auditing.language import is_in, languages_of
from unembed.auditing.leaks import Kind, Leak, LeakDetectors, coverage_of, gives_back
from unembed.auditing.patience import extend_budget
from unembed.auditing.recover import GUIDED, Recovery
from unembed.auditing.result import SIGHT, Attack, AttackerName, Example, Group, LeakCount, Row
from unembed.connectors.source import Id
from unembed.evaluation import Bootstrap, Figure
from unembed.inverter import Inverter
from unembed.measures import BY_NAME, CONTENT_MEASURES, READABLE, Forms, compare
from unembed.text import well_formed

MEASURED = (
    READABLE,
    *CONTENT_MEASURES,
    *(BY_NAME[name] for name in ("exact_match", "token_f1", "rouge_l", "cosine")),
)
"""The measures of an audit, in the order of the report."""
_WORST, _BORDERLINE = 8, 3
# Tokens.
_LENGTHS = (8, 16, 24, 32, 64, 128)
_LETTER = re.compile(r"\w")
_HITS = ("readable", "exact_match", *SIGHT)


@dataclass(frozen=True)
class OriginalTexts:
    """Known texts, uncut: as they are, and in the normal form of the encoder's tokenizer."""

    written: list[str]
    """As they are."""
    texts: list[str]
    ids: list[list[int]]
    languages: list[str | None]

    @classmethod
    def of(cls, originals: Sequence[str], inverter: Inverter) -> "OriginalTexts":
        """Tokenize texts; what the tokenizer does not know is left out."""
        special = set(inverter.info.special_ids)
        encodings = inverter.tokenizer.encode_batch([well_formed(text) for text in originals], add_special_tokens=False)
        ids = [[token for token in encoding.ids if token not in special] for encoding in encodings]
        return cls(list(originals), inverter.tokenizer.decode_batch(ids), ids, languages_of(originals))

    def part(self, first: int, count: int) -> "OriginalTexts":
        """Return some of them, in order."""
        return OriginalTexts(*(all_[first : first + count] for all_ in vars(self).values()))


@dataclass(frozen=True)
class Sight:
    """What a method can see: texts of some languages, up to a length."""

    longest: int
    """Tokens that the inverter writes."""
    languages: Sequence[str]
    """That it writes; empty: not known, so that every language passes."""

    def of(self, originals: OriginalTexts, readable: np.ndarray) -> dict[str, np.ndarray]:
        """Return what is named in ``SIGHT``, for each text."""
        too_long = np.array([len(ids) > self.longest for ids in originals.ids], dtype=np.float64)
        other = np.array([self._is_other(language) for language in originals.languages], dtype=np.float64)
        unseen = np.maximum(too_long, other)
        return dict(zip(SIGHT, (too_long, other, unseen, np.maximum(unseen, readable)), strict=True))

    def _is_other(self, language: str | None) -> bool:
        return bool(self.languages) and language is not None and not is_in(language, self.languages)


def measure(recoveries: Sequence[Recovery], originals: OriginalTexts, sight: Sight) -> dict[str, np.ndarray]:
    """Compare recoveries with their originals: all values of their rows."""
    ours = Forms([recovery.ids for recovery in recoveries], [recovery.text for recovery in recoveries])
    values = _compare(ours, originals)
    return values | _cosines(recoveries) | sight.of(originals, values["readable"])


def _compare(ours: Forms, originals: OriginalTexts) -> dict[str, np.ndarray]:
    return compare(ours, Forms(originals.ids, originals.texts), MEASURED)


@dataclass(frozen=True)
class RowMaker:
    """Says for each vector what came back of its text: measured where the originals are known, else estimated."""

    ids: Sequence[Id]
    """Of the sample."""
    inverter: Inverter
    sight: Sight
    show_text: bool
    detectors: LeakDetectors
    """Find what texts say about people."""

    def measured(self, first: int, recoveries: Sequence[Recovery], originals: OriginalTexts) -> list[Row]:
        """Return the rows of some vectors from the ``first`` on; ``originals`` are the texts of these."""
        values = measure(recoveries, originals, self.sight)
        early: dict[str, np.ndarray] = {}
        if any(recovery.early_ids is not None for recovery in recoveries):
            before = [recovery.early_ids or [] for recovery in recoveries]
            early = _compare(Forms(before, self.inverter.tokenizer.decode_batch(before)), originals)
        rows = []
        leaks = self.detectors.find_all(originals.written[: len(recoveries)])
        for number, (recovery, held) in enumerate(zip(recoveries, leaks, strict=True)):
            rows.append(
                self._row(
                    first + number,
                    recovery,
                    tokens=float(len(originals.ids[number])),
                    language=originals.languages[number],
                    values=_at(values, number),
                    chances=np.eye(STEPS)[step_of(values["passage_recall"][number])],
                    held=_kinds(held),
                    given=_kinds(gives_back(recovery.text, held)),
                    early=_at(early, number) or None,
                )
            )
        return rows

    def estimated(
        self, first: int, recoveries: Sequence[Recovery], known: KnownRecoveries, signs: np.ndarray
    ) -> list[Row]:
        """Return the rows of some vectors from the ``first`` on, by the ``signs`` (n, s) of their blind recoveries.

        Where the encoder gives the very vector for the recovered text, the whole text is taken for recovered.
        """
        values = known.expect(signs)
        tokens, chances = values.pop("tokens"), known.chances(signs)
        same = np.array([(recovery.cosine or 0.0) >= GUIDED.guided.target_cosine for recovery in recoveries])
        for name, expected in values.items():
            expected[same] = 0.0 if name in ("too_long", "other_language", "unseen") else 1.0
        chances[same] = np.eye(STEPS)[-1]
        tokens[same] = [len(recovery.ids) for recovery, found in zip(recoveries, same, strict=True) if found]
        values |= _cosines(recoveries)
        leaks = self.detectors.find_all([recovery.text for recovery in recoveries])
        return [
            self._row(
                first + number,
                recovery,
                tokens=float(tokens[number]),
                language=None,
                values=_at(values, number),
                chances=chances[number],
                held=None,
                given=_kinds(leaks[number]),
                early=None,
            )
            for number, recovery in enumerate(recoveries)
        ]

    def _row(self, row: int, recovery: Recovery, *, chances: np.ndarray, **facts: Any) -> Row:
        vector_id = self.ids[row]
        return Row(
            row=row,
            id=vector_id if self.show_text or not isinstance(vector_id, str) else mask(vector_id),
            chances=chances.tolist(),
            confidence=recovery.confidence,
            agreement=recovery.agreement,
            encoder_calls=recovery.encoder_calls,
            seconds=recovery.seconds,
            **facts,
        )


def _at(values: Mapping[str, np.ndarray], number: int) -> dict[str, float]:
    return {name: float(each[number]) for name, each in values.items()}


def _kinds(leaks: Sequence[Leak]) -> list[Kind]:
    return list(dict.fromkeys(leak.kind for leak in leaks))


def describe_attack(
    name: AttackerName,
    rows: list[Row],
    bootstrap: Bootstrap,
    *,
    widening: Mapping[str, float] | None,
    recovered: Sequence[str],
    originals: Sequence[str] | None,
    show_text: bool,
    kinds: Sequence[Kind],
) -> Attack:
    """Put together what one attacker recovered.

    Args:
        name: the attacker.
        rows: of the first vectors of the sample.
        bootstrap: draws the intervals.
        widening: of the intervals, where the values are estimated; None where they were measured.
        recovered: the text of each row.
        originals: the true ones, where they are known.
        show_text: whether examples may be read.
        kinds: of information that were looked for.
    """

    def examples(chosen: Sequence[Row]) -> list[Example]:
        return [
            _example(row.row, recovered[row.row], None if originals is None else originals[row.row], show_text)
            for row in chosen
        ]

    figures = {value: _figure(rows, value, bootstrap, widening) for value in rows[0].values}
    if name == "guided" and widening is not None:  # the estimate is of what it gets at least
        figures |= {value: replace(figures[value], high=1.0) for value in ("readable", "not_cleared")}
    by_recovery = sorted(
        rows, key=lambda row: (-row.values["passage_recall"], -row.values["content_precision"], -row.tokens)
    )
    readable = [row for row in by_recovery if row.values["readable"] == 1.0]
    return Attack(
        name=name,
        n=len(rows),
        known=originals is not None,
        figures=figures,
        distribution=np.sum([row.chances for row in rows], axis=0).tolist(),
        by_length=_by_length(rows, bootstrap, widening),
        leaks=_count_leaks(rows, kinds),
        worst=examples(by_recovery[:_WORST]),
        borderline=examples(readable[::-1][:_BORDERLINE]) if originals is not None else [],
        patient=extend_budget(rows, bootstrap),
        seconds_per_vector=float(np.mean([row.seconds for row in rows])),
        encoder_calls=float(np.mean([row.encoder_calls for row in rows])),
        rows=rows,
    )


def _how_much(row: Row) -> tuple[float, ...]:
    """Return what rows are ranked by: how much came back, how much of that is true, and how long the text is."""
    return row.values["passage_recall"], row.values["content_precision"], row.tokens


def _figure(rows: Sequence[Row], name: str, bootstrap: Bootstrap, widening: Mapping[str, float] | None) -> Figure:
    """Return the mean of a value, with an interval that holds for few rows too, and for estimates."""
    values = np.array([row.values[name] for row in rows])
    if widening is not None and name in widening:
        return widen(bootstrap.mean(values), widening[name])
    return wilson(float(values.sum()), len(values)) if name in _HITS else bootstrap.mean(values)


def _cosines(recoveries: Sequence[Recovery]) -> dict[str, np.ndarray]:
    """Return the cosines that the attacker measured, if the encoder was available."""
    cosines = [recovery.cosine for recovery in recoveries if recovery.cosine is not None]
    return {"cosine": np.array(cosines)} if len(cosines) == len(recoveries) else {}


def _by_length(rows: Sequence[Row], bootstrap: Bootstrap, widening: Mapping[str, float] | None) -> list[Group]:
    groups = []
    least = 1
    for most in (*_LENGTHS, None):
        inside = [row for row in rows if round(row.tokens) >= least and (most is None or round(row.tokens) <= most)]
        if inside:
            name = f"over {least - 1} tokens" if most is None else f"{least} to {most} tokens"
            figures = (_figure(inside, value, bootstrap, widening) for value in ("readable", "passage_recall"))
            groups.append(Group(name, len(inside), *figures))
        least = (most or 0) + 1
    return groups


def _count_leaks(rows: Sequence[Row], kinds: Sequence[Kind]) -> list[LeakCount]:
    counts = []
    for kind in kinds:
        holding = None if any(row.held is None for row in rows) else sum(kind in (row.held or []) for row in rows)
        given = sum(kind in row.given for row in rows)
        counts.append(LeakCount(kind, holding, given, wilson(given, len(rows)), coverage_of(kind)))
    return counts


def _example(row: int, recovered: str, original: str | None, show_text: bool) -> Example:
    shown = str if show_text else mask
    there = set() if original is None else {_plain(word) for word in original.split()} - {""}
    return Example(
        row=row,
        original=None if original is None else shown(original),
        recovered=shown(recovered),
        same=[] if original is None else [_plain(word) in there for word in recovered.split()],
    )


def mask(text: str) -> str:
    """Put a dot for every letter and digit: a text's shape without what it says."""
    return _LETTER.sub("•", text)


def _plain(word: str) -> str:
    return "".join(_LETTER.findall(word)).lower()
