import json
import os
import signal

import pytest
import torch
from safetensors.torch import load_file, save_file

from unembed.config import Recipe, parse
from unembed.errors import ConfigError, StoreError, TrainingError
from unembed.model.packing import pack
from unembed.training import Callbacks, train
from unembed.training.log import read_metrics


@pytest.fixture
def recipe(tiny_store, tmp_path):
    """Builds recipes for the tiny store; sections given as keywords are merged into it."""

    def build(**changes):
        sections = {
            "encoder": {"name": "fake"},
            "data": {"store": tiny_store, "canvas_length": 12, "validation_rows": 8},
            "model": {
                "layers": 1,
                "width": 16,
                "heads": 2,
                "feedforward": 32,
                "readout": {"kind": "linear", "ridge": 1.0},
            },
            "noise": {},
            "training": {
                "output": tmp_path / "run",
                "steps": 12,
                "batch_size": 8,
                "learning_rate": 1e-2,
                "warmup_steps": 2,
                "log_every": 1,
                "validate_every": 6,
                "ema_decay": 0.5,
            },
        }
        return parse(Recipe, {name: section | changes.get(name, {}) for name, section in sections.items()}, "test")

    return build


def run(recipe, callbacks=None, **options):
    return train(recipe, device="cpu", callbacks=callbacks, **options)


def stop_at(step):
    def on_step(number, *_):
        if number == step:
            os.kill(os.getpid(), signal.SIGTERM)

    return Callbacks(on_step=on_step)


def losses(folder):
    return [(e["step"], e["elbo"], e["gradient_norm"]) for e in read_metrics(folder) if e["kind"] == "train"]


VARIANTS = {
    "adamw": {},
    "muon": {"training": {"optimiser": "muon"}},
    "dropout and accumulation": {"model": {"dropout": 0.2}, "training": {"accumulation": 2}},
    "fixed canvas": {"model": {"canvas": "fixed", "time_conditioning": True, "conditioning": "adaln"}},
    "sampled softmax": {"training": {"sampled_softmax": 8, "frequent_tokens": 16}},
    "mlp readout": {"model": {"readout": {"kind": "mlp", "bottleneck": 8, "steps": 5, "batch_size": 8}}},
    "counted masks": {"noise": {"masking": "count"}, "model": {"prefix_tokens": 2}},
    "fixed canvas with all": {
        "model": {"canvas": "fixed", "readout": {"kind": "mlp", "bottleneck": 8, "steps": 5, "batch_size": 8}},
        "training": {"sampled_softmax": 8, "frequent_tokens": 16},
    },
    "data workers": {"training": {"data_workers": 1}},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_resumed_run_takes_the_very_steps_of_an_uninterrupted_one(recipe, tmp_path, variant):
    changes = VARIANTS[variant]

    def build(name):
        made = recipe(**changes)
        return made.model_copy(update={"training": made.training.model_copy(update={"output": tmp_path / name})})

    assert run(build("whole")).reason == "finished"
    stopped = run(build("parts"), stop_at(5))
    assert (stopped.reason, stopped.step) == ("interrupted", 5)
    resumed = run(build("parts"), resume=True)
    assert (resumed.reason, resumed.step) == ("finished", 12)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    one, other = (load_file(tmp_path / name / "state.safetensors") for name in ("whole", "parts"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_training_lowers_the_validation_loss(recipe):
    made = recipe(training={"steps": 60, "warmup_steps": 10, "validate_every": 5})
    run(made)
    elbos = [event["elbo"] for event in read_metrics(made.training.output) if event["kind"] == "validation"]
    assert len(elbos) == 12
    assert elbos[-1] < elbos[0] - 0.3


def test_a_run_leaves_best_latest_milestones_curves_metrics_and_its_recipe(recipe, tmp_path):
    exported = []

    def export(folder, model, facts):
        exported.append((folder.name, facts["step"], facts["saved_step"]))
        assert not model.training

    made = recipe(training={"milestones": [4, 12], "free_running_rows": 4})
    outcome = run(
        made, Callbacks(export=export, free_running=lambda model, store, rows: {"token_accuracy": len(rows) / 100})
    )
    assert {name for name, *_ in exported} == {"best", "latest", "milestone-000004", "milestone-000012"}
    assert ("milestone-000004", 4, 4) in exported  # measured, and at this very step
    assert outcome.metrics["token_accuracy"] == 0.04
    assert {"elbo", "masked_accuracy@0.1", "masked_accuracy@0.5", "masked_accuracy@0.9"} <= outcome.metrics.keys()
    folder = tmp_path / "run"
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "recipe.yaml").is_file()
    assert any((folder / "tensorboard").iterdir())
    assert not list(folder.rglob("*.pt")) + list(folder.rglob("*.bin")) + list(folder.rglob("*.pkl"))


def test_time_being_up_ends_with_a_measured_and_saved_model(recipe):
    outcome = run(recipe(), max_minutes=0.0)
    assert (outcome.reason, outcome.step) == ("time", 1)
    assert "elbo" in outcome.metrics
    assert run(recipe(), resume=True).reason == "finished"


def test_a_run_that_no_longer_improves_stops_early(recipe):
    outcome = run(recipe(training={"learning_rate": 1e-12, "validate_every": 1, "patience": 3}))
    assert outcome.reason == "patience"
    assert outcome.step == 4


def test_a_finished_run_can_be_prolonged(recipe):
    run(recipe())
    assert run(recipe(training={"steps": 15}), resume=True).step == 15


def test_a_run_is_not_overwritten_and_nothing_is_not_resumed(recipe):
    with pytest.raises(TrainingError, match="nothing to resume"):
        run(recipe(), resume=True)
    run(recipe())
    with pytest.raises(TrainingError, match="holds a run already"):
        run(recipe())


def test_a_run_is_not_resumed_with_a_recipe_that_makes_another_model(recipe):
    run(recipe())
    with pytest.raises(TrainingError, match="begun with another model, training.batch_size"):
        run(recipe(model={"layers": 2}, training={"batch_size": 4}), resume=True)


def test_a_damaged_state_is_told_and_not_guessed_at(recipe, tmp_path):
    run(recipe())
    weights = tmp_path / "run" / "state.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(TrainingError, match="cannot be resumed"):
        run(recipe(), resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": {"name": "all-MiniLM-L6-v2"}}, "encoder is 'fake', the recipe wants 'all-MiniLM-L6-v2'"),
        ({"encoder": {"name": "fake", "prompt": "query: "}}, "prompt is None, the recipe wants 'query: '"),
        ({"data": {"canvas_length": 32}}, "canvas_length is 12, the recipe wants 32"),
    ],
)
def test_a_store_that_does_not_fit_the_recipe_is_refused_with_the_reason(recipe, changes, message):
    with pytest.raises(StoreError, match=message):
        run(recipe(**changes))


def test_a_model_that_does_not_fit_the_store_is_refused_with_the_reason(recipe):
    with pytest.raises(ConfigError, match="model.embedding_dim: 99, the store has 16"):
        run(recipe(model={"embedding_dim": 99}))


def test_a_loss_that_is_no_number_stops_the_run_and_leaves_the_last_save(recipe, monkeypatch):
    run(recipe(training={"steps": 3}))
    monkeypatch.setattr("unembed.model.loss.cross_entropy", lambda logits, _: logits.sum(-1) * torch.nan)
    with pytest.raises(TrainingError, match="the loss is nan"):
        run(recipe(training={"steps": 6}), resume=True)
    monkeypatch.undo()
    assert run(recipe(training={"steps": 6}), resume=True).step == 6


def test_metrics_hold_one_line_per_step_after_a_kill_between_saves(recipe, tmp_path):
    run(recipe(), stop_at(5))
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:  # what a killed process would have left
        file.write(json.dumps({"kind": "train", "step": 6, "elbo": 0.0}) + "\n" + '{"kind": "tr')
    run(recipe(), resume=True)
    assert [step for step, *_ in losses(tmp_path / "run")] == list(range(1, 13))


def test_the_validation_elbo_is_the_bound_whatever_training_weighs(recipe):
    """A model that guesses uniformly has the entropy of uniform guessing under every schedule and canvas."""
    from unembed.model import NoiseSchedule
    from unembed.store import Store
    from unembed.training.compatibility import build_for_store
    from unembed.training.validation import Validation, validation_rows

    for noise in ({}, {"schedule": "loglinear", "weight": "paper"}, {"full_mask_share": 0.5}):
        for canvas, tolerance in (("exact", 1e-4), ("fixed", 0.15)):  # masks may fall on padding, which does not count
            made = recipe(noise=noise, model={"canvas": canvas, "readout": {"kind": "none"}})
            store = Store(made.data.store / "train")
            model = build_for_store(made.model, store.manifest).eval()
            for parameter in model.denoiser.parameters():
                parameter.data.zero_()
            measure = Validation(store, validation_rows(store, 48), NoiseSchedule(made.noise), made.training)
            choices = model.denoiser.outputs - len(model.vocabulary.special)
            assert measure(model)["elbo"] == pytest.approx(torch.tensor(choices).log().item(), rel=tolerance)


def test_two_runs_do_not_share_a_folder(recipe):
    from unembed.files import locked_folder

    made = recipe()
    with locked_folder(made.training.output), pytest.raises(TrainingError, match="Another process is training"):
        run(made)


def test_a_full_disk_while_saving_is_named_and_costs_nothing(recipe, monkeypatch):
    import errno
    from pathlib import Path

    from unembed.errors import DiskFullError

    run(recipe(training={"steps": 3}))
    write = Path.write_bytes

    def full(path, data):
        write(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DiskFullError, match="The disk is full while writing"):
        run(recipe(training={"steps": 6}), resume=True)
    monkeypatch.undo()
    assert run(recipe(training={"steps": 6}), resume=True).step == 6


def test_only_auto_and_cpu_are_devices_to_train_on(recipe):
    with pytest.raises(ConfigError, match="Unknown device 'gpu'"):
        train(recipe(), device="gpu")


def test_a_run_killed_before_its_first_save_keeps_its_readout(recipe, tmp_path):
    made = recipe(model={"readout": {"kind": "mlp", "bottleneck": 8, "steps": 5, "batch_size": 8}})

    def die(*_):
        raise SystemExit(9)  # as abrupt as a kill: nothing of the loop runs after it

    with pytest.raises(SystemExit):
        run(made, Callbacks(on_step=die))
    stages = []
    run(made, Callbacks(on_stage=lambda label, *_: stages.append(label)), resume=True)
    assert not stages
    assert [step for step, *_ in losses(tmp_path / "run")] == list(range(1, 13))


@pytest.mark.parametrize("precision", ["float32", "compact"])
def test_a_readout_can_be_taken_over_from_an_inverter(recipe, tmp_path, precision):
    readout = {"kind": "mlp", "bottleneck": 8, "steps": 0, "batch_size": 8}
    first = recipe(model={"readout": readout | {"steps": 5}})
    saved = {}

    def export(folder, model, metrics):
        save_file(pack(model.state_dict(), precision), tmp_path / "model.safetensors")
        saved.update(model.state_dict())

    run(first, Callbacks(export=export))
    stages = []

    def second(folder, model, metrics):
        for name in ("readout.hidden.weight", "readout.out.weight", "readout.base"):
            assert torch.allclose(model.state_dict()[name], saved[name], rtol=0.01, atol=2e-3), name

    made = recipe(
        model={"readout": readout | {"start_from": tmp_path}}, training={"output": tmp_path / "second", "steps": 3}
    )
    run(made, Callbacks(export=second, on_stage=lambda label, *_: stages.append(label)))
    assert not [label for label in stages if "readout" in label], "it was fitted or trained again"


def test_a_readout_of_another_shape_is_not_taken_over(recipe, tmp_path):
    save_file({"readout.base": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="not a linear one of the same shape(.|\n)*start_from"):
        run(recipe(model={"readout": {"kind": "linear", "start_from": tmp_path}}))


def test_a_readout_is_not_taken_over_without_some_of_its_blocks(recipe, tmp_path):
    readout = {"kind": "mlp", "bottleneck": 8, "blocks": 2, "steps": 0}
    run(recipe(model={"readout": readout}), Callbacks(export=save_weights(tmp_path)))
    made = recipe(
        model={"readout": readout | {"blocks": 1, "start_from": tmp_path}}, training={"output": tmp_path / "second"}
    )
    with pytest.raises(ConfigError, match="not a mlp one of the same shape"):
        run(made)


def save_weights(folder):
    return lambda _, model, __: save_file(dict(model.state_dict()), folder / "model.safetensors")


def test_a_run_can_start_from_an_inverter_and_keeps_its_readout(recipe, tmp_path):
    readout = {"kind": "mlp", "bottleneck": 8, "steps": 5, "batch_size": 8}
    run(recipe(model={"readout": readout}), Callbacks(export=save_weights(tmp_path)))
    stages = []
    made = recipe(
        model={"readout": readout, "prefix_tokens": 2},
        training={"output": tmp_path / "second", "start_from": tmp_path, "steps": 3, "learning_rate": 1e-9},
    )
    (tmp_path / "after").mkdir()
    run(made, Callbacks(export=save_weights(tmp_path / "after"), on_stage=lambda label, *_: stages.append(label)))
    assert not [label for label in stages if "readout" in label], "the readout was fitted again"
    before, after = (load_file(folder / "model.safetensors") for folder in (tmp_path, tmp_path / "after"))
    assert after.keys() - before.keys() == {"denoiser.prefix.weight", "denoiser.prefix.bias"}, "what it lacked is new"
    for name, weight in before.items():
        # The lengths of the new store may be others.
        assert torch.allclose(weight, after[name], atol=1e-6) != name.startswith("length_head."), name


def test_a_run_from_an_inverter_trains_a_named_readout_further_and_gives_it_blocks(recipe, tmp_path):
    readout = {"kind": "mlp", "bottleneck": 8, "steps": 5, "batch_size": 8}
    run(recipe(model={"readout": readout}), Callbacks(export=save_weights(tmp_path)))
    made = recipe(
        model={"readout": readout | {"blocks": 1, "start_from": tmp_path}},
        training={"output": tmp_path / "second", "start_from": tmp_path, "steps": 3, "learning_rate": 1e-9},
    )
    (tmp_path / "after").mkdir()
    stages = []
    run(made, Callbacks(export=save_weights(tmp_path / "after"), on_stage=lambda label, *_: stages.append(label)))
    assert stages.count("Training the readout") == 5
    assert "Fitting the readout" not in stages
    before, after = (load_file(folder / "model.safetensors") for folder in (tmp_path, tmp_path / "after"))
    assert all(name.startswith("readout.blocks.0.") for name in after.keys() - before.keys())
    assert after["readout.blocks.0.down.weight"].any()
    assert not torch.allclose(before["readout.out.weight"], after["readout.out.weight"], atol=1e-6)
    kept = "denoiser.condition_in.weight"
    assert torch.allclose(before[kept], after[kept], atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"prior_scale": torch.ones(3)}, "another shape"),
        ({"denoiser.unknown": torch.ones(3)}, "parts that the recipe's model lacks"),
        (None, "holds no inverter"),
    ],
)
def test_an_inverter_that_does_not_fit_is_no_start(recipe, tmp_path, weights, message):
    if weights:
        save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match=message):
        run(recipe(training={"start_from": tmp_path}))
