from pathlib import Path

import pytest

from unembed.config import ModelRecipe, Recipe, dump_recipe, load_recipe, parse
from unembed.errors import ConfigError

RECIPES = sorted(path.stem for path in (Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_loads_and_survives_a_round_trip(name, configs, tmp_path):
    recipe = load_recipe(configs / f"{name}.yaml")
    dump_recipe(recipe, tmp_path / "copy.yaml")
    assert load_recipe(tmp_path / "copy.yaml") == recipe


@pytest.mark.parametrize("name", ["paper-qwen3", "paper-jina-v3", "paper-embeddinggemma"])
def test_the_paper_s_recipes_hold_the_figures_of_its_table_6(name, configs):
    recipe = load_recipe(configs / f"{name}.yaml")
    model, training = recipe.model, recipe.training
    assert (model.layers, model.width, model.heads, model.feedforward, model.dropout) == (8, 768, 12, 3072, 0.1)
    assert (training.batch_size, training.learning_rate, training.weight_decay) == (400, 1e-4, 0.01)
    assert (training.ema_decay, training.steps) == (0.9999, 200_000)
    assert (recipe.noise.schedule, recipe.noise.weight, model.time_conditioning) == ("loglinear", "paper", True)
    assert recipe.data.canvas_length == 32


def test_an_unknown_key_is_refused_and_the_nearest_one_named():
    with pytest.raises(ConfigError, match=r"training\.lerning_rate: unknown key; did you mean 'learning_rate'"):
        parse(Recipe, {"training": {"lerning_rate": 1e-3}}, "recipe")


def test_an_unknown_key_of_a_nested_section_is_compared_with_that_section():
    with pytest.raises(ConfigError, match=r"training\.readout\.rigde: unknown key; did you mean 'ridge'"):
        parse(Recipe, {"training": {"readout": {"rigde": 1.0}}}, "recipe")


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        parse(Recipe, {"training": {"steps": 0, "seed": "x"}, "noise": {"schedule": "cosine"}}, "recipe")
    assert all(key in str(caught.value) for key in ("training.steps", "training.seed", "noise.schedule"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 100, "heads": 12}, "not a multiple of heads"),
        ({"architecture": "modernbert", "norm": "post"}, "needs norm: pre"),
        ({"architecture": "modernbert", "width": 36, "heads": 12}, "even width, not of 3"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        parse(ModelRecipe, values, "model")


@pytest.mark.parametrize(
    ("model", "start", "message"),
    [
        ({}, {"encoder": "all-MiniLM-L6-v2"}, "needs model.norm: post"),
        ({"architecture": "mpnet"}, {"encoder": "all-mpnet-base-v2"}, "needs model.norm: post"),
        ({"freeze_token_embeddings": True}, {}, "needs training.start_from"),
    ],
)
def test_a_model_that_does_not_fit_what_it_starts_from_is_refused(model, start, message):
    with pytest.raises(ConfigError, match=message):
        parse(Recipe, {"model": model, "training": {"start_from": start}}, "recipe")


def test_an_open_recipe_is_resolved_by_the_store_and_a_contradiction_refused():
    sizes = {"embedding_dim": 16, "vocabulary_size": 40, "canvas_length": 12}
    config = ModelRecipe(layers=3, canvas_length=12).resolve(**sizes)
    assert (config.layers, config.embedding_dim, config.vocabulary_size, config.canvas_length) == (3, 16, 40, 12)
    with pytest.raises(ConfigError, match="model.canvas_length: 32, the store has 12"):
        ModelRecipe(canvas_length=32).resolve(**sizes)


def test_a_recipe_of_an_earlier_version_still_loads_and_its_new_keys_are_told(tmp_path, caplog):
    (tmp_path / "old.yaml").write_text("""
model:
  norm: post
  initialise_from: all-MiniLM-L6-v2
  readout: {kind: mlp, blocks: 2, steps: 7, ridge: 0.5, start_from: work/old}
training: {start_from: work/run/best, precision: bf16}
""")
    recipe = load_recipe(tmp_path / "old.yaml")
    start, readout = recipe.training.start_from, recipe.training.readout
    assert (start.encoder, str(start.inverter), str(start.readout)) == ("all-MiniLM-L6-v2", "work/run/best", "work/old")
    assert (recipe.model.readout.kind, recipe.model.readout.blocks, readout.steps, readout.ridge) == ("mlp", 2, 7, 0.5)
    assert recipe.training.precision == "bfloat16"
    assert "model.readout.steps is now training.readout.steps" in caplog.text
    assert "training.start_from is now training.start_from.inverter" in caplog.text


def test_a_recipe_that_a_run_of_an_earlier_version_wrote_still_loads(tmp_path):
    """It spelled out every key, also those that were not set: else no such run could be resumed."""
    (tmp_path / "recipe.yaml").write_text("""
model:
  initialise_from: null
  readout: {kind: linear, steps: 7, start_from: null}
training: {steps: 300, start_from: null, precision: auto}
""")
    recipe = load_recipe(tmp_path / "recipe.yaml")
    assert recipe == parse(Recipe, {"training": {"steps": 300, "readout": {"steps": 7}}}, "the same today")


@pytest.mark.parametrize("training", ["null", "3", "[]"])
def test_an_old_key_beside_a_section_that_is_none_is_refused_by_name(training, tmp_path):
    (tmp_path / "x.yaml").write_text(f"model: {{initialise_from: all-MiniLM-L6-v2}}\ntraining: {training}\n")
    with pytest.raises(ConfigError, match="training: Input should be"):
        load_recipe(tmp_path / "x.yaml")


def test_warm_up_must_end_before_training_does():
    with pytest.raises(ConfigError, match="warmup_steps 200 must be less than steps 100"):
        parse(Recipe, {"training": {"steps": 100, "warmup_steps": 200}}, "recipe")


def test_a_config_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Recipe().training.steps = 1


@pytest.mark.parametrize(
    ("text", "message"), [("a: [", "not valid YAML"), ("just text", "is not a recipe"), ("", "is not a recipe")]
)
def test_a_file_that_is_no_recipe_is_refused(text, message, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_recipe(tmp_path / "x.yaml")


def test_a_missing_recipe_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"Cannot read the recipe .*none\.yaml"):
        load_recipe(tmp_path / "none.yaml")
