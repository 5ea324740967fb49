"""The encoder that the threads of a server share."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unembed.encoders import can_substitute
from unembed.server.models import SharedEncoder


class Watched:
    """Notices when two threads are in it at once."""

    supports_substitutions = True

    def __init__(self, encoder):
        self.description, self.tokenizer = encoder.description, encoder.tokenizer
        self.inside = self.most_inside = 0
        self.second = threading.Event()

    def work(self):
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        if self.inside > 1:
            self.second.set()
        self.second.wait(0.05)  # long enough for another thread to come in, if it may
        self.inside -= 1

    def encode(self, sentences, **options):
        self.work()
        return np.ones((len(sentences), 16), dtype=np.float32)

    def substitutions(self, sentences, targets, top, *, forbidden=()):
        self.work()
        return [None] * len(sentences)


@pytest.mark.parametrize("first", ["encode", "substitutions"])
@pytest.mark.parametrize("second", ["encode", "substitutions"])
def test_threads_take_turns(first, second, fake_encoder):
    watched = Watched(fake_encoder)
    shared = SharedEncoder(watched)
    calls = {
        "encode": lambda: shared.encode(["a"]),
        "substitutions": lambda: shared.substitutions(["a"], np.ones((1, 16)), 1),
    }
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(calls[name]) for name in (first, second)]:
            future.result()
    assert watched.most_inside == 1


def test_it_has_the_capabilities_of_its_encoder(fake_encoder):
    assert can_substitute(SharedEncoder(Watched(fake_encoder)))
    assert not can_substitute(SharedEncoder(fake_encoder))
    assert SharedEncoder(fake_encoder).substitutions(["a"], np.ones((1, 16)), 1) == [None]
