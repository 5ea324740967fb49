"""Inverters of other packages: found by name, read without running their code, and explained when they are missing."""

import json
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from unembed import hub
from unembed.errors import CheckpointError, UnembedError
from unembed.hub import fetch_checkpoint, installed_inverters
from unembed.inverter import Inverter

PACKAGES = Path(__file__).parents[2] / "packages"
VECTORS = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that Python looks for packages in."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


@pytest.fixture
def offer(site):
    """Installs a package, as pip would, that offers an inverter: a name, and the module whose folder holds it."""

    def offer(package, name, module):
        metadata = site / f"{package.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[unembed.inverters]\n{name} = {module}\n")

    return offer


@pytest.fixture
def tiny(site, offer, readout_checkpoint):
    """The folder of an installed package that offers the inverter ``tiny``; its code must not run."""
    folder = Path(shutil.copytree(readout_checkpoint, site / "tiny_inverter"))
    (folder / "__init__.py").write_text("raise RuntimeError('this code must not run')\n")
    offer("unembed-tiny", "tiny", "tiny_inverter")
    return folder


def test_an_installed_inverter_is_loaded_by_its_name_and_its_code_is_not_run(tiny):
    inverter = Inverter.from_pretrained("tiny", device="cpu")
    assert inverter.name == "tiny"
    assert fetch_checkpoint("tiny") == tiny
    assert len(inverter.invert(VECTORS)) == 2
    assert "tiny_inverter" not in sys.modules
    assert installed_inverters()[0] == "default"
    assert "tiny" in installed_inverters()


def test_an_installed_inverter_comes_before_a_folder_of_its_name(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    assert fetch_checkpoint("tiny") == tiny
    assert fetch_checkpoint("./tiny") == Path("./tiny")


def test_no_package_can_take_the_name_of_unembed_s_own_inverter(tiny, offer):
    offer("unembed-other", "default", "tiny_inverter")
    assert fetch_checkpoint("default") != tiny
    assert installed_inverters().count("default") == 1


def test_the_commands_take_the_name(tiny, run_cli, tmp_path):
    np.save(tmp_path / "vectors.npy", VECTORS)
    ended = run_cli("invert", tmp_path / "vectors.npy", "--model", "tiny", "--json")
    assert ended.code == 0, ended.err
    ended = run_cli("words", tmp_path / "vectors.npy", "--model", "tiny", "--json")
    assert ended.code == 0, ended.err
    assert len(ended.out.splitlines()) == 2


def test_the_list_says_whose_vectors_each_inverter_reads(tiny, run_cli):
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps(config | {"languages": ["en", "zh"]}))
    out = run_cli("inverters").out
    assert "tiny  (unembed-tiny 1.0)\n    reads fake, 16 numbers; writes up to 12 tokens" in out
    assert "languages: Chinese, English" in out
    listed = json.loads(run_cli("inverters", "--json").out)
    assert listed["tiny"]["languages"] == ["en", "zh"]
    assert listed["tiny"]["folder"] == str(tiny)
    assert listed["default"]["encoder"] == "all-MiniLM-L6-v2"
    assert listed["default"]["languages"] == ["en"]


class TestMissing:
    @pytest.fixture(autouse=True)
    def known(self, monkeypatch):
        monkeypatch.setattr(hub, "AVAILABLE", {"absent": "pip install ./packages/absent"})

    def test_a_known_inverter_that_is_not_installed_says_what_to_type(self, run_cli):
        ended = run_cli("invert", "a text", "--model", "absent")
        assert ended.code == 2
        assert "The inverter 'absent' is not installed" in ended.err
        assert "run: pip install ./packages/absent" in ended.err

    def test_it_is_listed(self, run_cli):
        assert (
            "absent  (not installed)\n    in a checkout of unembed: pip install ./packages/absent"
            in run_cli("inverters").out
        )
        assert json.loads(run_cli("inverters", "--json").out)["absent"]["installed"] is False

    def test_any_other_name_says_what_can_be_given(self):
        with pytest.raises(CheckpointError, match="no inverter and no folder nobody") as caught:
            Inverter.from_pretrained("nobody")
        assert caught.value.remedy.endswith("or a name that unembed inverters lists.")


def test_two_packages_with_one_name_are_an_error_that_names_both(tiny, offer, run_cli):
    offer("unembed-other", "tiny", "tiny_inverter")
    with pytest.raises(UnembedError, match="unembed-other, unembed-tiny"):
        Inverter.from_pretrained("tiny")
    assert "cannot be used: Several packages offer 'tiny'" in run_cli("inverters").out


class TestDamaged:
    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
    def test_a_missing_file_is_named(self, tiny, name):
        (tiny / name).unlink()
        with pytest.raises(CheckpointError, match=f"has no {name}"):
            Inverter.from_pretrained("tiny")

    def test_a_configuration_that_is_none_is_listed_as_a_problem(self, tiny, run_cli):
        (tiny / "config.json").write_text("{}")
        ended = run_cli("inverters")
        assert ended.code == 0
        assert "cannot be used" in ended.out
        assert "problem" in json.loads(run_cli("inverters", "--json").out)["tiny"]

    @pytest.mark.parametrize("module", ["there_is_no_such_module", "a_module", "there.is.none"])
    def test_an_entry_point_without_a_folder_says_which_package_to_install_again(self, offer, site, module):
        (site / "a_module.py").touch()
        offer("unembed-broken", "broken", module)
        with pytest.raises(UnembedError, match="from the package unembed-broken") as caught:
            fetch_checkpoint("broken")
        assert caught.value.remedy == "Install unembed-broken again, or uninstall it."


@pytest.mark.parametrize("name", hub.AVAILABLE)
def test_each_inverter_of_this_checkout_is_a_package_that_offers_its_name(name):
    folder = PACKAGES / hub.AVAILABLE[name].rpartition("/")[2]
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    module = project["project"]["entry-points"]["unembed.inverters"][name]
    assert (folder / "src" / module / "__init__.py").is_file()
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"src/{module}"]


def test_what_unembed_builds_leaves_the_packages_out():
    build = tomllib.loads((PACKAGES.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"]["packages"] == ["src/unembed"]
    assert "/packages" in build["sdist"]["exclude"]
