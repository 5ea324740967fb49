"""The post layout, started from a BERT or RoBERTa encoder, computes what that encoder computes."""

import pytest
import torch
from tokenizers import Tokenizer, models

from unembed.errors import ConfigError
from unembed.training.pretrained import Source, copy_weights, initialise_from_encoder

transformers = pytest.importorskip("transformers")

SHAPE = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
    "initializer_range": 0.2,
}


def words(*numbers: int) -> Tokenizer:
    """A vocabulary of words that are numbers, in this order."""
    return Tokenizer(models.WordLevel({f"w{number}": place for place, number in enumerate(numbers)}))


WORDS = words(*range(40))


def bert(**changes):
    torch.manual_seed(3)
    encoder = transformers.BertModel(transformers.BertConfig(**SHAPE | changes)).eval()
    return encoder, Source("bert", encoder.state_dict(), 1, WORDS)


def roberta(**changes):
    torch.manual_seed(3)
    options = {"pad_token_id": 1, "layer_norm_eps": 1e-5, "type_vocab_size": 1}
    encoder = transformers.RobertaModel(transformers.RobertaConfig(**SHAPE | options | changes)).eval()
    return encoder, Source("roberta", encoder.state_dict(), 3, WORDS)


def states(model, ids):
    """What the denoiser computes, before its last norm, which no encoder has."""
    model.denoiser.final_norm = torch.nn.Identity()
    return model.denoiser.hidden(ids, model.denoiser.condition(torch.randn(len(ids), 16)))


@pytest.mark.parametrize("conditioning", ["adaln", "adaln-zero"])
@pytest.mark.parametrize(("kind", "epsilon"), [(bert, 1e-12), (roberta, 1e-5)])
def test_the_denoiser_starts_as_the_encoder(build_model, conditioning, kind, epsilon):
    encoder, source = kind()
    model = build_model(norm="post", conditioning=conditioning, initialise_from="it", norm_epsilon=epsilon)
    copy_weights(model, source, WORDS)
    ids = torch.randint(0, 40, (3, 9))
    positions = torch.arange(source.beginning, source.beginning + 9)[None]
    theirs = encoder(input_ids=ids, position_ids=positions).last_hidden_state
    torch.testing.assert_close(states(model, ids), theirs, atol=1e-5, rtol=1e-4)


def test_roberta_s_positions_are_those_that_it_gives_itself(build_model):
    """Its first token has the position behind its padding's id; a text begins one later."""
    encoder, source = roberta()
    ids = torch.randint(2, 40, (2, 9))
    positions = torch.arange(source.beginning - 1, source.beginning + 8)[None]
    given = encoder(input_ids=ids, position_ids=positions).last_hidden_state
    torch.testing.assert_close(encoder(input_ids=ids).last_hidden_state, given)


def test_another_epsilon_would_not_be_the_encoder(build_model):
    encoder, source = roberta(layer_norm_eps=1e-2)
    model = build_model(norm="post", initialise_from="it")
    copy_weights(model, source, WORDS)
    ids = torch.randint(0, 40, (3, 9))
    theirs = encoder(input_ids=ids, position_ids=torch.arange(3, 12)[None]).last_hidden_state
    assert (states(model, ids) - theirs).abs().max() > 1e-3


def test_a_smaller_vocabulary_takes_the_embeddings_of_its_own_pieces(build_model):
    encoder, source = bert(vocab_size=60)
    source = Source("bert", source.weights, 1, words(*range(60)))
    model = build_model(norm="post", initialise_from="it")
    kept = [*range(59, 21, -1), 1000, 1001]
    copy_weights(model, source, words(*kept))
    ids = torch.randint(0, 38, (3, 9))
    theirs = encoder(input_ids=59 - ids, position_ids=torch.arange(1, 10)[None]).last_hidden_state
    torch.testing.assert_close(states(model, ids), theirs, atol=1e-5, rtol=1e-4)
    mean = source.weights["embeddings.word_embeddings.weight"].mean(0)
    torch.testing.assert_close(model.denoiser.token_embedding.weight[38].detach(), mean)


def test_a_vocabulary_that_is_mostly_foreign_is_refused(build_model):
    model = build_model(norm="post", initialise_from="it")
    with pytest.raises(ConfigError, match="Only 15 of the 40 pieces"):
        copy_weights(model, bert()[1], words(*range(25, 65)))


def test_fewer_layers_take_the_encoder_s_first_ones(build_model):
    model = build_model(norm="post", layers=1, initialise_from="bert")
    encoder, source = bert()
    copy_weights(model, source, WORDS)
    ours = model.denoiser.blocks[0].feedforward_in.weight
    torch.testing.assert_close(ours.data, encoder.encoder.layer[0].intermediate.dense.weight.data)


@pytest.mark.parametrize(
    ("changes", "message"), [({"hidden_size": 36}, "do not fit"), ({"num_hidden_layers": 1}, "it has no")]
)
def test_an_encoder_that_does_not_fit_is_refused(build_model, changes, message):
    model = build_model(norm="post", initialise_from="bert")
    with pytest.raises(ConfigError, match=message):
        copy_weights(model, bert(**changes)[1], WORDS)


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


@pytest.mark.parametrize("changes", [{"heads": 4}, {"norm_epsilon": 1e-5}])
def test_an_encoder_with_other_heads_or_norms_is_refused(build_encoder_folder, build_model, changes):
    folder = build_encoder_folder("tiny-bert")
    model = build_model(norm="post", width=32, feedforward=64, initialise_from="bert", **changes)
    with pytest.raises(ConfigError, match="num_attention_heads is 2, layer_norm_eps is 1e-12") as caught:
        initialise_from_encoder(model, str(folder), WORDS)
    assert "model.norm_epsilon" in caught.value.remedy


def test_an_architecture_of_another_layout_is_refused(build_model, tmp_path, tiny_tokenizer):
    """MPNet adds a bias for relative positions to its attention, which the denoiser has not."""
    config = transformers.MPNetConfig(**SHAPE | {"vocab_size": 300, "max_position_embeddings": 64})
    transformers.MPNetModel(config).save_pretrained(tmp_path)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer, pad_token="[PAD]").save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="model_type is 'mpnet'"):
        initialise_from_encoder(build_model(norm="post", initialise_from="it"), str(tmp_path), WORDS)
