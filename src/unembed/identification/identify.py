"""Which known encoder made some vectors: the evidence about each, and a verdict. Reads no databases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Literal, get_args

import numpy as np

from unembed.connectors import StorageInfo
from unembed.encoders import CATALOGUE
from unembed.encoders.catalogue import DEFAULT
from unembed.errors import EncoderError, UnembedError, VectorError
from unembed.identification.agreement import Agreement, compare
from unembed.identification.fit import Fit, best_fit
from unembed.identification.known import (
    ELSEWHERE,
    PROMPTS,
    KnownVectors,
    Load,
    dimension_of,
    known_vectors,
    short_name,
)
from unembed.measures.vectors import find_faults
from unembed.store.fingerprint import describe_scale

Verdict = Literal["identified", "likely", "undecided", "unknown"]
Standing = Literal["texts agree", "texts agree in part", "named", "fits", "possible", "dimension only", "excluded"]
_STANDINGS: tuple[Standing, ...] = get_args(Standing)
_TEXTS = 32


@dataclass(frozen=True)
class Candidate:
    """An encoder that gives vectors of this dimension, and what speaks for and against it."""

    name: str
    named: bool = False
    """Whether the database names it."""
    fit: Fit | None = None
    """How well its fingerprint fits; None where there is none."""
    agreement: Agreement | None = None
    """How well it agrees with the stored texts; None where it was not asked."""
    elsewhere: bool = False
    """Whether only its dimension is known here."""
    notes: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing:
        """What the evidence amounts to, the strongest first: texts, the database's word, the fingerprint."""
        if self.agreement is not None:
            partly: Standing = "texts agree in part" if self.agreement.in_part else "excluded"
            return "texts agree" if self.agreement.whole else partly
        if self.fit is not None and self.fit.doubts:
            return "excluded"
        if self.named:
            return "named"
        if self.fit is not None:
            return "fits"
        return "dimension only" if self.elsewhere else "possible"

    @property
    def prompt(self) -> str | None:
        """What was put before each text, as far as that is known."""
        if self.agreement is not None:
            return self.agreement.prompt
        return None if self.fit is None else self.fit.prompt

    @property
    def evidence(self) -> list[str]:
        """The evidence as sentences, the strongest first."""
        sentences = [] if self.agreement is None else [_say_agreement(self.agreement)]
        if self.named:
            sentences.append("The database names it.")
        if self.fit is not None:
            sentences.append(self.fit.explain())
        if self.elsewhere:
            sentences.append("Only its dimension is known here.")
        elif self.fit is None and self.agreement is None:
            sentences.append("Its dimension fits; there is no fingerprint of it.")
        return [*sentences, *self.notes]


@dataclass(frozen=True)
class Identification:
    """Which encoder made some vectors, and how that is known."""

    verdict: Verdict
    name: str | None
    """The encoder; None unless the verdict is ``identified`` or ``likely``."""
    prompt: str | None
    """What was put before each text, where that is known."""
    because: str
    """The reason, as sentences."""
    dim: int
    vectors: int
    """How many were looked at."""
    texts: int
    """How many stored texts were embedded again by each encoder that was asked."""
    advice: str
    """What to do next."""
    candidates: list[Candidate] = field(default_factory=list)
    """The likeliest first."""


def identify(
    vectors: np.ndarray,
    texts: Sequence[str | None] | None = None,
    *,
    storage: StorageInfo | None = None,
    encoders: Mapping[str, Load] | None = None,
    known: Sequence[KnownVectors] | None = None,
    on_ask: Callable[[str], None] = lambda name: None,
) -> Identification:
    """Find out which encoder made vectors.

    Args:
        vectors: (n, d), as they are stored; some dozens suffice.
        texts: what each was made from, where that is known. Up to 32 of them are embedded again.
        storage: what the database says about its encoder.
        encoders: those that may be asked to embed texts, and how each is loaded. ``installed_encoders`` returns the
            known ones on this machine.
        known: fingerprints to compare with; by default those of the package.
        on_ask: called with the name of an encoder before it is loaded.

    Raises:
        VectorError: there are no vectors, or no encoder can have made them.
        EncoderError: an encoder to ask gives vectors of another dimension.
    """
    vectors = _checked(vectors)
    storage = storage or StorageInfo("vectors")
    candidates = _candidates(vectors, storage, encoders or {}, known_vectors() if known is None else known)
    chosen = _choose_texts(texts or [])
    if chosen and encoders:
        rows, compared = list(chosen), list(chosen.values())
        candidates = _ask(candidates, compared, vectors[rows], encoders, on_ask)
    candidates = sorted(candidates, key=_rank)
    return _judge(vectors, len(chosen), storage, candidates)


def _checked(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.size:
        raise VectorError("There are no vectors to look at.", "Give an array of rows (n, d).")
    for fault, bad in find_faults(vectors).items():
        if bad.any():
            raise VectorError(f"{int(bad.sum()):,} of the vectors are {fault}.", "Leave them out.")
    return vectors


def _candidates(
    vectors: np.ndarray, storage: StorageInfo, encoders: Mapping[str, Load], known: Sequence[KnownVectors]
) -> list[Candidate]:
    """Return every encoder of the right dimension, with what is known without asking it."""
    dim = vectors.shape[1]
    variants: dict[str, list[KnownVectors]] = {}
    for entry in known:
        if entry.dim == dim:
            variants.setdefault(entry.encoder, []).append(entry)
    names = [*variants, *encoders, *(name for name, encoder in CATALOGUE.items() if encoder.dim == dim)]
    found = {name: Candidate(name, fit=best_fit(variants.get(name, []), vectors)) for name in dict.fromkeys(names)}
    found |= {name: Candidate(name, elsewhere=True) for name in ELSEWHERE.get(dim, ())}
    if storage.encoder is not None and dimension_of(storage.encoder) in (dim, None):
        same = [name for name in found if short_name(name) == short_name(storage.encoder)]
        name = same[0] if same else storage.encoder
        found[name] = replace(found.get(name, Candidate(name, elsewhere=True)), named=True)
    return list(found.values())


def _choose_texts(texts: Sequence[str | None]) -> dict[int, str]:
    """Return up to 32 different texts by their rows, taken evenly from all of them."""
    rows = {text: row for row, text in reversed(list(enumerate(texts))) if text and text.strip()}
    different = sorted((row, text) for text, row in rows.items())
    steps = np.linspace(0, len(different) - 1, min(_TEXTS, len(different))).round().astype(int)
    return dict(different[step] for step in steps.tolist())


def _ask(
    candidates: list[Candidate],
    texts: list[str],
    vectors: np.ndarray,
    encoders: Mapping[str, Load],
    on_ask: Callable[[str], None],
) -> list[Candidate]:
    """Let encoders embed the texts, the likeliest first, until one gives the stored vectors."""
    asked: list[Candidate] = []
    settled = False
    for candidate in sorted(candidates, key=_rank):
        if candidate.name not in encoders:
            missing = candidate.name in CATALOGUE and not settled
            note = "It was not asked about the texts, because it is not installed."
            asked.append(replace(candidate, notes=(note,)) if missing else candidate)
        elif settled:
            asked.append(replace(candidate, notes=("It was not asked: another encoder gives these vectors.",)))
        else:
            on_ask(candidate.name)
            asked.append(_ask_one(candidate, texts, vectors, encoders[candidate.name]))
            settled = asked[-1].standing == "texts agree"
    return asked


def _ask_one(candidate: Candidate, texts: list[str], vectors: np.ndarray, load: Load) -> Candidate:
    try:
        encoder = load()
    except UnembedError as error:
        return replace(candidate, notes=(f"It cannot be asked about the texts. {error.problem}",))
    if encoder.description.dim != vectors.shape[1]:
        raise EncoderError(
            f"{candidate.name} gives {encoder.description.dim} numbers; the vectors have {vectors.shape[1]}.",
            "Leave it out.",
        )
    return replace(candidate, agreement=compare(encoder, texts, vectors, PROMPTS.get(candidate.name, ("",))))


def _rank(candidate: Candidate) -> tuple[int, float, float]:
    cosine = 0.0 if candidate.agreement is None else candidate.agreement.median
    distance = np.inf if candidate.fit is None else candidate.fit.distance
    return _STANDINGS.index(candidate.standing), -cosine, distance


def _judge(vectors: np.ndarray, texts: int, storage: StorageInfo, candidates: list[Candidate]) -> Identification:
    verdict, because = _verdict(candidates, vectors.shape[1])
    first = candidates[0] if verdict in ("identified", "likely") else None
    sentences = [because]
    if storage.encoder is not None and not any(
        candidate.named and candidate.standing != "excluded" for candidate in candidates
    ):
        sentences.append(f"The database names '{storage.encoder}', which contradicts the vectors.")
    likeness = first.fit.known.fingerprint if first is not None and first.fit is not None else None
    scale = describe_scale(vectors, likeness.norm if likeness else 1.0, likeness.norm_spread if likeness else 0.0)
    if scale:
        sentences.append(scale)
    asked = any(candidate.agreement is not None for candidate in candidates)
    return Identification(
        verdict=verdict,
        name=None if first is None else first.name,
        prompt=None if first is None else first.prompt,
        because=" ".join(sentences),
        dim=vectors.shape[1],
        vectors=len(vectors),
        texts=texts if asked else 0,
        advice=_advise(first, undecided=verdict == "undecided", has_texts=texts > 0),
        candidates=candidates,
    )


def _verdict(candidates: list[Candidate], dim: int) -> tuple[Verdict, str]:
    by_standing = {standing: [one for one in candidates if one.standing == standing] for standing in _STANDINGS}
    by_texts: dict[Standing, Verdict] = {"texts agree": "identified", "texts agree in part": "likely"}
    for standing, verdict in by_texts.items():
        if found := by_standing[standing]:
            return verdict, f"{found[0].name}: {found[0].evidence[0]}"
    fitting = by_standing["fits"]
    if found := by_standing["named"]:
        others = f" The fingerprint of {fitting[0].name} fits, too." if fitting else ""
        return "likely", f"The database names {found[0].name}, and nothing contradicts it.{others}"
    if len(fitting) == 1:
        return "likely", f"Of all fingerprints, only that of {fitting[0].name} fits. {_NO_PROOF}"
    if fitting:
        return "undecided", f"Several encoders fit: {', '.join(one.name for one in fitting)}."
    if not candidates:
        return "unknown", f"No known encoder gives {dim} numbers."
    if compared := [one for one in candidates if one.fit is not None or one.agreement is not None]:
        return "unknown", f"None of the {len(compared)} encoders of {dim} numbers that can be compared with fits."
    return "unknown", f"Of the encoders that give {dim} numbers, none can be compared with."


def _advise(found: Candidate | None, *, undecided: bool, has_texts: bool) -> str:
    """Say what to do with vectors of this encoder, or how to find out more."""
    if found is None and undecided:
        return (
            "Install the encoders that fit, and run this again: unembed encoders says how."
            if has_texts
            else "The texts of a few of the vectors would decide it."
        )
    if found is None:
        return "If you know the encoder, unembed adapt or unembed train makes an inverter for it."
    if found.name == DEFAULT:
        return "The default inverter reads these vectors: unembed invert, unembed words and unembed audit use it."
    if found.name not in CATALOGUE:
        return (
            f"Make an inverter for {found.name}: unembed adapt with --pairs-from if texts are stored with the vectors, "
            "otherwise unembed train."
        )
    return f"Make an inverter for it: {adapt_command(found.name, found.prompt)}"


def adapt_command(name: str, prompt: str | None = None) -> str:
    """Return what to type for an inverter that reads the vectors of a known encoder."""
    usual = PROMPTS.get(name, ("",))[0]
    output = f"work/{short_name(name)}"
    if prompt is None or prompt == usual:
        return f"unembed adapt {name} --output {output}"
    return f"unembed adapt {name} --prompt {quote(prompt)} --output {output}"


_NO_PROOF = "Encoders without a fingerprint here cannot be excluded."


def _say_agreement(agreement: Agreement) -> str:
    """Say how well an encoder agrees with the stored texts."""
    prompt = f" with the prompt '{agreement.prompt}'" if agreement.prompt else ""
    if agreement.whole:
        return (
            f"It gives the stored vectors again for {agreement.same} of {agreement.texts} stored texts{prompt} (median "
            f"cosine {agreement.median:.3f})."
        )
    if agreement.in_part:
        return (
            f"Its vectors of {agreement.texts} stored texts{prompt} are similar to the stored ones, but not the same "
            f"(median cosine {agreement.median:.2f}, by chance {agreement.by_chance:.2f}). Texts may have been changed "
            "or cut before they were embedded, vectors changed after, or a relative of this encoder made them."
        )
    return f"It gives other vectors for {agreement.texts} stored texts (median cosine {agreement.median:.2f})."
