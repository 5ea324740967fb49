"""Triage: the words that each vector gives away, by the readout alone. No order, no passes, no text.

Made for whole vector databases: a few matrix products for a block of vectors, over the words that are worth naming. A
word ranks by its probability p relative to its base rate b: p / sqrt(b) decides, so that "invoice" comes before "the".
Both kinds of readout give that as an affine map of a few hundred features.

The words are those of the inverter's training texts, where it knows them. Otherwise they are the pieces of its
tokenizer that begin a word; some of these are parts of words.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.auditing.language import common_words
from unembed.canvas.marks import SubwordMarks
from unembed.errors import ConfigError
from unembed.inverter import Inverter, check_vectors
from unembed.measures import function_words, is_grammar, stem
from unembed.model.precision import quickest
from unembed.scripts import UNSPACED, WORD, shortest_word

VOCABULARY = 5120
"""Words that are looked for by default, for each language of the inverter: the most frequent ones, without function
words."""
_BLOCK = 2048


@dataclass(frozen=True)
class Words:
    """The words of some vectors, best first."""

    indices: np.ndarray
    """(n, top) indices into :attr:`WordReader.words`."""
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.indices)

    def names_of(self, row: int) -> list[str]:
        """Return the words of a vector."""
        return [self.names[index] for index in self.indices[row].tolist()]

    def holding(self, wanted: Iterable[int]) -> np.ndarray:
        """Return which vectors have at least one of some words, given by their indices."""
        return np.asarray(np.isin(self.indices, list(wanted)).any(axis=1))

    def counts(self) -> np.ndarray:
        """Return for every word of the vocabulary how many of the vectors have it."""
        return np.bincount(self.indices.ravel(), minlength=len(self.names))


class WordReader:
    """Names the words that stand out in vectors."""

    def __init__(
        self, inverter: Inverter, *, top: int = 12, vocabulary: int | None = None, find: Sequence[str] = ()
    ) -> None:
        """Choose the words.

        Args:
            inverter: one that has a readout.
            top: words per vector.
            vocabulary: how many words are looked for; the time is in proportion to it. By default ``VOCABULARY`` for
                each language of the inverter.
            find: words that are looked for however rare they are, with all words of the same stem.
        """
        readout = inverter.model.readout
        self._inverter = inverter
        base = readout.base.detach()
        marks = SubwordMarks.of(inverter.tokenizer)
        if vocabulary is None:
            vocabulary = VOCABULARY * max(1, len(inverter.info.languages))
        names = _known_words(inverter, marks) if inverter.known_words else _pieces_by_name(inverter, marks)
        chosen = dict(sorted(islice(names.items(), vocabulary), key=lambda entry: entry[1]))
        forms = {word: _forms(word, names, inverter, marks) for word in find}
        chosen |= {form: pieces for word in find for form, pieces in forms[word].items()}
        self.words = list(chosen)
        """All words that can be named."""
        indices = {word: index for index, word in enumerate(self.words)}
        self.wanted = {word: sorted({indices[form] for form in forms[word]}) for word in find}
        """The words to find, and the indices of their forms in :attr:`words`."""
        self._top = min(top, len(self.words))
        tokens = torch.tensor([piece for pieces in chosen.values() for piece in pieces], device=base.device).long()
        weight, bias = readout.word_scores(tokens)
        # A word of several pieces stands out as they do on average, each as much as it is rare.
        sizes = [len(pieces) for pieces in chosen.values()]
        rarity = [part / part.sum() for part in torch.split(-base[tokens].clamp(max=-1e-6), sizes)]
        shares = torch.cat(rarity) if rarity else base[:0]
        rows = torch.repeat_interleave(torch.tensor(sizes, device=base.device, dtype=torch.long))
        empty = torch.zeros(len(sizes), weight.shape[1] + 1, device=base.device)
        joined = empty.index_add(0, rows, shares[:, None] * torch.cat([weight, bias[:, None]], dim=1))
        self._weight: Tensor = joined[:, :-1].contiguous()
        self._bias: Tensor = joined[:, -1].contiguous()

    @torch.no_grad()
    def read(self, vectors: np.ndarray) -> Words:
        """Name the words of vectors (n, d), best first."""
        checked = torch.from_numpy(check_vectors(vectors, self._inverter.info)).to(self._inverter.device)
        best = []
        # Half the time where the device has instructions for it, and of a hundred words ninety-nine are the same.
        with quickest(checked.device):
            for block in torch.split(checked, _BLOCK):
                features = self._inverter.model.readout.features(self._inverter.map_vectors(block))
                best.append(F.linear(features, self._weight, self._bias).topk(self._top).indices)
        indices = torch.cat(best) if best else torch.empty(0, self._top, dtype=torch.long)
        return Words(indices.cpu().numpy(), self.words)


def _known_words(inverter: Inverter, marks: SubwordMarks) -> dict[str, list[int]]:
    """Return the words of the training texts with their pieces, the commonest first."""
    special = set(inverter.info.special_ids)
    common = words_without_meaning(inverter.info.languages)
    spelled = {word: _spell(word, inverter, marks) for word in inverter.known_words if is_worth_naming(word, common)}
    return {word: pieces for word, pieces in spelled.items() if pieces and special.isdisjoint(pieces)}


def _pieces_by_name(inverter: Inverter, marks: SubwordMarks) -> dict[str, list[int]]:
    """Return the words that pieces of the tokenizer begin, or are where words have no spaces; the commonest first."""
    names: dict[str, list[int]] = {}
    common = words_without_meaning(inverter.info.languages)
    for token in inverter.model.readout.base.argsort(descending=True, stable=True).tolist():
        piece = inverter.tokenizer.id_to_token(token) or ""
        word = marks.bare(piece)
        if is_worth_naming(word, common) and (not marks.continues(piece) or UNSPACED.fullmatch(word)):
            names.setdefault(word, [token])
    return names


def is_worth_naming(word: str, common: Collection[str]) -> bool:
    """Whether a word says something: it is no number, not too short, and not ``common``."""
    is_word = WORD.fullmatch(word) or (UNSPACED.fullmatch(word) and not is_grammar(word))
    return bool(is_word) and len(word) >= shortest_word(word) and word.lower() not in common


def words_without_meaning(languages: Sequence[str]) -> frozenset[str]:
    """Return the words that are not worth naming: function words of English, and the commonest of other languages."""
    return function_words() | common_words([code for code in languages if code != "en"])


def _forms(word: str, names: Mapping[str, list[int]], inverter: Inverter, marks: SubwordMarks) -> dict[str, list[int]]:
    """Return the pieces of a word that a user looks for, and of its other forms: the words of the same stem.

    For a word without any, these are the word in lower case and with a capital, if the tokenizer minds the case.
    """
    pieces = _spell(word, inverter, marks)
    if not pieces or set(pieces) & set(inverter.info.special_ids):
        raise ConfigError(
            f"Cannot look for '{word}': the encoder's tokenizer does not know all of its characters.",
            "Look for another form of the word, or for words that often occur with it.",
        )
    wanted = stem(word)
    forms = {name: spelled for name, spelled in names.items() if stem(name) == wanted}
    if not forms:
        forms = {form: _spell(form, inverter, marks) for form in (word.lower(), word.capitalize())}
    return {word: pieces} | {form: spelled for form, spelled in forms.items() if spelled != pieces}


def _spell(word: str, inverter: Inverter, marks: SubwordMarks) -> list[int]:
    """Return the tokens that a word is written with inside a text."""
    word = word.strip()
    if UNSPACED.fullmatch(word) and (own := inverter.tokenizer.token_to_id(word)) is not None:
        return [own]
    encoding = inverter.tokenizer.encode(marks.inside_text(word), add_special_tokens=False)
    # A mark by itself stands for a space, which every text has.
    pieces = zip(encoding.ids, encoding.tokens, strict=True)
    return [token for token, piece in pieces if marks.bare(piece)] or list(encoding.ids)
