"""Hypotheses of one length that are denoised together. Knows passes, not the order in which positions are revealed."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.decoding.sampling import Guess, choose, guide
from unembed.decoding.step import Step
from unembed.engine import Engine
from unembed.model import NoiseSchedule

# Logits that are computed at a time: they take 16 MB. More would not be faster.
_LOGITS_AT_ONCE = 1 << 22
_SMALLEST = 1e-9
# Hypotheses of a vector are compared by how much of the readout's probability their tokens cover, relative to the root
# of their length; and, with these weights, by the log-probability of the length and the mean one of the tokens. Chosen
# on held-out texts (docs/experiments.md).
_LENGTH_WEIGHT, _TOKENS_WEIGHT = 0.03, 0.02
# Where the model has a surrogate of the encoder, all that counts so much beside the cosine of the surrogate's vector.
_BESIDE_RESEMBLANCE = 0.5


class Canvases:
    """Some canvases (B, T), from all [MASK] to none, and what is needed to take a pass over them.

    What the vectors say is computed once, logits only where they are asked for, and finished rows leave the batch.
    """

    def __init__(
        self,
        engine: Engine,
        noise: NoiseSchedule,
        embeddings: Tensor,
        length: int,
        options: DecodingConfig,
        *,
        rows: Tensor,
        candidate: Tensor,
        length_score: Tensor,
        draws: bool = False,
    ) -> None:
        """Start from all [MASK].

        Args:
            engine: the denoiser.
            noise: the schedule that it was trained with; it gives the time to models with time conditioning.
            embeddings: (B, d), on the engine's device.
            length: T.
            options: of the strategy.
            rows: (B,) the vectors' numbers.
            candidate: (B,) the hypotheses' numbers.
            length_score: (B,) log-probability of the length.
            draws: whether tokens are drawn at random in every pass, also by strategies that take the likeliest.
        """
        self.engine, self.noise, self.options = engine, noise, options
        self.rows, self.candidate, self.length_score = rows, candidate, length_score
        self.draws = draws
        self.embeddings = embeddings
        self.canvas = torch.full((len(rows), length), engine.vocabulary.mask, device=embeddings.device)
        self.confidence = torch.zeros(self.canvas.shape, device=embeddings.device)
        self.passes = 0
        self._condition = engine.condition(embeddings).damped(options.repetition_damping)
        self._shortened = False
        self._unconditional = None
        if options.guidance:
            nothing = torch.ones_like(embeddings[:, 0], dtype=torch.bool)
            self._unconditional = engine.condition(embeddings, nothing).damped(options.repetition_damping)
        self._streams = random_streams(embeddings, candidate.tolist(), options.seed)

    def __len__(self) -> int:
        return len(self.canvas)

    @property
    def length(self) -> int:
        """How many positions each canvas has."""
        return self.canvas.shape[1]

    @property
    def masked(self) -> Tensor:
        """(B, T) which positions are masked."""
        return self.canvas == self.engine.vocabulary.mask

    def uniform(self) -> Tensor:
        """Draw (B, T) numbers from [0, 1), each row from a stream of its own."""
        return self.draw(self.length)

    def draw(self, count: int) -> Tensor:
        """Draw (B, count) numbers from [0, 1), each row from a stream of its own."""
        draws = np.stack([stream.random(count) for stream in self._streams])
        return torch.from_numpy(draws).float().to(self.canvas.device)  # not every device has float64

    def guess(self, where: Tensor, *, sample: bool = False, with_entropy: bool = False) -> Guess:
        """Take one pass and choose a token at each position that ``where`` (B, T) marks.

        Returns:
            (B, T) tensors: elsewhere the tokens are those of the canvas, the probabilities -1 and the entropy infinite
            (everywhere, unless it is asked for).
        """
        self.passes += 1
        nowhere = torch.full_like(self.confidence, -1.0)
        guess = Guess(self.canvas.clone(), nowhere, nowhere.clone(), torch.full_like(nowhere, torch.inf))
        draws = self.uniform() if sample or self.draws else None
        greedy = draws is None and self._unconditional is None
        if greedy and not self._shortened:
            self._condition, self._shortened = self.engine.shorten(self._condition), True
        choices = self._condition.choices if greedy else self.engine.vocabulary.size
        for rows in self._portions(where, max(1, _LOGITS_AT_ONCE // choices)):
            here, canvas = where[rows], self.canvas[rows]
            drawn = None if draws is None else draws[rows][here]
            answers = self._choose(rows, here, canvas, drawn, with_entropy=with_entropy)
            asked = torch.zeros_like(where)
            asked[rows] = here
            for whole, part in zip(guess, answers, strict=True):
                whole[asked] = part.to(whole.dtype)
        return guess

    def reveal(self, where: Tensor, guess: Guess) -> Tensor:
        """Write guessed tokens at some positions; return which positions changed."""
        changed = where & (self.canvas != guess.tokens)
        self.canvas = torch.where(where, guess.tokens, self.canvas)
        self.confidence = torch.where(where, guess.confidence, self.confidence)
        return changed

    def mask(self, where: Tensor) -> Tensor:
        """Put [MASK] at some positions; return which positions changed."""
        changed = where & ~self.masked
        self.canvas = self.canvas.masked_fill(where, self.engine.vocabulary.mask)
        self.confidence = self.confidence.masked_fill(where, 0.0)
        return changed

    def emit(self, changed: Tensor, final: Tensor | bool) -> Step:
        """Return what the pass did, and drop the finished rows."""
        done = final if isinstance(final, Tensor) else torch.full((len(self),), final, device=self.canvas.device)
        step = Step(
            rows=self.rows.to("cpu", copy=True),
            candidate=self.candidate.to("cpu", copy=True),
            canvas=self.canvas.to("cpu", copy=True),
            changed=changed.to("cpu", copy=True),
            confidence=self.confidence.to("cpu", copy=True),
            mask_rate=self.masked.float().mean(1).cpu(),
            passes=torch.full((len(self),), self.passes),
            score=self._score(done).cpu(),
            final=done.to("cpu", copy=True),
            texts_embedded=torch.zeros(len(self), dtype=torch.long),
        )
        if done.any():
            self._keep((~done).nonzero()[:, 0])
        return step

    def _score(self, done: Tensor) -> Tensor:
        """Return what hypotheses of a vector are compared by; only of those that are ``done`` is it the last word."""
        certainty = self.confidence.clamp(min=_SMALLEST).log().mean(1)
        coverage = self._condition.coverage(self.canvas) / self.length**0.5
        score: Tensor = coverage + _LENGTH_WEIGHT * self.length_score + _TOKENS_WEIGHT * certainty
        resemblance = self.engine.resemblance(self.canvas[done], self.embeddings[done]) if done.any() else None
        if resemblance is not None:
            score[done] = resemblance + _BESIDE_RESEMBLANCE * score[done]
        return score

    def _choose(
        self, rows: Tensor, where: Tensor, canvas: Tensor, draws: Tensor | None, *, with_entropy: bool
    ) -> Guess:
        times = self.noise.time_of((canvas == self.engine.vocabulary.mask).float().mean(1))
        condition = self._part(self._condition, rows)
        hidden = self.engine.hidden(canvas, condition, times, where)
        if draws is None and self._unconditional is None:
            return Guess.of_likeliest(
                self.engine.likeliest(hidden, where, canvas, condition, with_entropy=with_entropy)
            )
        logits = self.engine.logits(hidden, where, canvas, condition)
        if self._unconditional is not None:
            condition = self._part(self._unconditional, rows)
            hidden = self.engine.hidden(canvas, condition, times, where)
            logits = guide(logits, self.engine.logits(hidden, where, canvas, condition), self.options.guidance)
        return choose(logits, draws, self.options, with_entropy=with_entropy)

    def _part(self, condition: Any, rows: Tensor) -> Any:
        """Return the condition of some rows, without a copy where that is all of them."""
        return condition if len(rows) == len(self) else condition.rows(rows)

    def _portions(self, where: Tensor, positions: int) -> list[Tensor]:
        """Split the rows that are asked about into portions of about so many positions, whatever the batch."""
        counts = where.sum(1)
        asked = counts.nonzero()[:, 0]
        portion = ((counts[asked].cumsum(0) - 1) // positions).tolist()
        starts = [index for index in range(len(portion)) if not index or portion[index] != portion[index - 1]]
        return list(asked.tensor_split(starts[1:])) if len(asked) else []

    def _keep(self, index: Tensor) -> None:
        self.rows, self.candidate, self.length_score = (
            part[index.to(part.device)] for part in (self.rows, self.candidate, self.length_score)
        )
        self.canvas, self.confidence, self.embeddings = (
            part[index] for part in (self.canvas, self.confidence, self.embeddings)
        )
        self._condition = self._condition.rows(index)
        if self._unconditional is not None:
            self._unconditional = self._unconditional.rows(index)
        self._streams = [self._streams[kept] for kept in index.tolist()]


def random_streams(embeddings: Tensor, candidates: Sequence[int], seed: int) -> list[np.random.Generator]:
    """Return the randomness of each hypothesis: a function of the seed, its vector and its number.

    Not of its row: the same vector gives the same text wherever it stands, however vectors are batched.
    """
    streams = []
    for vector, number in zip(embeddings.float().cpu().numpy(), candidates, strict=True):
        digest = hashlib.sha256(vector.tobytes()).digest()[:16]
        streams.append(np.random.default_rng([seed, number, int.from_bytes(digest, "little")]))
    return streams
