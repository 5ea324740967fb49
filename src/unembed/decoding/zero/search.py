"""The search for one vector: first single words, then texts, changed word by word. Knows nothing of canvases."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unembed.config import ZeroConfig
from unembed.decoding.zero.changes import Change, Edit, combine, propose
from unembed.decoding.zero.language import LanguageModel, Reader
from unembed.decoding.zero.mapping import OnlineMap, SameEncoder
from unembed.decoding.zero.words import WordBank, Words, write
from unembed.measures.vectors import normalise

Embed = Callable[[Sequence[str]], np.ndarray]
"""Returns the vectors (n, d) of texts."""

# Rounds in which single words are asked, and how many each time.
_WORD_ROUNDS, _WORDS_ASKED = 4, 24
# How texts begin: the nearest word is asked after each, to find out whether the text asks, tells or wants something.
_QUESTIONS = (
    *("what is", "what are", "what does", "how many", "how much", "how to", "how long"),
    *("why did", "when was", "who is", "where is", "can you"),
)
_STATEMENTS = ("the", "we", "it was", "you can")
# Keywords that the language model is told.
_KEYWORDS = 12
# Texts that the local encoder ranks in a round, and how many of them are asked.
_RANKED, _ASKED = 96, 16
# Of each text, the changes that helped most are combined with each other: how many, and how many texts may come of it.
_COMBINED, _COMBINATIONS = 8, 12
# A gain smaller than this is none.
_SMALLEST_GAIN = 1e-4
_EXACT = 0.9999
# A readout is never sure that a word is absent, nor that it is there: nats.
_PRIOR_RANGE = (-4.0, 6.0)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A text that was asked."""

    words: Words
    cosine: float
    vector: np.ndarray
    local: np.ndarray
    nats: float
    """Log-probability by the language model."""
    origin: Words = ()
    """The text that it was changed from."""
    edit: Edit | None = None
    """The change, where it is one that can be combined with others."""

    @property
    def text(self) -> str:
        """The words as a text."""
        return write(self.words)


class ZeroSearch:
    """Looks for the text of one vector."""

    def __init__(
        self,
        target: np.ndarray,
        config: ZeroConfig,
        *,
        bank: WordBank,
        language: LanguageModel,
        local: Embed,
        theirs: Embed,
        pairs: tuple[np.ndarray, np.ndarray] | None,
        prior: np.ndarray | None = None,
        fits: Callable[[str], bool] = lambda text: True,
    ) -> None:
        """Prepare a search.

        Args:
            target: (k,) the vector.
            config: how long to search.
            bank: the words that texts are made of.
            language: says which words are likely where.
            local: embeds texts for ranking.
            theirs: asks the encoder under attack.
            pairs: local and their vectors of some texts, to begin the map with; None if both encoders are the same.
            prior: (words,) how much likelier than usual the vector makes each word, in nats; None if nothing says so.
            fits: whether a text is short enough.
        """
        self._target = normalise(target)
        self._config = config
        self._bank, self._language = bank, language
        self._embed, self._ask_them = local, theirs
        self._map = SameEncoder() if pairs is None else OnlineMap(*pairs)
        self._prior = 0.0 if prior is None else config.prior * np.clip(prior, *_PRIOR_RANGE)
        self._fits = fits
        self._known: dict[Words, Hypothesis] = {}
        self._likely: dict[Words, np.ndarray] = {}
        self._asked = 0 if pairs is None else len(pairs[0])
        self._ranked = 0

    @property
    def texts_embedded(self) -> int:
        """Texts that the encoder under attack has embedded; where it is the local one, also those that it ranked."""
        return self._asked + (self._ranked if isinstance(self._map, SameEncoder) else 0)

    @property
    def best(self) -> Hypothesis:
        """The best text so far."""
        return max(self._known.values(), key=self.score)

    def score(self, hypothesis: Hypothesis) -> float:
        """Return what texts are compared by: nearness, and how natural they are for their length."""
        return hypothesis.cosine + self._fluency(hypothesis.nats, len(hypothesis.words))

    def _fluency(self, nats: float, words: int) -> float:
        return self._config.fluency * min(0.0, nats + self._config.free_nats * words)

    def rounds(self) -> Iterator[Hypothesis]:
        """Search; yield the best text after every round."""
        reader = self._language.about([], self._bank.words)
        for _ in range(_WORD_ROUNDS):
            self._ask_words(reader)
            yield self.best
        question = self._ask_forms(reader)
        yield self.best
        reader = self._language.about(self._keywords(), self._bank.words, question=question)
        self._score_again(reader)
        without_gain, best = 0, self.score(self.best)
        limit = self._config.round_limit
        while self._asked < self._config.call_limit and without_gain < self._config.round_patience and limit > 0:
            if self.best.cosine > _EXACT or not self._change(reader):
                return
            yield self.best
            limit -= 1
            score = self.score(self.best)
            without_gain = 0 if score > best + _SMALLEST_GAIN else without_gain + 1
            best = max(best, score)

    def _word_scores(self) -> np.ndarray:
        """Return how near each single word should be, and how likely the prior makes it."""
        scores: np.ndarray = self._map.predict(self._bank.vectors) @ self._target + self._prior
        return scores

    def _keywords(self) -> list[str]:
        order = np.argsort(-self._word_scores())
        return [self._bank.words[word] for word in order[:_KEYWORDS]]

    def _ask_words(self, reader: Reader) -> None:
        """Ask the single words that should be nearest."""
        order = (word for word in np.argsort(-self._word_scores()) if (self._bank.words[word],) not in self._known)
        chosen = [word for word, _ in zip(order, range(_WORDS_ASKED), strict=False)]
        self._ask([(self._bank.words[word],) for word in chosen], self._bank.vectors[chosen], reader)

    def _ask_forms(self, reader: Reader) -> bool:
        """Ask for the nearest word at the beginning of some texts; return whether that of a question is the nearest."""
        nearest = max(self._known.values(), key=_cosine)
        forms = {
            (*form.split(), *nearest.words): form in _QUESTIONS
            for form in (*_QUESTIONS, *_STATEMENTS)
            if set(form.split()) <= self._bank.index.keys()
        }
        local = normalise(self._embed([write(words) for words in forms])) if forms else np.empty((0, 0))
        self._ranked += len(local)
        self._ask(list(forms), local, reader)
        best = max((self._known[words] for words in forms if words in self._known), key=_cosine, default=nearest)
        return best.cosine > nearest.cosine and forms[best.words]

    def _score_again(self, reader: Reader) -> None:
        """Let a reader that knows the subject say how natural the known texts are."""
        for known, nats in zip(list(self._known.values()), reader.score(list(self._known)), strict=True):
            self._known[known.words] = replace(known, nats=float(nats))

    def _change(self, reader: Reader) -> bool:
        """Change the best texts, rank the results locally and ask the best of them; return whether there were any."""
        parents = self._parents()
        self._read([parent.words for parent in parents], reader)
        missing = np.stack([self._target - parent.cosine * parent.vector for parent in parents])
        wanted = (self._bank.vectors - self._bank.mean) @ self._map.pull_back(normalise(missing)).T  # (words, parents)
        pool: dict[Words, tuple[Hypothesis, Change]] = {}
        for number, parent in enumerate(parents):
            gains = wanted[:, number] + self._prior
            self._take(pool, parent, self._combine(parent), _COMBINATIONS)
            proposed = propose(parent.words, self._bank, gains, self._likely[parent.words])
            self._take(pool, parent, proposed, _RANKED // len(parents))
        if not pool:
            return False
        origins = [origin for origin, _ in pool.values()]
        changes = [change for _, change in pool.values()]
        local = normalise(self._embed([write(change.words) for change in changes]))
        self._ranked += len(local)
        vectors = self._map.predict_changed(
            local, np.stack([origin.local for origin in origins]), np.stack([origin.vector for origin in origins])
        )
        expected = vectors @ self._target + [
            self._fluency(origin.nats + change.nats, len(change.words))
            for origin, change in zip(origins, changes, strict=True)
        ]
        best = np.argsort(-expected)[:_ASKED]
        count = self._ask([changes[place].words for place in best], local[best], reader)
        for place in best[:count]:
            change = changes[place]
            known = self._known[change.words]
            self._known[change.words] = replace(known, origin=origins[place].words, edit=change.edit)
        return True

    def _combine(self, parent: Hypothesis) -> list[Change]:
        """Return pairs of changes of a text that have each helped, the best first."""
        least = self.score(parent)
        children = [known for known in self._known.values() if known.edit and known.origin == parent.words]
        helpful = sorted((child for child in children if self.score(child) > least), key=self.score, reverse=True)
        edits = [(child.edit, child.nats - parent.nats) for child in helpful[:_COMBINED] if child.edit]
        return combine(parent.words, edits)

    def _parents(self) -> list[Hypothesis]:
        """Return the best texts; of those with the same words, the best."""
        different: dict[tuple[str, ...], Hypothesis] = {}
        for hypothesis in sorted(self._known.values(), key=self.score, reverse=True):
            different.setdefault(tuple(sorted(hypothesis.words)), hypothesis)
            if len(different) == self._config.candidates:
                break
        return list(different.values())

    def _read(self, texts: Sequence[Words], reader: Reader) -> None:
        new = [words for words in texts if words not in self._likely]
        if new:
            self._likely = {words: self._likely[words] for words in texts if words in self._likely}
            self._likely |= dict(zip(new, reader.likely(new), strict=True))

    def _take(
        self,
        pool: dict[Words, tuple[Hypothesis, Change]],
        parent: Hypothesis,
        changes: Sequence[Change],
        count: int,
    ) -> None:
        """Add the first new changes of a text to the pool."""
        for change in changes:
            if not count:
                return
            new = change.words not in pool and change.words not in self._known
            if new and self._fits(write(change.words)):
                pool[change.words] = (parent, change)
                count -= 1

    def _ask(self, texts: Sequence[Words], local: np.ndarray, reader: Reader) -> int:
        """Ask the encoder for texts, as many as it may still be asked, and learn from its answers; return how many."""
        count = max(0, self._config.call_limit - self._asked)
        texts, local = texts[:count], local[:count]
        if not texts:
            return 0
        vectors = normalise(self._ask_them([write(words) for words in texts]))
        self._asked += len(texts)
        self._map.learn(local, vectors)
        scored = zip(texts, vectors @ self._target, vectors, local, reader.score(texts), strict=True)
        for words, cosine, vector, ours, nats in scored:
            self._known[words] = Hypothesis(words, float(cosine), vector, ours, float(nats))
        return len(texts)


def _cosine(hypothesis: Hypothesis) -> float:
    return hypothesis.cosine
