"""The real encoder's gradient, and a search that has nothing but it."""

import numpy as np
import pytest

from unembed.encoders import can_substitute


@pytest.mark.parametrize(
    ("text", "changed", "position", "word"),
    [
        ("the doctor gave the patient a new medicine.", "the lawyer gave the patient a new medicine.", 1, "doctor"),
        ("my brother plays the violin in an orchestra.", "my brother plays the coffee in an orchestra.", 4, "violin"),
        ("snow fell on the mountain all night.", "snow fell on the computer all night.", 4, "mountain"),
    ],
)
def test_the_gradient_ranks_the_word_that_was_exchanged_among_the_first_thirty(minilm, text, changed, position, word):
    assert can_substitute(minilm)
    ((tokens, gains),) = minilm.substitutions([changed], minilm.encode([text]), 30)
    assert tokens.shape == gains.shape == (len(minilm.tokenizer.encode(changed, add_special_tokens=False).ids), 30)
    assert np.all(np.diff(gains, axis=1) <= 0)
    assert word in [minilm.tokenizer.id_to_token(int(token)) for token in tokens[position]]


def test_the_gain_is_the_first_order_change_of_the_cosine(minilm):
    """A tiny step along the difference of two token embeddings changes the cosine by the gain times the step."""
    import torch

    text, target = "a small boat on the lake.", minilm.encode(["a large ship on the sea."])
    ((tokens, gains),) = minilm.substitutions([text], target, 1)
    layer = minilm.model[0].auto_model.get_input_embeddings()
    ids = minilm.tokenizer.encode(text, add_special_tokens=False).ids
    step, position = 1e-2, 1
    difference = (layer.weight[int(tokens[position, 0])] - layer.weight[ids[position]]).detach()

    def nudge(_module, _inputs, output):
        moved = output.clone()
        moved[0, 1 + position] += step * difference  # behind [CLS]
        return moved

    before = float(minilm.encode([text])[0] @ target[0])
    handle = layer.register_forward_hook(nudge)
    try:
        with torch.no_grad():
            after = float(minilm.encode([text])[0] @ target[0])
    finally:
        handle.remove()
    assert (after - before) / step == pytest.approx(float(gains[position, 0]), rel=0.1)


def test_forbidden_tokens_and_the_token_itself_are_never_proposed(minilm):
    text, target = "snow is cold.", minilm.encode(["rain is warm."])
    forbidden = (minilm.tokenizer.token_to_id("rain"), minilm.tokenizer.token_to_id("warm"))
    ((tokens, _),) = minilm.substitutions([text], target, 50, forbidden=forbidden)
    assert not np.isin(tokens, forbidden).any()
    ids = minilm.tokenizer.encode(text, add_special_tokens=False).ids
    assert all(own not in row for own, row in zip(ids, tokens, strict=True))


def test_the_quicker_copy_agrees_and_leaves_the_encoder_as_it_is(minilm):
    texts = ["snow is cold.", "my brother plays the violin in an orchestra."]
    before = minilm.encode(texts)
    quick = minilm.quicker()
    assert np.array_equal(minilm.encode(texts), before)
    assert minilm.description.precision == "float32"
    assert ((quick.encode(texts) * before).sum(1) > 0.999).all()
    assert (quick is minilm) == (quick.description.precision == "float32")


def test_a_short_sentence_comes_back_exactly(minilm):
    from unembed import Inverter

    (inversion,) = Inverter.default().invert_text(
        ["It will rain in the mountains tomorrow."], minilm, strategy="guided"
    )
    assert inversion.text == "it will rain in the mountains tomorrow."
    assert inversion.score > 0.9999
