import json

import huggingface_hub
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from unembed import Inverter
from unembed.errors import CheckpointError
from unembed.model import NGrams


@pytest.fixture
def inverter(make_inverter):
    return make_inverter(readout="linear", metrics={"elbo": 3.25, "token_accuracy": 0.5, "step": 1000})


def test_what_is_saved_is_what_is_loaded(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "it")
    loaded = Inverter.from_pretrained(tmp_path / "it", device="cpu")
    vectors = torch.randn(5, 16)
    for after, before in zip(loaded.invert(vectors), inverter.invert(vectors), strict=True):
        assert (after.tokens, after.passes) == (before.tokens, before.passes)
        # Where weights lie in memory may change the last digit of a product.
        assert after.confidences == pytest.approx(before.confidences, rel=1e-5)
    assert loaded.info == inverter.info


def test_a_folder_holds_four_files_and_nothing_that_runs_code(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "it")
    names = {path.name for path in (tmp_path / "it").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "README.md"}


def test_words_and_languages_of_the_training_texts_are_kept(inverter, tmp_path):
    inverter.known_words = ("the", "Rechnung", "会议")
    inverter.info = inverter.info.model_copy(update={"languages": ("de", "no", "zh")})
    inverter.save_pretrained(tmp_path / "it")
    loaded = Inverter.from_pretrained(tmp_path / "it", device="cpu")
    assert loaded.known_words == inverter.known_words
    assert loaded.info.languages == ("de", "no", "zh")
    assert 'language: ["de", "no", "zh"]' in (tmp_path / "it" / "README.md").read_text()


def test_the_ngrams_of_the_training_texts_are_kept(inverter, tmp_path):
    ids = np.array([[3, 4, 5, 6]] * 8)
    counted = NGrams.count(lambda: [(ids, np.full(8, 4))], inverter.info.vocabulary.size)
    inverter = Inverter(inverter.model, inverter.tokenizer, inverter.info, ngrams=counted.to_bytes())
    inverter.save_pretrained(tmp_path / "it")
    loaded = Inverter.from_pretrained(tmp_path / "it", device="cpu")
    np.testing.assert_array_equal(loaded.ngrams.log_odds([(3, 4, 5)]), counted.log_odds([(3, 4, 5)]))


def test_an_inverter_without_ngrams_has_none(inverter):
    assert inverter.ngrams is None


def test_ngrams_of_another_vocabulary_are_an_error(inverter):
    counted = NGrams.count(lambda: [(np.array([[1, 2]]), np.array([2]))], 7)
    other = Inverter(inverter.model, inverter.tokenizer, inverter.info, ngrams=counted.to_bytes())
    with pytest.raises(CheckpointError, match="another vocabulary"):
        _ = other.ngrams


def test_damaged_ngrams_are_an_error_when_they_are_needed(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "it")
    (tmp_path / "it" / "ngrams.npz").write_bytes(b"PK\x03\x04 cut short")
    loaded = Inverter.from_pretrained(tmp_path / "it", device="cpu")
    with pytest.raises(CheckpointError, match="n-grams cannot be read"):
        _ = loaded.ngrams


def test_words_that_cannot_be_read_are_an_error(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "it")
    (tmp_path / "it" / "words.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError, match=r"words\.txt cannot be read"):
        Inverter.from_pretrained(tmp_path / "it")


def test_half_precision_halves_the_file(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "full")
    inverter.save_pretrained(tmp_path / "half", "float16")
    full, half = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("full", "half"))
    assert half < 0.6 * full
    assert Inverter.from_pretrained(tmp_path / "half").model.prior_scale.dtype == torch.float32


@pytest.mark.parametrize("readout", ["none", "linear", "mlp"])
def test_a_compact_file_holds_the_large_tables_in_8_bits_and_loads_as_nearly_the_same_model(
    make_inverter, tmp_path, readout
):
    inverter = make_inverter(readout=readout)
    with torch.no_grad():
        inverter.model.denoiser.token_embedding.weight[3] = 0.0  # a row without a largest entry
    inverter.save_pretrained(tmp_path / "it", "compact")
    stored = load_file(tmp_path / "it" / "model.safetensors")
    in_8_bits = {name for name, tensor in stored.items() if tensor.dtype == torch.int8}
    table = {"none": set(), "linear": {"readout.linear.weight"}, "mlp": {"readout.out.weight"}}[readout]
    assert in_8_bits == {"denoiser.token_embedding.weight"} | table
    loaded = Inverter.from_pretrained(tmp_path / "it", device="cpu").model.state_dict()
    for name, wanted in inverter.model.state_dict().items():
        error = (loaded[name] - wanted).abs()
        largest = wanted.abs().amax(-1, keepdim=True) if name in in_8_bits else wanted.abs()
        assert (error <= 0.005 * largest + 1e-6).all(), name


def test_any_matrix_can_be_stored_in_8_bits_where_that_is_asked_for(make_inverter, tmp_path):
    inverter = make_inverter(readout="mlp")
    inverter.save_pretrained(tmp_path / "it", "compact", ("readout.*", "denoiser.token_embedding.weight"))
    stored = load_file(tmp_path / "it" / "model.safetensors")
    in_8_bits = {name for name, tensor in stored.items() if tensor.dtype == torch.int8}
    blocks = {"readout.blocks.0.up.weight", "readout.blocks.0.down.weight"}
    assert in_8_bits == {"denoiser.token_embedding.weight", "readout.out.weight"} | blocks, (
        "matrices, if they are large"
    )
    loaded = Inverter.from_pretrained(tmp_path / "it", device="cpu").model.state_dict()
    for name in blocks:
        wanted = inverter.model.state_dict()[name]
        assert ((loaded[name] - wanted).abs() <= 0.005 * wanted.abs().amax(1, keepdim=True)).all()


def test_an_inverter_of_an_earlier_version_loads_as_the_same_model(make_inverter, tmp_path):
    """Its config told how the readout had been trained, and the positions of MPNet had another name."""
    inverter = make_inverter(readout="mlp", architecture="mpnet", norm="post")
    inverter.save_pretrained(tmp_path)
    facts = json.loads((tmp_path / "config.json").read_text())
    facts["model"]["initialise_from"] = "all-mpnet-base-v2"
    facts["model"]["readout"] |= {"ridge": 0.01, "rows": 4, "steps": 0, "batch_size": 5, "learning_rate": 0.1}
    facts["model"]["readout"] |= {"sampled_softmax": 6, "frequent_tokens": 7, "start_from": None}
    del facts["model"]["readout"]["expansion"]
    (tmp_path / "config.json").write_text(json.dumps(facts))
    weights = load_file(tmp_path / "model.safetensors")
    weights["denoiser.places.bias.weight"] = weights.pop("denoiser.positions.bias.weight")
    save_file(weights, tmp_path / "model.safetensors")
    loaded = Inverter.from_pretrained(tmp_path, device="cpu")
    assert loaded.info == inverter.info
    state = loaded.model.state_dict()
    assert all(torch.equal(state[name], weight) for name, weight in inverter.model.state_dict().items())


def test_saving_again_replaces_its_own_files_and_leaves_the_user_s(inverter, tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "notes.txt").write_text("mine")
    (tmp_path / "it" / "config.json").write_text("old")
    inverter.save_pretrained(tmp_path / "it")
    assert (tmp_path / "it" / "notes.txt").read_text() == "mine"
    assert Inverter.from_pretrained(tmp_path / "it").info == inverter.info
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_the_card_names_the_encoder_and_every_measure_by_its_name(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "it")
    card = (tmp_path / "it" / "README.md").read_text()
    assert "An inverter for fake" in card
    assert "| token_accuracy | 0.5 | free-running" in card
    assert "| step | 1,000 |" in card


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_foreign(folder):
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 384}))


def swap_weights(folder):
    save_file({"weight": torch.zeros(2)}, folder / "model.safetensors")


def pickle_instead(folder):
    torch.save({"weight": torch.zeros(2)}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "truncated or not a safetensors file"),
        (pickle_instead, "truncated or not a safetensors file"),
        (make_foreign, "not the configuration of an unembed inverter"),
        (swap_weights, "do not belong to"),
        (lambda folder: (folder / "config.json").write_text("{"), "not the configuration"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), r"tokenizer.json cannot be read"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"has no tokenizer\.json"),
    ],
)
def test_a_damaged_or_foreign_checkpoint_is_told_apart(inverter, tmp_path, damage, message):
    inverter.save_pretrained(tmp_path / "it")
    damage(tmp_path / "it")
    with pytest.raises(CheckpointError, match=message):
        Inverter.from_pretrained(tmp_path / "it")


def test_another_tokenizer_is_refused(inverter, tmp_path):
    inverter.save_pretrained(tmp_path / "it")
    inverter.tokenizer.__class__.from_str(inverter.tokenizer.to_str().replace('"garden"', '"gardens"')).save(
        str(tmp_path / "it" / "tokenizer.json")
    )
    with pytest.raises(CheckpointError, match="not the tokenizer that the inverter was trained with"):
        Inverter.from_pretrained(tmp_path / "it")


def test_a_folder_that_does_not_exist_is_not_looked_up_on_the_hub():
    with pytest.raises(CheckpointError, match="There is no folder"):
        Inverter.from_pretrained("./nowhere/at/all")


def test_a_hub_id_is_fetched_without_code_and_loaded(inverter, tmp_path, monkeypatch):
    inverter.save_pretrained(tmp_path / "remote")
    asked = {}

    def snapshot_download(name, **options):
        asked.update(options, name=name)
        return str(tmp_path / "remote")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    loaded = Inverter.from_pretrained("someone/inverter", revision="v1", token="secret")
    assert loaded.info == inverter.info
    assert (asked["name"], asked["revision"], asked["token"]) == ("someone/inverter", "v1", "secret")
    assert all(not pattern.endswith((".py", ".bin", ".pt")) for pattern in asked["allow_patterns"])


def test_an_unreachable_hub_is_an_error_with_a_remedy(monkeypatch):
    def snapshot_download(name, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(CheckpointError, match="no route"):
        Inverter.from_pretrained("someone/inverter")


def test_pushing_uploads_the_four_files(inverter, monkeypatch):
    uploaded = {}

    class Api:
        def __init__(self, token=None):
            uploaded["token"] = token

        def create_repo(self, name, private, exist_ok):
            uploaded.update(name=name, private=private)

        def upload_folder(self, repo_id, folder_path, **_):
            uploaded["files"] = sorted(path.name for path in folder_path.iterdir())
            return type("Commit", (), {"commit_url": "https://hub/commit/1"})

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    assert inverter.push_to_hub("me/inverter", private=True, token="t") == "https://hub/commit/1"
    assert uploaded["files"] == ["README.md", "config.json", "model.safetensors", "tokenizer.json"]
    assert (uploaded["name"], uploaded["private"], uploaded["token"]) == ("me/inverter", True, "t")
