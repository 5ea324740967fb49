"""From what one attacker recovered to figures, groups, leaks and examples."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.audit.estimate import Estimate
from unembed.audit.leaks import Kind, Leak, LeakDetectors, gives_back
from unembed.audit.recover import Recovery
from unembed.audit.result import Attack, AttackerName, Example, Group, LeakCount
from unembed.connectors.source import Id
from unembed.evaluation import Bootstrap
from unembed.evaluation.figures import to_figures
from unembed.inverter import Inverter
from unembed.measures import MEASURES, READABLE, Forms, compare
from unembed.text import well_formed

_STEPS = 10
_EXAMPLES = 8
# Tokens.
_LENGTHS = (8, 16, 24, 32, 64)
_LETTER = re.compile(r"\w")


@dataclass(frozen=True)
class OriginalTexts:
    """Known texts, uncut: as they are, and in the normal form of the encoder's tokenizer."""

    written: list[str]
    """As they are."""
    texts: list[str]
    ids: list[list[int]]

    @classmethod
    def of(cls, originals: Sequence[str], inverter: Inverter) -> "OriginalTexts":
        """Tokenize texts; what the tokenizer does not know is left out."""
        special = set(inverter.info.special_ids)
        encodings = inverter.tokenizer.encode_batch([well_formed(text) for text in originals], add_special_tokens=False)
        ids = [[token for token in encoding.ids if token not in special] for encoding in encodings]
        return cls(list(originals), inverter.tokenizer.decode_batch(ids), ids)


def measure(recoveries: Sequence[Recovery], originals: OriginalTexts) -> dict[str, np.ndarray]:
    """Compare recoveries with the first originals, as many as there are recoveries."""
    n = len(recoveries)
    ours = Forms([recovery.ids for recovery in recoveries], [recovery.text for recovery in recoveries])
    compared = compare(ours, Forms(originals.ids[:n], originals.texts[:n]), (READABLE, *MEASURES))
    return compared | _cosines(recoveries)


def describe_attack(
    name: AttackerName,
    recoveries: Sequence[Recovery],
    ids: Sequence[Id],
    bootstrap: Bootstrap,
    *,
    originals: OriginalTexts | None,
    estimated: Estimate | None,
    show_text: bool,
    detectors: LeakDetectors,
) -> Attack:
    """Put together what one attacker recovered.

    Args:
        name: the attacker.
        recoveries: of the first vectors of the sample.
        ids: of the sample.
        bootstrap: draws the intervals.
        originals: the texts, where they are known.
        estimated: the measures, where they are not.
        show_text: whether examples may be read.
        detectors: find what texts say about people.
    """
    if originals is not None:
        per_text = measure(recoveries, originals)
        figures = to_figures(per_text, bootstrap)
        lengths = [len(tokens) for tokens in originals.ids[: len(recoveries)]]
        held = [detectors.find(text) for text in originals.written[: len(recoveries)]]
        given = [gives_back(recovery.text, leaks) for recovery, leaks in zip(recoveries, held, strict=True)]
    else:
        assert estimated is not None
        per_text = estimated.per_text
        figures = estimated.figures | to_figures(_cosines(recoveries), bootstrap)
        lengths = [len(recovery.ids) for recovery in recoveries]
        held = None
        given = [detectors.find(recovery.text) for recovery in recoveries]
    f1 = per_text["token_f1"]
    return Attack(
        name=name,
        n=len(recoveries),
        known=originals is not None,
        figures=figures,
        distribution=np.histogram(f1, bins=_STEPS, range=(0.0, 1.0))[0].tolist(),
        by_length=_by_length(f1, lengths, bootstrap),
        leaks=_count_leaks(detectors.kinds, held, given, bootstrap),
        examples=_examples(recoveries, ids, f1, given, originals, show_text),
        seconds_per_vector=float(np.mean([recovery.seconds for recovery in recoveries])),
        encoder_calls=float(np.mean([recovery.encoder_calls for recovery in recoveries])),
    )


def _cosines(recoveries: Sequence[Recovery]) -> dict[str, np.ndarray]:
    """Return the cosines that the attacker measured, if the encoder was available."""
    cosines = [recovery.cosine for recovery in recoveries if recovery.cosine is not None]
    return {"cosine": np.array(cosines)} if len(cosines) == len(recoveries) else {}


def _by_length(f1: np.ndarray, lengths: Sequence[int], bootstrap: Bootstrap) -> list[Group]:
    groups = []
    least = 1
    for most in (*_LENGTHS, max(*lengths, _LENGTHS[-1] + 1)):
        values = np.array([value for value, length in zip(f1, lengths, strict=True) if least <= length <= most])
        if len(values):
            label = f"{least} to {most} tokens" if most in _LENGTHS else f"over {least - 1} tokens"
            groups.append(Group(label, len(values), bootstrap.mean(values)))
        least = most + 1
    return groups


def _count_leaks(
    kinds: Sequence[Kind],
    held: Sequence[Sequence[Leak]] | None,
    given: Sequence[Sequence[Leak]],
    bootstrap: Bootstrap,
) -> list[LeakCount]:
    counts = []
    for kind in kinds:
        holding = None if held is None else sum(any(leak.kind == kind for leak in leaks) for leaks in held)
        gives = np.array([any(leak.kind == kind for leak in leaks) for leaks in given], dtype=np.float64)
        counts.append(LeakCount(kind, holding, int(gives.sum()), bootstrap.mean(gives)))
    return counts


def _examples(
    recoveries: Sequence[Recovery],
    ids: Sequence[Id],
    f1: np.ndarray,
    given: Sequence[Sequence[Leak]],
    originals: OriginalTexts | None,
    show_text: bool,
) -> list[Example]:
    """Return the vectors that give away most; of equals, those with the longer text."""
    order = sorted(range(len(recoveries)), key=lambda row: (-f1[row], -len(recoveries[row].ids)))
    shown = str if show_text else mask
    examples = []
    for row in order[:_EXAMPLES]:
        text, vector_id = recoveries[row].text, ids[row]
        there = set() if originals is None else {_plain(word) for word in originals.texts[row].split()} - {""}
        examples.append(
            Example(
                row=row,
                id=shown(vector_id) if isinstance(vector_id, str) else vector_id,
                token_f1=float(f1[row]),
                cosine=recoveries[row].cosine,
                original=None if originals is None else shown(originals.written[row]),
                recovered=shown(text),
                same=[] if originals is None else [_plain(word) in there for word in text.split()],
                leaks=list(dict.fromkeys(leak.kind for leak in given[row])),
            )
        )
    return examples


def mask(text: str) -> str:
    """Put a dot for every letter and digit: a text's shape without what it says."""
    return _LETTER.sub("•", text)


def _plain(word: str) -> str:
    return "".join(_LETTER.findall(word)).lower()
