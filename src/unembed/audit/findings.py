"""From recoveries to figures, groups, leaks and examples of one attacker. Knows the truth where it is known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.audit.estimate import Estimate
from unembed.audit.leaks import KINDS, Leak, find_leaks, gives_back
from unembed.audit.recover import Recovery
from unembed.audit.result import READABLE, Example, Group, LeakCount, Mode, ModeName
from unembed.connectors.source import Id
from unembed.evaluation import Bootstrap, Figure
from unembed.evaluation.bleu import bleu_counts, bleu_of_counts
from unembed.inverter import Inverter
from unembed.measures import exact_match, rouge_l, token_accuracy, token_f1
from unembed.text import well_formed

_STEPS = 10
_EXAMPLES = 8
# Tokens.
_LENGTHS = (8, 16, 24, 32, 64)
_LETTER = re.compile(r"\w")


@dataclass(frozen=True)
class References:
    """Texts that are known: as they are, and in the normal form of the encoder's tokenizer, whole."""

    originals: list[str]
    texts: list[str]
    ids: list[list[int]]

    @classmethod
    def of(cls, originals: Sequence[str], inverter: Inverter) -> "References":
        """Tokenize texts; what the tokenizer does not know is left out."""
        special = set(inverter.info.special_ids)
        encodings = inverter.tokenizer.encode_batch([well_formed(text) for text in originals], add_special_tokens=False)
        ids = [[token for token in encoding.ids if token not in special] for encoding in encodings]
        return cls(list(originals), inverter.tokenizer.decode_batch(ids), ids)


def measure(recoveries: Sequence[Recovery], references: References) -> dict[str, np.ndarray]:
    """Return each measure of each recovery against its reference: the first ones, as many as there are."""
    pairs = list(zip(recoveries, references.ids, references.texts, strict=False))
    f1 = np.array([token_f1(one.ids, ids) for one, ids, _ in pairs])
    return {
        "readable": (f1 >= READABLE).astype(np.float64),
        "token_f1": f1,
        "token_accuracy": np.array([token_accuracy(one.ids, ids) for one, ids, _ in pairs]),
        "exact_match": np.array([exact_match(one.ids, ids) for one, ids, _ in pairs]),
        "rouge_l": np.array([rouge_l(one.text, text) for one, _, text in pairs]),
        "cosine": np.array([np.nan if one.cosine is None else one.cosine for one in recoveries]),
    }


def describe_mode(
    name: ModeName,
    recoveries: Sequence[Recovery],
    ids: Sequence[Id],
    bootstrap: Bootstrap,
    *,
    references: References | None,
    estimated: Estimate | None,
    show_text: bool,
) -> Mode:
    """Put together what one attacker recovered.

    Args:
        name: the attacker.
        recoveries: of the first vectors of the sample.
        ids: of the sample.
        bootstrap: draws the intervals.
        references: the texts, where they are known.
        estimated: the measures, where they are not.
        show_text: whether examples may be read.
    """
    if references is not None:
        per_text = measure(recoveries, references)
        figures = _figures(per_text, bootstrap)
        counts = bleu_counts([one.text for one in recoveries], references.texts[: len(recoveries)])
        figures["bleu"] = bootstrap.of_sums(counts, bleu_of_counts)
        lengths = [len(tokens) for tokens in references.ids[: len(recoveries)]]
        held = [find_leaks(text) for text in references.originals[: len(recoveries)]]
        given = [gives_back(one.text, leaks) for one, leaks in zip(recoveries, held, strict=True)]
    else:
        assert estimated is not None
        per_text = estimated.per_text
        cosines = np.array([np.nan if one.cosine is None else one.cosine for one in recoveries])
        figures = estimated.figures | _figures({"cosine": cosines}, bootstrap)
        lengths = [len(one.ids) for one in recoveries]
        held = None
        given = [find_leaks(one.text) for one in recoveries]
    f1 = per_text["token_f1"]
    return Mode(
        name=name,
        n=len(recoveries),
        known=references is not None,
        figures=figures,
        distribution=np.histogram(f1, bins=_STEPS, range=(0.0, 1.0))[0].tolist(),
        by_length=_by_length(f1, lengths, bootstrap),
        leaks=_count_leaks(held, given, bootstrap),
        examples=_examples(recoveries, ids, f1, given, references, show_text),
        seconds_per_vector=float(np.mean([one.seconds for one in recoveries])),
        encoder_calls=float(np.mean([one.encoder_calls for one in recoveries])),
    )


def _figures(per_text: dict[str, np.ndarray], bootstrap: Bootstrap) -> dict[str, Figure]:
    return {name: bootstrap.mean(values) for name, values in per_text.items() if not np.isnan(values).any()}


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
    held: Sequence[Sequence[Leak]] | None, given: Sequence[Sequence[Leak]], bootstrap: Bootstrap
) -> list[LeakCount]:
    counts = []
    for kind in KINDS:
        holding = None if held is None else sum(any(leak.kind == kind for leak in leaks) for leaks in held)
        gives = np.array([any(leak.kind == kind for leak in leaks) for leaks in given], dtype=np.float64)
        counts.append(LeakCount(kind, holding, int(gives.sum()), bootstrap.mean(gives)))
    return counts


def _examples(
    recoveries: Sequence[Recovery],
    ids: Sequence[Id],
    f1: np.ndarray,
    given: Sequence[Sequence[Leak]],
    references: References | None,
    show_text: bool,
) -> list[Example]:
    """Return the vectors that give away most; of equals, those with the longer text."""
    order = sorted(range(len(recoveries)), key=lambda row: (-f1[row], -len(recoveries[row].ids)))
    shown = str if show_text else mask
    found = []
    for row in order[:_EXAMPLES]:
        one = recoveries[row]
        there = None if references is None else {_plain(word) for word in references.texts[row].split()}
        found.append(
            Example(
                id=ids[row],
                token_f1=float(f1[row]),
                cosine=one.cosine,
                original=None if references is None else shown(references.originals[row]),
                recovered=shown(one.text),
                same=[] if there is None else [_plain(word) in there - {""} for word in one.text.split()],
                leaks=list(dict.fromkeys(leak.kind for leak in given[row])),
            )
        )
    return found


def mask(text: str) -> str:
    """Put a dot for every letter and digit: a text's shape without what it says."""
    return _LETTER.sub("•", text)


def _plain(word: str) -> str:
    return "".join(_LETTER.findall(word)).lower()
