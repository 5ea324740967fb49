"""What drawing a sample costs."""

import tracemalloc

import numpy as np

from unembed.auditing.sample import draw
from unembed.connectors import VectorBatch, VectorSource


def test_memory_grows_with_the_sample_and_not_with_the_batches_it_comes_from():
    def records():  # 40 MB, of which one row in a hundred is kept
        for number in range(50):
            yield VectorBatch(range(100 * number, 100 * number + 100), np.ones((100, 2048), dtype=np.float32))

    tracemalloc.start()
    try:
        draw(VectorSource("vectors", 5000, records()), 50)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8e6
