"""Started from a BERT, RoBERTa, MPNet or ModernBERT encoder, the denoiser computes what that encoder computes."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from tokenizers.processors import TemplateProcessing

from unembed.config import Recipe, parse
from unembed.errors import ConfigError
from unembed.inverter import Inverter
from unembed.model.positions import RelativePositions
from unembed.training import train
from unembed.training.pretrained import (
    Source,
    as_surrogate,
    copy_to_surrogate,
    copy_weights,
    start_from_encoder,
    start_from_inverter,
)

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
    return Tokenizer(models.WordLevel({f"w{number}": token for token, number in enumerate(numbers)}))


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


def mpnet(**changes):
    torch.manual_seed(3)
    encoder = transformers.MPNetModel(transformers.MPNetConfig(**SHAPE | {"layer_norm_eps": 1e-5} | changes)).eval()
    return encoder, Source("mpnet", encoder.state_dict(), 3, WORDS)


def modernbert(**changes):
    """Four layers, of which the second and the third look two tokens to either side."""
    torch.manual_seed(3)
    options = {"num_hidden_layers": 4, "local_attention": 4, "local_rope_theta": 50.0, "pad_token_id": 1}
    encoder = transformers.ModernBertModel(transformers.ModernBertConfig(**SHAPE | options | changes)).eval()
    for parameter in encoder.parameters():  # biases too, and norms that are not all ones
        parameter.data += 0.2 * torch.randn_like(parameter)
    return encoder, Source("modernbert", encoder.state_dict(), 0, WORDS)


def modernbert_with_biases():
    return modernbert(attention_bias=True, mlp_bias=True, norm_bias=True)


POST = {"norm": "post"}
MODERN = {
    "architecture": "modernbert",
    "layers": 4,
    "norm_epsilon": 1e-5,
    "rotary": {"window": 4, "local_theta": 50.0},
}
KINDS = [
    (bert, POST),
    (roberta, POST | {"norm_epsilon": 1e-5}),
    (mpnet, POST | {"norm_epsilon": 1e-5, "architecture": "mpnet"}),
    (modernbert, MODERN),
    (modernbert_with_biases, MODERN),
]


def states(model, ids):
    """What the denoiser computes; before its last norm, unless the encoder has one too."""
    if model.config.architecture != "modernbert":
        model.denoiser.final_norm = torch.nn.Identity()
    return model.denoiser.hidden(ids, model.denoiser.condition(torch.randn(len(ids), 16)))


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (1, 12), (3, 9)])
@pytest.mark.parametrize("conditioning", ["adaln", "adaln-zero"])
@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_the_denoiser_starts_as_the_encoder(build_model, conditioning, kind, settings, rows, length):
    encoder, source = kind()
    model = build_model(conditioning=conditioning, **settings)
    copy_weights(model, source, WORDS)
    ids = torch.randint(0, 40, (rows, length))
    positions = torch.arange(source.beginning, source.beginning + length)[None]
    theirs = encoder(input_ids=ids, position_ids=positions).last_hidden_state
    torch.testing.assert_close(states(model, ids), theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_on_a_fixed_canvas_padding_has_a_position_like_any_token(build_model, kind, settings):
    """It is a token of ours, seen and guessed like others: its positions must not be skipped, as encoders do."""
    encoder, source = kind()
    model = build_model(canvas="fixed", **settings)
    copy_weights(model, source, WORDS)
    ids = torch.randint(0, 40, (2, 12))
    ids[:, 5] = model.vocabulary.eos
    ids[:, 6:] = model.vocabulary.pad
    words = encoder.get_input_embeddings().weight
    given = torch.cat([words, words.mean(0).expand(3, -1)])[ids]
    positions = torch.arange(source.beginning, source.beginning + 12)[None]
    theirs = encoder(inputs_embeds=given, position_ids=positions).last_hidden_state
    torch.testing.assert_close(states(model, ids), theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("changes", [{"window": 6}, {"global_every": 2}, {"global_theta": 50.0}, {"local_theta": 60.0}])
def test_other_windows_or_turns_would_not_be_the_encoder(build_model, changes):
    encoder, source = modernbert()
    model = build_model(**MODERN | {"rotary": MODERN["rotary"] | changes})
    copy_weights(model, source, WORDS)
    ids = torch.randint(0, 40, (3, 9))
    assert (states(model, ids) - encoder(input_ids=ids).last_hidden_state).abs().max() > 1e-3


def test_distances_fall_into_the_buckets_of_mpnet(build_model):
    config = build_model(architecture="mpnet").config.model_copy(update={"canvas_length": 400})
    positions = torch.arange(400)
    bucket = transformers.models.mpnet.modeling_mpnet.MPNetEncoder.relative_position_bucket
    assert torch.equal(RelativePositions(config).buckets, bucket(positions - positions[:, None]))


@pytest.mark.parametrize("kind", [roberta, mpnet])
def test_the_positions_of_roberta_and_mpnet_are_those_that_they_give_themselves(kind):
    """The first token has the position behind the padding's id; a text begins one later."""
    encoder, source = kind()
    ids = torch.randint(2, 40, (2, 9))
    positions = torch.arange(source.beginning - 1, source.beginning + 8)[None]
    given = encoder(input_ids=ids, position_ids=positions).last_hidden_state
    torch.testing.assert_close(encoder(input_ids=ids).last_hidden_state, given)


def test_another_epsilon_would_not_be_the_encoder(build_model):
    encoder, source = roberta(layer_norm_eps=1e-2)
    model = build_model(norm="post")
    copy_weights(model, source, WORDS)
    ids = torch.randint(0, 40, (3, 9))
    theirs = encoder(input_ids=ids, position_ids=torch.arange(3, 12)[None]).last_hidden_state
    assert (states(model, ids) - theirs).abs().max() > 1e-3


def test_a_smaller_vocabulary_takes_the_embeddings_of_its_own_pieces(build_model):
    encoder, source = bert(vocab_size=60)
    source = Source("bert", source.weights, 1, words(*range(60)))
    model = build_model(norm="post")
    kept = [*range(59, 21, -1), 1000, 1001]
    copy_weights(model, source, words(*kept))
    ids = torch.randint(0, 38, (3, 9))
    theirs = encoder(input_ids=59 - ids, position_ids=torch.arange(1, 10)[None]).last_hidden_state
    torch.testing.assert_close(states(model, ids), theirs, atol=1e-5, rtol=1e-4)
    mean = source.weights["embeddings.word_embeddings.weight"].mean(0)
    torch.testing.assert_close(model.denoiser.token_embedding.weight[38].detach(), mean)


def test_a_vocabulary_that_is_mostly_foreign_is_refused(build_model):
    model = build_model(norm="post")
    with pytest.raises(ConfigError, match="Only 15 of the 40 pieces"):
        copy_weights(model, bert()[1], words(*range(25, 65)))


@pytest.mark.parametrize("factor", [0.1, 1.0, 30.0])
def test_the_first_logits_are_of_order_one_however_long_the_encoder_s_embeddings_are(build_model, factor):
    _, source = bert()
    weights = source.weights | {
        name: factor * weight for name, weight in source.weights.items() if name == "embeddings.word_embeddings.weight"
    }
    model = build_model(norm="post", readout="none")
    copy_weights(model, Source("bert", weights, 1, WORDS), WORDS)
    canvas = torch.full((2, 9), model.vocabulary.mask)
    condition = model.condition(torch.randn(2, 16))
    everywhere = torch.ones_like(canvas, dtype=torch.bool)
    logits = model.logits(model.hidden(canvas, condition), everywhere, canvas, condition)
    assert 0.3 < logits[logits.isfinite()].std() < 3.0


def test_fewer_layers_take_the_encoder_s_first_ones(build_model):
    model = build_model(norm="post", layers=1)
    encoder, source = bert()
    copy_weights(model, source, WORDS)
    ours = model.denoiser.blocks[0].feedforward_in.weight
    torch.testing.assert_close(ours.data, encoder.encoder.layer[0].intermediate.dense.weight.data)


@pytest.mark.parametrize(
    ("changes", "message"), [({"hidden_size": 36}, "do not fit"), ({"num_hidden_layers": 1}, "it has no")]
)
def test_an_encoder_that_does_not_fit_is_refused(build_model, changes, message):
    model = build_model(norm="post")
    with pytest.raises(ConfigError, match=message):
        copy_weights(model, bert(**changes)[1], WORDS)


@pytest.mark.parametrize(
    ("kind", "settings", "changes", "message"),
    [
        (mpnet, KINDS[2][1], {"hidden_size": 36}, "do not fit"),
        (mpnet, KINDS[2][1], {"relative_attention_num_buckets": 40}, "relative_attention_bias do not fit"),
        (mpnet, KINDS[2][1], {"num_hidden_layers": 1}, "it has no encoder.layer.1"),
        (modernbert, MODERN, {"intermediate_size": 96}, "mlp.Wi do not fit"),
        (modernbert, MODERN, {"num_hidden_layers": 3}, "it has no layers.3"),
    ],
)
def test_an_encoder_of_another_architecture_that_does_not_fit_is_refused(build_model, kind, settings, changes, message):
    with pytest.raises(ConfigError, match=message):
        copy_weights(build_model(**settings), kind(**changes)[1], WORDS)


@pytest.fixture
def make_recipe(tiny_store, tmp_path):
    """Builds recipes of three steps on the tiny store that start from an encoder's folder."""

    def make(folder, **model) -> Recipe:
        settings = {"layers": 2, "width": 32, "heads": 2, "feedforward": 64}
        values = {
            "encoder": {"name": "fake"},
            "data": {"store": tiny_store, "canvas_length": 12, "validation_rows": 4},
            "model": settings | model,
            "training": {
                "output": tmp_path / "run",
                "start_from": {"encoder": str(folder)},
                "steps": 3,
                "warmup_steps": 1,
                "batch_size": 8,
            },
        }
        return parse(Recipe, values, "test")

    return make


def test_training_starts_from_an_encoder_and_leaves_frozen_embeddings_alone(
    build_encoder_folder, make_recipe, tmp_path
):
    folder = build_encoder_folder("tiny-bert")
    train(make_recipe(folder, norm="post", freeze_token_embeddings=True), device="cpu")
    trained = load_file(tmp_path / "run" / "state.safetensors")
    source = load_file(folder / "model.safetensors")
    words = next(value for key, value in source.items() if key.endswith("word_embeddings.weight"))
    for weights in ("model.denoiser", "average.module.denoiser"):
        assert torch.equal(trained[f"{weights}.token_embedding.weight"], words)
    assert not torch.equal(
        trained["model.denoiser.blocks.0.feedforward_out.bias"], source["encoder.layer.0.output.dense.bias"]
    )
    assert not any(key.endswith("token_embedding.weight") for key in trained if key.startswith("optimiser"))


@pytest.mark.parametrize(
    ("kind", "model", "source", "ours"),
    [
        (
            "mpnet",
            {"architecture": "mpnet", "norm": "post"},
            "encoder.relative_attention_bias.weight",
            "positions.bias",
        ),
        ("modernbert", {"architecture": "modernbert", "norm_epsilon": 1e-5}, "final_norm.weight", "final_norm"),
    ],
)
def test_an_inverter_that_started_from_mpnet_or_modernbert_is_trained_saved_and_loaded(
    build_encoder_folder, make_recipe, tmp_path, kind, model, source, ours
):
    folder = build_encoder_folder(f"tiny-{kind}", kind=kind)
    recipe = make_recipe(folder, **model)
    train(recipe, device="cpu")
    start = load_file(folder / "model.safetensors")[source]
    trained = load_file(tmp_path / "run" / "state.safetensors")[f"model.denoiser.{ours}.weight"]
    assert not torch.equal(trained, start)
    torch.testing.assert_close(trained, start, atol=0.01, rtol=0.0)

    inverter = Inverter.from_pretrained(tmp_path / "run" / "best", device="cpu")
    assert inverter.info.model.architecture == kind
    inverter.save_pretrained(tmp_path / "again")
    again = Inverter.from_pretrained(tmp_path / "again", device="cpu")
    vectors = torch.randn(3, inverter.info.encoder.dim)
    texts = [[each.text for each in one.invert(vectors)] for one in (inverter, again)]
    assert texts[0] == texts[1]
    ids = torch.randint(0, 100, (3, 9))
    assert torch.equal(*(one.model.hidden(ids, one.model.condition(vectors)) for one in (inverter, again)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"heads": 4}, "num_attention_heads is 2, not 4"), ({"norm_epsilon": 1e-5}, "layer_norm_eps is 1e-12, not 1e-05")],
)
def test_an_encoder_with_other_heads_or_norms_is_refused(build_encoder_folder, build_model, changes, message):
    folder = build_encoder_folder("tiny-bert")
    model = build_model(norm="post", width=32, feedforward=64, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        start_from_encoder(model, str(folder), WORDS)
    assert "model.norm_epsilon" in caught.value.remedy


MODERN_FOLDER = MODERN | {"layers": 2, "width": 32, "feedforward": 64, "rotary": {}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm_epsilon": 1e-6}, "norm_eps is 1e-05, not 1e-06"),
        ({"rotary": {"window": 64}}, "local_attention is 128, not 64"),
        ({"rotary": {"global_every": 1}}, "layer_types is .*'sliding_attention'"),
        ({"rotary": {"global_theta": 80_000.0}}, "rope_theta': 160000.0.*not .*80000.0"),
    ],
)
def test_a_modernbert_with_other_windows_turns_or_norms_is_refused(build_encoder_folder, build_model, changes, message):
    folder = build_encoder_folder("tiny-modernbert", kind="modernbert")
    with pytest.raises(ConfigError, match=message) as caught:
        start_from_encoder(build_model(**MODERN_FOLDER | changes), str(folder), WORDS)
    assert "model.rotary" in caught.value.remedy


def test_an_encoder_of_another_architecture_than_the_model_s_is_refused(build_encoder_folder, build_model):
    folder = build_encoder_folder("tiny-mpnet", kind="mpnet")
    with pytest.raises(ConfigError, match="model_type is 'mpnet'") as caught:
        start_from_encoder(build_model(**MODERN_FOLDER), str(folder), WORDS)
    assert "model.architecture: mpnet" in caught.value.remedy


def test_an_architecture_that_the_denoiser_cannot_have_is_refused(build_encoder_folder, build_model):
    folder = build_encoder_folder("tiny-electra", kind="electra")
    with pytest.raises(ConfigError, match="model_type is 'electra'") as caught:
        start_from_encoder(build_model(**POST), str(folder), WORDS)
    assert "mpnet or modernbert" in caught.value.remedy


FIRST, LAST = 38, 39


def bounded(source: Source) -> Source:
    """The same encoder with a tokenizer that puts a token before and one behind each text, as BERT's does."""
    tokenizer = words(*range(40))
    tokenizer.post_processor = TemplateProcessing(single="w38 $A w39", special_tokens=[("w38", FIRST), ("w39", LAST)])
    return Source(source.name, source.weights, source.beginning, tokenizer)


@pytest.mark.parametrize(("kind", "settings"), KINDS[:3])
def test_with_all_layers_of_an_encoder_the_surrogate_gives_its_mean_state(build_model, kind, settings):
    encoder, source = kind()
    model = build_model(freeze_token_embeddings=True, surrogate={"layers": 2}, **settings)
    copy_to_surrogate(model.surrogate, as_surrogate(model.config, bounded(source)), [])
    model.surrogate.out = torch.nn.Identity()
    ids = torch.randint(0, 38, (3, 7))
    whole = torch.cat([torch.full((3, 1), FIRST), ids, torch.full((3, 1), LAST)], dim=1)
    positions = torch.arange(source.beginning - 1, source.beginning + 8)[None]
    theirs = encoder(input_ids=whole, position_ids=positions).last_hidden_state.mean(1)
    given = model.surrogate(encoder.get_input_embeddings()(ids))
    torch.testing.assert_close(given, torch.nn.functional.normalize(theirs, dim=-1), atol=1e-5, rtol=1e-4)


def test_with_fewer_layers_the_surrogate_takes_the_first_and_the_last_ones(build_model):
    encoder, source = bert(num_hidden_layers=5)
    model = build_model(freeze_token_embeddings=True, surrogate={"layers": 3}, norm="post")
    copy_to_surrogate(model.surrogate, as_surrogate(model.config, bounded(source)), [])
    for block, number in zip(model.surrogate.blocks, (0, 3, 4), strict=True):
        torch.testing.assert_close(
            block.feedforward_in.weight.data, encoder.encoder.layer[number].intermediate.dense.weight.data
        )


def test_a_surrogate_of_more_layers_than_the_encoder_has_is_refused(build_model):
    model = build_model(freeze_token_embeddings=True, surrogate={"layers": 3}, norm="post")
    with pytest.raises(ConfigError, match="it has 2(.|\n)*model.surrogate.layers"):
        copy_to_surrogate(model.surrogate, as_surrogate(model.config, bounded(bert()[1])), [])


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_narrower_layers_keep_the_inner_units_that_add_something(build_model, kind, settings):
    """Where the units that are left out only ever add the same, nothing is lost."""
    _, source = kind()
    whole = as_surrogate(build_model(**settings).config, source)
    narrow = {"layers": len(whole.blocks), "feedforward": 20}
    model = build_model(freeze_token_embeddings=True, surrogate=narrow, **settings)
    for block in whole.blocks:
        out = block.feedforward_out
        idle = torch.randperm(out.in_features)[: out.in_features - 20]
        out.weight[:, idle] = 0.0
    texts = [torch.randn(6, length, model.config.width) for length in (5, 9)]
    expected = whole(texts[1])
    copy_to_surrogate(model.surrogate, whole, texts)
    torch.testing.assert_close(model.surrogate(texts[1]), expected, atol=1e-5, rtol=1e-4)


def test_what_the_other_inner_units_add_on_average_is_kept(build_model):
    _, source = bert()
    model = build_model(freeze_token_embeddings=True, surrogate={"layers": 2, "feedforward": 20}, norm="post")
    whole = as_surrogate(model.config, source)
    for block in whole.blocks:
        block.feedforward_in.weight[20:] = 0.0
        block.feedforward_in.bias[20:] = 2.0
    texts = [torch.randn(6, 7, model.config.width)]
    expected = whole(texts[0])
    copy_to_surrogate(model.surrogate, whole, texts)
    torch.testing.assert_close(model.surrogate(texts[0]), expected, atol=1e-5, rtol=1e-4)


def test_wider_layers_than_the_encoder_has_are_refused(build_model):
    model = build_model(freeze_token_embeddings=True, surrogate={"layers": 2, "feedforward": 500}, norm="post")
    with pytest.raises(ConfigError, match="inner layers of 500(.|\n)*model.surrogate.feedforward"):
        copy_to_surrogate(model.surrogate, as_surrogate(model.config, bounded(bert()[1])), [])


class TestALongerCanvasThanTheInverters:
    """An inverter of up to 12 tokens as the start of one of up to 20."""

    @pytest.fixture
    def start(self, build_model, stir, tmp_path):
        def start(**changes):
            short = stir(build_model(**changes))
            save_file(short.state_dict(), tmp_path / "model.safetensors")
            long = build_model(canvas_length=20, **changes)
            before = {name: part.clone() for name, part in long.state_dict().items()}
            start_from_inverter(long, tmp_path)
            return short, long, before

        return start

    def test_short_texts_are_denoised_as_before(self, start):
        short, long, _ = start()
        canvas = torch.randint(5, 30, (3, 12))
        given = torch.randn(3, 16)
        states = [model.hidden(canvas, model.condition(given)) for model in (short, long)]
        assert torch.allclose(*states, atol=1e-5)

    def test_further_positions_move_as_the_known_ones_did(self, start):
        short, long, before = start()
        name = "denoiser.position_embedding.weight"
        moved = long.state_dict()[name] - before[name]
        assert torch.allclose(moved[12:], moved[:12].mean(0).expand(8, -1), atol=1e-5)
        assert torch.allclose(long.state_dict()[name][:12], short.state_dict()[name])

    def test_far_from_the_end_all_positions_are_alike(self, start):
        short, long, _ = start()
        ends = long.denoiser.end_embedding.weight
        assert torch.allclose(ends[:12], short.denoiser.end_embedding.weight)
        assert torch.allclose(ends[12:], ends[11].expand(8, -1))

    def test_its_surrogate_is_left_out_where_the_model_has_none(self, build_model, tmp_path):
        shape = {"freeze_token_embeddings": True}
        save_file(build_model(surrogate={"layers": 1}, **shape).state_dict(), tmp_path / "model.safetensors")
        assert start_from_inverter(build_model(canvas_length=20, **shape), tmp_path) == []

    def test_a_shorter_canvas_is_refused(self, build_model, tmp_path):
        save_file(build_model(canvas_length=20).state_dict(), tmp_path / "model.safetensors")
        with pytest.raises(ConfigError, match="another shape"):
            start_from_inverter(build_model(), tmp_path)
