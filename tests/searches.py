"""Parts of a guided search, made by hand."""

import numpy as np

from unembed.config import GuidedConfig
from unembed.decoding.guided import Hypothesis
from unembed.decoding.guided.hypothesis import Attempt
from unembed.decoding.guided.moves import PRIORS
from unembed.decoding.guided.search import Search


def make_hypothesis(ids, cosine=0.5, fluency=-1.0, **known):
    ids = tuple(ids)
    return Hypothesis(ids, "", **{"vector": np.zeros(2), "cosine": cosine, "fluency": fluency, "slots": ids} | known)


def make_search(seed=0, target=(1.0, 0.0), draft=None, expected_length=0.0, ngrams=None, **config):
    random = np.random.default_rng(seed)
    return Search(GuidedConfig(**config), random, PRIORS, np.array(target), draft, expected_length, ngrams)


def take(search, *hypotheses, parent=None, move="span"):
    """Give a search hypotheses that were embedded, and let it select."""
    attempts = [Attempt(each.ids, each.fluency, parent, move if parent else "") for each in hypotheses]
    search.add(list(zip(attempts, hypotheses, strict=True)))
    for each in search.contenders():
        each.confidence = [0.5] * len(each.ids)
    search.select()
