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


def test_training_starts_from_an_encoder_and_leaves_frozen_embeddings_alone(build_encoder_folder, tiny_store, tmp_path):
    from safetensors.torch import load_file

    from unembed.config import Recipe, parse
    from unembed.training import train

    folder = build_encoder_folder("tiny-bert")
    recipe = parse(
        Recipe,
        {
            "encoder": {"name": "fake"},
            "data": {"store": tiny_store, "canvas_length": 12, "validation_rows": 4},
            "model": {
                "layers": 2,
                "width": 32,
                "heads": 2,
                "feedforward": 64,
                "norm": "post",
                "initialise_from": str(folder),
                "freeze_token_embeddings": True,
            },
            "training": {"output": tmp_path / "run", "steps": 3, "warmup_steps": 1, "batch_size": 8},
        },
        "test",
    )
    train(recipe, device="cpu")
    trained = load_file(tmp_path / "run" / "state.safetensors")
    source = load_file(folder / "model.safetensors")
    words = next(value for key, value in source.items() if key.endswith("word_embeddings.weight"))
    for weights in ("model.denoiser", "average.module.denoiser"):
        assert torch.equal(trained[f"{weights}.token_embedding.weight"], words)
    assert not torch.equal(
        trained["model.denoiser.blocks.0.feedforward_out.bias"], source["encoder.layer.0.output.dense.bias"]
    )
    assert not any(key.endswith("token_embedding.weight") for key in trained if key.startswith("optimiser"))


def test_an_encoder_with_other_heads_is_refused(build_encoder_folder, build_model):
    from unembed.training.pretrained import initialise_from_encoder

    folder = build_encoder_folder("tiny-bert")
    model = build_model(norm="post", width=32, heads=4, feedforward=64, initialise_from="bert")
    with pytest.raises(ConfigError, match=r"\('bert', 'gelu', 2\)"):
        initialise_from_encoder(model, str(folder))
