"""``unembed fill``: where vectors come from, which rows are filled, and what is printed."""

import json

import numpy as np
import pytest

from .conftest import ANIMALS

TEMPLATE = "the {who} sleeps."


@pytest.fixture(autouse=True)
def asked(monkeypatch, fake_encoder):
    names = []
    monkeypatch.setattr(
        "unembed.encoders.loading.load_encoder", lambda name, **options: names.append(name) or fake_encoder
    )
    return names


@pytest.fixture
def words(tmp_path):
    (tmp_path / "animals.txt").write_text("\n".join(ANIMALS))
    return f"who={tmp_path / 'animals.txt'}"


@pytest.fixture
def store(fake_encoder, tmp_path):
    np.save(tmp_path / "v.npy", fake_encoder.encode(["the dog sleeps.", "the queen sleeps.", "the boy sleeps."]))
    return tmp_path / "v.npy"


@pytest.fixture
def fill(run_cli, tiny_checkpoint, words):
    def fill(*arguments):
        ended = run_cli("fill", *arguments, "--wordlist", words, "-m", tiny_checkpoint)
        assert ended.code == 0, ended.err
        return ended.out

    return fill


@pytest.fixture
def refused(run_cli, tiny_checkpoint):
    def refused(*arguments):
        ended = run_cli("fill", *arguments, "-m", tiny_checkpoint)
        assert ended.code == 2, ended
        assert "Traceback" not in ended.err
        return " ".join(ended.err.split())

    return refused


def test_the_first_vector_is_filled_by_default(fill, store):
    out = fill(TEMPLATE, store)
    assert out.startswith("vector     0\n")
    assert "the dog sleeps." in out
    assert "cosine 1.000  who: dog" in out
    assert "none of the 12 ways to fill the slots" in out
    assert "queen sleeps." not in out


def test_rows_are_chosen(fill, store):
    found = [json.loads(line) for line in fill(TEMPLATE, store, "--limit", 2, "--json").splitlines()]
    assert [(record["row"], record["answers"][0]["values"]["who"]) for record in found] == [(0, "dog"), (1, "queen")]
    (record,) = [json.loads(line) for line in fill(TEMPLATE, store, "--row", 2, "--json").splitlines()]
    assert (record["row"], record["answers"][0]["text"]) == (2, "the boy sleeps.")
    assert record["verdict"] in ("certain", "likely", "a guess", "not in the list")


def test_a_text_is_embedded_to_try_it(fill):
    assert "who: horse" in fill(TEMPLATE, "the horse sleeps.").splitlines()[2]


def test_blind_loads_no_encoder(fill, store, asked):
    out = fill(TEMPLATE, store, "--blind", "--top", 2)
    assert "without the encoder" in out
    assert len(out.splitlines()) == 5
    assert not asked


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["the king", "{store}"], "has no slot"),
        ([TEMPLATE, "{store}", "--slot", "hwo=cities"], "did you mean 'who'?"),
        ([TEMPLATE, "{store}", "--slot", "who=citis"], "did you mean 'cities'?"),
        ([TEMPLATE, "{store}", "--slot", "cities"], "Write --slot SLOT=KIND"),
        ([TEMPLATE, "{store}", "--wordlist", "who=nowhere.txt"], "nowhere.txt"),
        ([TEMPLATE, "{store}", "--row", "1", "--limit", "2"], "Give one of the two"),
        ([TEMPLATE, "{store}", "--row", "3", "--slot", "who=months"], "There is no row 3"),
        ([TEMPLATE, "missing.npy"], "missing.npy"),
    ],
)
def test_mistakes_are_explained(refused, store, arguments, problem):
    assert problem in refused(*(str(store) if each == "{store}" else each for each in arguments))


def test_vectors_of_another_encoder_are_refused(refused, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((1, 7), np.float32))
    assert "reads 16 numbers each" in refused(TEMPLATE, tmp_path / "wide.npy", "--slot", "who=months")
