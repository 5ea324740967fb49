"""What embeds the hypotheses of a guided search."""

import numpy as np


def test_a_hypothesis_is_what_its_text_reads_as(oracle):
    tokenizer = oracle.tokenizer
    split = tuple(tokenizer.token_to_id(token) for token in ("c", "##a", "##t"))
    whole = (tokenizer.token_to_id("cat"),)
    assert oracle.settle([split, whole]) == [whole, whole]


def test_what_does_not_fit_the_canvas_or_says_nothing_is_none(oracle):
    cat = oracle.tokenizer.token_to_id("cat")
    assert oracle.settle([(cat,) * 13, (cat,) * 12, ()]) == [None, (cat,) * 12, None]


def test_an_encoder_without_gradient_proposes_nothing(oracle):
    assert oracle.substitutions([(5, 6)], np.ones((1, 16)), 3) == [None]
