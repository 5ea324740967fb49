"""The one generator that all strategies share."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.decoding.blind import decode_blind
from unembed.decoding.guided import Oracle, decode_guided
from unembed.decoding.rerank import decode_reranked
from unembed.decoding.step import Step
from unembed.engine import Engine
from unembed.errors import ConfigError
from unembed.model import NoiseSchedule


def decode(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    *,
    lengths: Tensor | None = None,
    batch_size: int = 64,
    oracle: Oracle | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Step]:
    """Recover canvases from vectors, from all [MASK] to none, and yield every pass.

    Args:
        engine: the denoiser.
        noise: the schedule that it was trained with.
        embeddings: (n, d), on the engine's device.
        options: the strategy, and how it goes about it.
        lengths: (n,) how many tokens each text has; by default the length head's likeliest.
        batch_size: hypotheses decoded together.
        oracle: what embeds hypotheses, for ``guided``, ``surrogate`` and ``rerank``.
        interrupted: asked between the rounds of a search. Once it says yes, the searches that go on end with their
            best text so far, and the vectors whose search has not begun have no step.
    """
    if not (options.searches or options.rerank):
        steps = decode_blind(engine, noise, embeddings, options, lengths=lengths, batch_size=batch_size)
    elif oracle is None:
        raise ConfigError(
            "Searching and reranking need something that embeds texts.", "Give an oracle, or choose a blind strategy."
        )
    else:
        search = partial(decode_guided, interrupted=interrupted)
        decoder = search if options.searches else decode_reranked
        steps = decoder(engine, noise, embeddings, options, oracle=oracle, lengths=lengths, batch_size=batch_size)
    # Not a decorator: a generator would leave gradients off in its receiver's code between two steps.
    while True:
        with torch.no_grad():
            step = next(steps, None)
        if step is None:
            return
        yield step
