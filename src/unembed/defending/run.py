"""Measures defences: stores, collections and attackers in, results out. Knows neither files of vectors nor pages."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from unembed._version import __version__
from unembed.auditing.findings import OriginalTexts
from unembed.defences import Chain, parse_chain, refuse_useless
from unembed.defending.attackers import Attackers, Attempt, Case
from unembed.defending.canaries import Canary, make_canaries
from unembed.defending.recommend import recommend
from unembed.defending.result import AttackResult, DefenceReport, Example, Leakage, SearchResult, Setting
from unembed.defending.strengths import in_turn
from unembed.defending.utility import JudgedVectors, Searches, search_judged, search_neighbours
from unembed.evaluation import Bootstrap
from unembed.evaluation.figures import to_figures
from unembed.files import write_json
from unembed.measures import BY_NAME, Forms, compare
from unembed.progress import OnProgress

MEASURED = tuple(BY_NAME[name] for name in ("token_f1", "exact_match", "readable", "rouge_l"))
"""What of a text came back, in the order of the report."""
_EXAMPLES = 10


@dataclass(frozen=True)
class TextStore:
    """Vectors that are defended together; the texts of the first ones are known, and are attacked."""

    name: str
    vectors: np.ndarray
    """(n, d)."""
    texts: list[str]
    """(m,) of the first m vectors, in random order."""
    inserted: int = 0
    """How many of the first vectors are none of the store's own."""


@dataclass(frozen=True)
class DefendSettings:
    """How thoroughly defences are measured."""

    canary_pairs: int = 2
    """Pairs of secret sentences that are put into each store."""
    queries: int = 500
    """Vectors whose neighbours are looked for, where there are no judged queries."""
    seed: int = 0
    resamples: int = 1000
    show_text: bool = False
    guided_at: tuple[str, ...] | None = None
    """Chains that the guided attacker tries, which is slow, besides undefended vectors; None for all."""


def measure_defences(
    stores: Sequence[TextStore],
    collections: Sequence[JudgedVectors],
    chains: dict[str, list[str]],
    attackers: Attackers,
    settings: DefendSettings,
    *,
    unfinished: Path,
    assumptions: Sequence[str] = (),
    command: str = "",
    on_progress: OnProgress = lambda label, more, total: None,
    on_setting: Callable[[Setting], None] = lambda setting: None,
) -> DefenceReport:
    """Measure what each chain hides and what it costs.

    Args:
        stores: where texts are attacked.
        collections: where judged queries are searched. Without any, the neighbours of stored vectors are compared.
        chains: by defence, the strengths to measure.
        attackers: who attack, and with what.
        settings: how thoroughly.
        unfinished: a folder for finished settings. The same call goes on there; remove it when the report is written.
        assumptions: what the report must say besides.
        command: what was typed, for the report.
        on_progress: called with what is being done.
        on_setting: called with each finished setting.
    """
    measuring = _Measuring(stores, collections, attackers, settings, on_progress)
    finished = _Finished(unfinished, measuring.key)
    undefended = finished.get("", lambda: measuring.setting("", "undefended"))
    on_setting(undefended)
    results = {}
    for family, text in in_turn(chains):
        results[text] = finished.get(text, partial(measuring.setting, text, family))
        on_setting(results[text])
    settled = [results[text] for strengths in chains.values() for text in strengths]
    return DefenceReport(
        unembed_version=__version__,
        made=datetime.now(UTC).isoformat(timespec="minutes"),
        encoder=attackers.inverter.info.encoder.name,
        inverter=attackers.inverter.name or "",
        stores={store.name: len(store.vectors) for store in stores},
        collections={each.collection: each.change.n for each in undefended.searches},
        own_texts=len(attackers.own.vectors),
        seed=settings.seed,
        undefended=undefended,
        settings=settled,
        recommendation=recommend(undefended, settled),
        assumptions=list(assumptions),
        command=command,
        shows_text=settings.show_text,
    )


class _Measuring:
    """Everything that stays the same from setting to setting."""

    def __init__(
        self,
        stores: Sequence[TextStore],
        collections: Sequence[JudgedVectors],
        attackers: Attackers,
        settings: DefendSettings,
        on_progress: OnProgress,
    ) -> None:
        self._stores, self._collections = stores, collections
        self._attackers, self._settings = attackers, settings
        self._bootstrap = Bootstrap(settings.resamples, settings.seed)
        self._on_progress = on_progress
        self._plain: dict[str, Searches] = {}
        self._size = 0

    @property
    def key(self) -> dict[str, Any]:
        """What decides the results."""
        attackers = self._attackers
        return {
            "stores": [[store.name, len(store.texts), float(np.abs(store.vectors).sum())] for store in self._stores],
            "collections": [[each.name, float(np.abs(each.documents).sum())] for each in self._collections],
            "inverter": attackers.inverter.info.model_dump(mode="json", include={"encoder", "metrics"}),
            "attackers": [attackers.kinds, attackers.guided, attackers.calls, attackers.seed],
            "own": [len(attackers.own.ids), float(np.abs(attackers.own.vectors).sum())],
            "version": __version__,
            "encoder": attackers.encoder is not None,
            "settings": asdict(self._settings),
        }

    def setting(self, text: str, family: str) -> Setting:
        """Measure one chain."""
        begun = time.perf_counter()
        leakages = [self._leakage(store, text) for store in self._stores]
        searches = list(self._searches(text))
        return Setting(text, family, self._size, leakages, searches, time.perf_counter() - begun)

    def _is_guided(self, text: str) -> bool:
        return not text or self._settings.guided_at is None or text in self._settings.guided_at

    def _fit(self, text: str, vectors: np.ndarray) -> Chain:
        if not text:
            return Chain((), vectors.shape[1])
        return Chain.fit(parse_chain(text), vectors, seed=self._settings.seed)

    def _leakage(self, store: TextStore, text: str) -> Leakage:
        attackers = self._attackers
        canaries = make_canaries(self._settings.canary_pairs, f"{store.name} {text}", self._settings.seed)
        if attackers.encoder is None:
            canaries = []
        inserted = [store.vectors[:0]]
        if canaries and attackers.encoder is not None:
            inserted.append(attackers.encoder.encode([canary.text for canary in canaries]))
        vectors = np.concatenate([*inserted, store.vectors])
        chain = self._fit(text, vectors)
        self._size = chain.bytes_per_vector
        stored = chain.apply(vectors)
        refuse_useless(chain, vectors, stored)
        attacked = len(canaries) + len(store.texts)
        rows = np.arange(attacked)
        case = Case(chain, stored[:attacked], vectors[:attacked], stored, rows, (stored[attacked:], vectors[attacked:]))
        references = OriginalTexts.of([canary.text for canary in canaries] + store.texts, attackers.inverter)
        results = []
        for attempt in attackers.run(case, guided=self._is_guided(text)):
            self._on_progress(f"{text or 'undefended'}, {store.name}: {attempt.name}", 1, 1)
            results.append(self._judge(attempt, references, canaries))
        return Leakage(store.name, results)

    def _judge(self, attempt: Attempt, references: OriginalTexts, canaries: Sequence[Canary]) -> AttackResult:
        done, first = len(attempt.ids), len(canaries)
        if done <= first:
            problem = attempt.problem or "It tried no vector."
            return AttackResult(attempt.name, attempt.kind, 0, {}, 0, 0, 0, attempt.seconds, problem)
        compared = compare(
            Forms(attempt.ids[first:], attempt.texts[first:]),
            Forms(references.ids[first:done], references.texts[first:done]),
            MEASURED,
        )
        secrets = sum(canary.secret in text for canary, text in zip(canaries, attempt.texts, strict=False))
        exact = sum(ours == theirs for ours, theirs in zip(attempt.ids[:first], references.ids[:first], strict=True))
        shown = range(first, min(done, first + _EXAMPLES)) if self._settings.show_text else range(0)
        return AttackResult(
            attempt.name,
            attempt.kind,
            done - first,
            to_figures(compared, self._bootstrap),
            first,
            exact,
            secrets,
            attempt.seconds,
            examples=[Example(references.texts[row], attempt.texts[row]) for row in shown],
        )

    def _searches(self, text: str) -> Iterator[SearchResult]:
        for name, run in self._search_runs():
            self._on_progress(f"{text or 'undefended'}: searching {name}", 1, 1)
            if name not in self._plain:
                self._plain[name] = run("")
            plain, found = self._plain[name], run(text)
            measure = next(iter(found.values))
            yield SearchResult(
                name,
                measure,
                {each: self._bootstrap.mean(values) for each, values in found.values.items()},
                self._bootstrap.mean(found.values[measure] - plain.values[measure]),
                found.milliseconds,
                found.forms,
            )

    def _search_runs(self) -> Iterator[tuple[str, Callable[[str], Searches]]]:
        for judged in self._collections:
            yield judged.name, partial(self._search_judged, judged)
        if not self._collections:
            for store in self._stores:
                yield store.name, partial(self._search_neighbours, store)

    def _search_judged(self, judged: JudgedVectors, text: str) -> Searches:
        return search_judged(judged, self._fit(text, judged.documents))

    def _search_neighbours(self, store: TextStore, text: str) -> Searches:
        random = np.random.default_rng(self._settings.seed)
        own = store.inserted + random.permutation(len(store.vectors) - store.inserted)
        return search_neighbours(store.vectors, own[: self._settings.queries], self._fit(text, store.vectors))


class _Finished:
    """Keeps finished settings in a folder until all are done. They may hold recovered texts."""

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        self._folder = folder
        self._key = json.loads(json.dumps(key))
        try:
            same = json.loads((folder / "key.json").read_text(encoding="utf-8")) == self._key
        except (OSError, ValueError):
            same = False
        if not same:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, mode=0o700)
            write_json(folder / "key.json", self._key)

    def get(self, text: str, make: Callable[[], Setting]) -> Setting:
        """Return a setting as it was kept, or measure and keep it."""
        path = self._folder / f"{blake2b(text.encode(), digest_size=8).hexdigest()}.json"
        adapter = TypeAdapter(Setting)
        try:
            return adapter.validate_json(path.read_bytes())
        except (OSError, ValidationError):
            setting = make()
            write_json(path, asdict(setting), private=True)
            return setting
