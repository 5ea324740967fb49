"""Candidates that the denoiser writes itself: it fills the masks of a slot, the likeliest first."""

from collections.abc import Sequence

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from unembed.canvas.marks import SubwordMarks
from unembed.engine import Engine
from unembed.errors import ConfigError
from unembed.filling.asking import ask_masks, close_canvas_for
from unembed.filling.pieces import read_filled
from unembed.filling.steps import Steps
from unembed.filling.template import Template
from unembed.model import NoiseSchedule

# Words of one token that are proposed, and texts of several tokens of each length.
_WORDS, _TEXTS = 2048, 256
# Tokens with which each text is continued.
_CONTINUATIONS = 32
# A word of one token in most vocabularies; it only marks the place.
_PLACEHOLDER = "the"


class FreeWriter:
    """Proposes texts for a slot."""

    def __init__(self, engine: Engine, noise: NoiseSchedule, tokenizer: Tokenizer) -> None:
        self._engine, self._noise, self._tokenizer = engine, noise, tokenizer
        marks = SubwordMarks.of(tokenizer)
        size = engine.vocabulary.size
        pieces = [tokenizer.id_to_token(token) or "" for token in range(size)]
        self._inside = np.array([marks.continues(piece) or not marks.bare(piece).strip() for piece in pieces])
        """Which tokens cannot begin a word."""

    @torch.no_grad()
    def write(
        self, vector: Tensor, template: Template, slot: int, lengths: Sequence[int], others: Sequence[int]
    ) -> Steps[list[str]]:
        """Return texts for a slot, of so many tokens each; ``others`` are the numbers of tokens of all slots."""
        written: dict[str, None] = {}
        for length in lengths:
            counts = [length if place == slot else count for place, count in enumerate(others)]
            canvas, slots = self._mask(template, counts)
            if len(canvas) > self._engine.config.canvas_length:
                continue
            for text in (yield from self._fill(vector, close_canvas_for(self._engine, canvas), slots[slot])):
                written.setdefault(text)
        if not written:
            raise ConfigError(
                f"The template has more tokens than this inverter writes ({self._engine.config.canvas_length}), so it "
                f"cannot fill the slot '{template.names[slot]}' by itself.",
                f"Give it a kind (`slot={template.names[slot]}=KIND`) or a list of candidates "
                f"(`wordlist={template.names[slot]}=FILE`).",
            )
        return list(written)

    def _mask(self, template: Template, counts: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """Return a canvas with so many masks in each slot, and where they are."""
        ids, places = read_filled(self._tokenizer, template, [_PLACEHOLDER] * len(counts))
        canvas: list[int] = []
        slots: list[list[int]] = [[] for _ in counts]
        for position, token in enumerate(ids):
            owner = next((slot for slot, own in enumerate(places) if position in own), None)
            if owner is None:
                canvas.append(token)
            elif not slots[owner]:
                slots[owner] = list(range(len(canvas), len(canvas) + counts[owner]))
                canvas += [self._engine.vocabulary.mask] * counts[owner]
        return canvas, slots

    def _fill(self, vector: Tensor, canvas: list[int], positions: Sequence[int]) -> Steps[list[str]]:
        """Return the likeliest fillings of some masks, by a beam search from the left."""
        beams: list[tuple[float, list[int]]] = [(0.0, [])]
        before = sum(1 for token in canvas[: positions[0]] if token == self._engine.vocabulary.mask)
        width = _WORDS if len(positions) == 1 else _TEXTS
        for place in range(len(positions)):
            canvases = []
            for _, tokens in beams:
                filled = list(canvas)
                for position, token in zip(positions, tokens, strict=False):
                    filled[position] = token
                canvases.append(filled)
            longer = []
            for (score, tokens), answer in zip(
                beams, ask_masks(self._engine, self._noise, vector, canvases), strict=True
            ):
                scores = answer[before][: self._engine.vocabulary.size].copy()
                if place == 0:
                    scores[self._inside[: len(scores)]] = -np.inf
                keep = min(width if place == 0 else _CONTINUATIONS, len(scores) - 1)
                chosen = np.argpartition(-scores, keep)[:keep]
                longer += [(score + float(scores[token]), [*tokens, int(token)]) for token in chosen]
            beams = sorted(longer, key=lambda beam: -beam[0])[:width]
            yield
        texts: list[str] = self._tokenizer.decode_batch([tokens for _, tokens in beams])
        return [text.strip() for text in texts if text.strip()]
