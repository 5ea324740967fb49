"""Triage: the words that each vector gives away, by the readout alone. No order, no passes, no text.

Made for whole vector databases: a few matrix products for a block of vectors, over the words that are worth naming. A
word ranks by its probability p relative to its base rate b: p / sqrt(b) decides, so that "invoice" comes before "the".
Both kinds of readout give that as an affine map of a few hundred features.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.canvas.marks import SubwordMarks
from unembed.encoders.precision import has_native_bfloat16
from unembed.errors import ConfigError
from unembed.inverter import Inverter, check_vectors
from unembed.measures import function_words, stem

VOCABULARY = 5120
"""Words that are looked for by default: the most frequent ones, without function words."""
_BLOCK = 2048
_WORD = re.compile(r"[^\W\d_]{3,}")


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
        self, inverter: Inverter, *, top: int = 12, vocabulary: int = VOCABULARY, find: Sequence[str] = ()
    ) -> None:
        """Choose the words.

        Args:
            inverter: one that has a readout.
            top: words per vector.
            vocabulary: how many words are looked for; the time is in proportion to it.
            find: words that are looked for however rare they are, with all words of the same stem.
        """
        readout = inverter.model.readout
        self._inverter = inverter
        base = readout.base.detach()
        marks = SubwordMarks.of(inverter.tokenizer)
        names = {token: _name(inverter.tokenizer.id_to_token(token) or "", marks) for token in range(len(base))}
        frequent = [token for token in base.argsort(descending=True, stable=True).tolist() if names[token]]
        chosen = {names[token]: [token] for token in sorted(frequent[:vocabulary])}
        forms = {word: [word, *_forms(word, names)] for word in find}
        chosen |= {form: _pieces(form, inverter, marks) for word in find for form in forms[word]}
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
        with torch.autocast(checked.device.type, torch.bfloat16, enabled=has_native_bfloat16(checked.device)):
            for block in torch.split(checked, _BLOCK):
                features = self._inverter.model.readout.features(self._inverter.map_vectors(block))
                best.append(F.linear(features, self._weight, self._bias).topk(self._top).indices)
        indices = torch.cat(best) if best else torch.empty(0, self._top, dtype=torch.long)
        return Words(indices.cpu().numpy(), self.words)


def _name(piece: str, marks: SubwordMarks) -> str:
    """Return the word that a piece begins; nothing for pieces inside words, numbers and words that say little."""
    if marks.continues(piece):
        return ""
    word = marks.bare(piece)
    return word if _WORD.fullmatch(word) and word.lower() not in function_words() else ""


def _forms(word: str, names: Mapping[int, str]) -> list[str]:
    """Return the words of the vocabulary that have the same stem."""
    wanted = stem(word)
    return [name for name in dict.fromkeys(names.values()) if name and stem(name) == wanted]


def _pieces(word: str, inverter: Inverter, marks: SubwordMarks) -> list[int]:
    """Return the tokens that a word is written with inside a text."""
    encoding = inverter.tokenizer.encode(marks.inside_text(word.strip()), add_special_tokens=False)
    if not encoding.ids or set(encoding.ids) & set(inverter.info.special_ids):
        raise ConfigError(
            f"Cannot look for '{word}': the encoder's tokenizer does not know all of its characters.",
            "Look for another form of the word, or for words that often occur with it.",
        )
    return list(encoding.ids)
