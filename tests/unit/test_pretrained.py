"""The post layout, started from a BERT encoder, computes what that encoder computes."""

import pytest
import torch

from unembed.errors import ConfigError
from unembed.training.pretrained import copy_bert_weights

transformers = pytest.importorskip("transformers")


def bert(**changes):
    torch.manual_seed(3)
    settings = {
        "vocab_size": 40,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 20,
    }
    return transformers.BertModel(transformers.BertConfig(**settings | changes)).eval()


@pytest.mark.parametrize("conditioning", ["adaln", "adaln-zero"])
def test_the_denoiser_starts_as_the_encoder(build_model, conditioning):
    encoder = bert()
    wrapped = build_model(norm="post", conditioning=conditioning, initialise_from="bert")
    copy_bert_weights(wrapped, encoder.state_dict(), "bert")
    model = wrapped.denoiser
    model.final_norm = torch.nn.Identity()
    ids = torch.randint(0, 40, (3, 9))
    theirs = encoder(input_ids=ids, position_ids=torch.arange(1, 10)[None]).last_hidden_state
    ours = model.hidden(ids, model.condition(torch.randn(3, 16)))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_fewer_layers_take_the_encoder_s_first_ones(build_model):
    model = build_model(norm="post", layers=1, initialise_from="bert")
    encoder = bert()
    copy_bert_weights(model, encoder.state_dict(), "bert")
    ours = model.denoiser.blocks[0].feedforward_in.weight
    torch.testing.assert_close(ours.data, encoder.encoder.layer[0].intermediate.dense.weight.data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"hidden_size": 36}, "do not fit"), ({"num_hidden_layers": 1}, "it has no"), ({"vocab_size": 41}, "vocabulary")],
)
def test_an_encoder_that_does_not_fit_is_refused(build_model, changes, message):
    model = build_model(norm="post", initialise_from="bert")
    with pytest.raises(ConfigError, match=message):
        copy_bert_weights(model, bert(**changes).state_dict(), "bert")
