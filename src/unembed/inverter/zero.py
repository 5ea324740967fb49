"""What the search without training takes from an inverter: its local encoder, its words, and its readout."""

import numpy as np
import torch

from unembed.checkpoint import fetch_checkpoint, open_checkpoint
from unembed.decoding import WordBank, ZeroTools, load_language_model
from unembed.encoders import Encoder, load_described_encoder, quicker
from unembed.inverter.pretrained import PretrainedInverter


def load_tools(inverter: PretrainedInverter, encoder: Encoder, language_model: str | None) -> ZeroTools:
    """Load the language model and the local encoder, and make the words. It takes a while."""
    device = str(inverter.device)
    language = load_language_model(language_model, device=device)
    own = inverter.info.encoder
    if inverter.adaptation:
        own = open_checkpoint(fetch_checkpoint(inverter.adaptation.info.base)).info.encoder
    same = own.name == encoder.description.name
    local = quicker(encoder if same else load_described_encoder(own, device=device))
    bank = WordBank.of(inverter.tokenizer, local)
    return ZeroTools(encoder, local, language, inverter.tokenizer, bank, inverter.info.model.canvas_length)


@torch.no_grad()
def word_priors(
    inverter: PretrainedInverter, encoder: Encoder, vectors: np.ndarray, words: np.ndarray
) -> np.ndarray | None:
    """Return how much likelier than usual each vector makes each word, in nats: (n, words).

    None if the inverter has no readout for the encoder's vectors.
    """
    readout = inverter.model.readout
    if not (readout.gives_prior and inverter.reads(encoder)):
        return None
    given = inverter.map_vectors(torch.from_numpy(vectors).to(inverter.device))
    priors: np.ndarray = (readout.word_log_probabilities(given) - readout.base)[:, words].cpu().numpy()
    return priors
