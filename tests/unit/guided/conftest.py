"""A denoiser that knows nothing, an encoder without weights, and a few vectors."""

import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.decoding import TextOracle

TEXTS = ["the cat sleeps on the mat.", "a dog", "two birds sing in the garden.", "rain"]


@pytest.fixture
def oracle(fake_encoder):
    return TextOracle(fake_encoder, fake_encoder.tokenizer, CanvasVocabulary.of(fake_encoder.tokenizer), 12)


@pytest.fixture
def model(tiny_checkpoint):
    from unembed.checkpoint import load_checkpoint

    return load_checkpoint(tiny_checkpoint).model


@pytest.fixture
def texts():
    return TEXTS


@pytest.fixture
def targets(fake_encoder):
    return torch.from_numpy(fake_encoder.encode(TEXTS))
