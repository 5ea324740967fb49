"""Recipes that come with unembed are found by name, wherever the command runs."""

import pytest

from unembed import recipes
from unembed.config import load_recipe
from unembed.errors import ConfigError
from unembed.recipes import find_recipe


@pytest.mark.parametrize("name", ["tiny", "tiny.yaml", "configs/tiny.yaml"])
def test_a_recipe_that_comes_with_unembed_is_found_from_any_folder(name, configs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe(name) == configs / "tiny.yaml"
    assert load_recipe(name) == load_recipe(configs / "tiny.yaml")


def test_a_file_of_the_same_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text("training: {steps: 777, warmup_steps: 1}")
    assert load_recipe("tiny.yaml").training.steps == 777


def test_the_recipes_of_an_installed_package_come_before_those_of_a_checkout(tmp_path, monkeypatch):
    (tmp_path / "tiny.yaml").touch()
    monkeypatch.setattr(recipes, "_INSTALLED", tmp_path)
    assert find_recipe("tiny") == tmp_path / "tiny.yaml"


@pytest.mark.parametrize("name", ["tinny", "elsewhere/tiny.yaml", "configs/tiny.json"])
def test_an_unknown_recipe_is_an_error_that_names_files_that_exist(name, configs):
    with pytest.raises(ConfigError, match="no such file") as caught:
        find_recipe(name)
    folder, _, names = caught.value.remedy.partition(" in ")[2].partition(": ")
    assert folder == str(configs)
    assert "tiny" in names.removesuffix(".").split(", ")
    assert all((configs / f"{name}.yaml").is_file() for name in names.removesuffix(".").split(", "))
