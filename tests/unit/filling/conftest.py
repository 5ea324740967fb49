"""Templates and candidates for an inverter that has learnt nothing, with an encoder without weights."""

import pytest

from unembed.inverter import Inverter

ANIMALS = ["cat", "dog", "bird", "horse", "king", "queen", "boy", "girl", "child", "teacher", "doctor", "friend"]
PLACES = ["park", "garden", "house", "city", "field", "snow", "river", "sea", "lake", "shop", "tree", "hill"]


@pytest.fixture
def inverter(tiny_checkpoint):
    return Inverter.from_pretrained(tiny_checkpoint)
