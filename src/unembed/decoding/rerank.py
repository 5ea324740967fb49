"""Between blind and guided: blind hypotheses are embedded, all at once, and the nearest is kept. Changes no text."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.decoding.blind import decode_hypotheses
from unembed.decoding.guided import Oracle
from unembed.decoding.step import Step
from unembed.engine import Engine
from unembed.model import NoiseSchedule


def decode_reranked(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    *,
    oracle: Oracle,
    lengths: Tensor | None = None,
    batch_size: int = 64,
) -> Iterator[Step]:
    """Decode ``rerank`` hypotheses of each vector and keep the one whose own vector is nearest.

    Half of them have the likeliest lengths, and the others are drawn at random with the same lengths: neither alone
    differs enough. The score of a result is its cosine.
    """
    by_length = 1 if lengths is not None or engine.config.canvas == "fixed" else -(-options.rerank // 2)
    hypotheses: defaultdict[int, list[Step]] = defaultdict(list)
    for step in decode_hypotheses(
        engine,
        noise,
        embeddings,
        options.model_copy(update={"candidates": by_length}),
        lengths=lengths,
        batch_size=batch_size,
        drawn=options.rerank - by_length,
    ):
        yield replace(step, final=torch.zeros_like(step.final))
        for index in step.final.nonzero()[:, 0].tolist():
            hypotheses[int(step.rows[index])].append(step.only(index))
    texts = {
        row: oracle.write([tuple(each.finished(engine.vocabulary)[0].ids) for each in steps])
        for row, steps in hypotheses.items()
    }
    different = list(dict.fromkeys(text for written in texts.values() for text in written))
    vectors = dict(zip(different, torch.from_numpy(oracle.embed_exactly(different)), strict=True)) if different else {}
    targets = torch.nn.functional.normalize(embeddings.float(), dim=-1).cpu()
    for row, steps in sorted(hypotheses.items()):
        cosines = torch.stack([vectors[text] for text in texts[row]]).float() @ targets[row]
        # Of equal texts the first candidate is kept, in whatever order the lengths were decoded.
        best = max(range(len(steps)), key=lambda number: (float(cosines[number]), -int(steps[number].candidate)))
        yield replace(
            steps[best],
            changed=torch.zeros_like(steps[best].changed),
            score=cosines[best, None],
            texts_embedded=torch.tensor([len(set(texts[row]))]),
        )
