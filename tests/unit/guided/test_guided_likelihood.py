"""A search whose texts are judged by the writer."""

import numpy as np
import pytest
import torch

from searches import make_hypothesis, make_search, take
from unembed.checkpoint import load_checkpoint
from unembed.config import DecodingConfig
from unembed.decoding import SearchRounds
from unembed.decoding.guided.likelihood import WriterJudge
from unembed.inverter import Inverter


@pytest.fixture
def model(searching_checkpoint, stir):
    """A model with a writer that tells texts apart."""
    return stir(load_checkpoint(searching_checkpoint).model)


def favour(wanted):
    """Likelihoods that find one text much likelier than the others."""
    return lambda texts: np.array([0.0 if ids == wanted else -50.0 for ids in texts])


def test_a_likelihood_is_that_of_the_writer_and_of_the_length(model, targets):
    writer, text = WriterJudge.of(model, targets), (3, 4, 5)
    of_length = model.length_logits(targets).log_softmax(-1)[1, len(text) - 1]
    of_tokens = model.writing(targets).log_likelihoods(torch.tensor([text]), 1)[0]
    assert writer.log_likelihoods(1, [text])[0] == pytest.approx(float(of_length + of_tokens), abs=1e-4)


def test_texts_of_several_lengths_are_judged_in_the_order_given(model, targets):
    writer = WriterJudge.of(model, targets)
    texts = [(3, 4, 5), (6,), (4, 3, 5), (6, 7)]
    assert writer.log_likelihoods(0, texts) == pytest.approx(
        [writer.log_likelihoods(0, [ids])[0] for ids in texts], abs=1e-3
    )


def test_a_model_without_a_writer_judges_nothing(tiny_checkpoint, targets):
    assert WriterJudge.of(load_checkpoint(tiny_checkpoint).model, targets) is None


def test_looking_ahead_prefers_the_likelier_text():
    def flat(texts):
        return np.tile(np.array([0.6, 0.8]), (len(texts), 1))

    search = make_search(draft=flat, likelihoods=favour((2, 1, 4, 3)))
    parent = make_hypothesis((4, 3, 2, 1), vector=np.array([0.6, 0.8]))
    take(search, parent)
    take(search)  # a round without gain
    orders = [(1, 2, 3, 4), (2, 1, 4, 3), (4, 1, 3, 2)]
    assert search.look_ahead(parent, lambda ids, count: orders)[-1].ids == (2, 1, 4, 3)


def test_what_is_embedded_has_the_writers_likelihood(searching_checkpoint, fake_encoder, targets):
    inverter = Inverter.from_pretrained(searching_checkpoint, device="cpu")
    rounds = inverter.search_rounds(
        targets.numpy(),
        DecodingConfig(strategy="guided", guided={"rounds": 1, "judge": "writer"}),
        encoder=fake_encoder,
    )
    assert isinstance(rounds, SearchRounds)
    for _ in rounds:
        pass
    writer = WriterJudge.of(inverter.engine, targets)
    for row, search in rounds._searches.items():
        assert search.best.fluency == pytest.approx(writer.log_likelihoods(row, [search.best.ids])[0], abs=1e-3)
