import json
import os
import signal
from functools import partial

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from unembed.checkpoint import load_checkpoint, save_checkpoint
from unembed.decoding import Step
from unembed.errors import CheckpointError, ConfigError, StoreError, TrainingError
from unembed.model import NGrams
from unembed.store import Store
from unembed.training import Callbacks, train
from unembed.training.compatibility import build_for_store
from unembed.training.log import read_metrics


def run(recipe, callbacks=None, **options):
    return train(recipe, device="cpu", callbacks=callbacks, **options)


def stop_at(step):
    def on_step(number, *_):
        if number == step:
            os.kill(os.getpid(), signal.SIGTERM)

    return Callbacks(on_step=on_step)


def losses(folder):
    return [(e["step"], e["elbo"], e["gradient_norm"]) for e in read_metrics(folder) if e["kind"] == "train"]


MLP = {"kind": "mlp", "bottleneck": 8}
VARIANTS = {
    "adamw": {},
    "muon": {"training": {"optimiser": "muon"}},
    "dropout and accumulation": {"model": {"dropout": 0.2}, "training": {"accumulation": 2}},
    "fixed canvas": {"model": {"canvas": "fixed", "time_conditioning": True, "conditioning": "adaln"}},
    "sampled softmax": {"training": {"sampled_softmax": 8, "frequent_tokens": 16}},
    "mlp readout": {"model": {"readout": MLP}},
    "counted masks": {"noise": {"masking": "count"}, "model": {"prefix_tokens": 2}},
    "fixed canvas with all": {
        "model": {"canvas": "fixed", "readout": MLP},
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
    whole, parts = (load_file(tmp_path / name / "state.safetensors") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[key], parts[key]) for key in whole)


def test_training_lowers_the_validation_loss(recipe):
    made = recipe(training={"steps": 60, "warmup_steps": 10, "validate_every": 5})
    run(made)
    elbos = [event["elbo"] for event in read_metrics(made.training.output) if event["kind"] == "validation"]
    assert len(elbos) == 12
    assert elbos[-1] < elbos[0] - 0.3


def saved_metrics(folder):
    return load_checkpoint(folder).info.metrics


def test_a_run_leaves_best_latest_milestones_curves_metrics_and_its_recipe(recipe, tmp_path):
    made = recipe(training={"milestones": [4, 12], "free_running_rows": 4})
    result = run(made)
    folder = tmp_path / "run"
    assert {"best", "latest", "milestone-000004", "milestone-000012"} <= {path.name for path in folder.iterdir()}
    milestone = saved_metrics(folder / "milestone-000004")
    assert (milestone["step"], milestone["saved_step"]) == (4, 4), "measured, and at this very step"
    measured = {"elbo", "masked_accuracy@0.1", "masked_accuracy@0.5", "masked_accuracy@0.9"}
    assert measured | {"token_accuracy", "token_f1", "exact_match"} <= result.metrics.keys()
    assert result.metrics.items() <= saved_metrics(folder / "latest").items()
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "recipe.yaml").is_file()
    assert any((folder / "tensorboard").iterdir())
    assert not list(folder.rglob("*.pt")) + list(folder.rglob("*.bin")) + list(folder.rglob("*.pkl"))


def test_an_inverter_knows_the_words_and_the_languages_of_its_training_texts(recipe, tmp_path):
    run(recipe(data={"languages": ["en"]}, training={"steps": 2, "warmup_steps": 1}))
    saved = load_checkpoint(tmp_path / "run" / "latest")
    assert saved.info.languages == ("en",)
    assert saved.known_words[0] == "the"
    assert "garden" not in saved.known_words, "it is too rare"


def test_an_inverter_knows_which_tokens_follow_which_in_its_training_texts(recipe, tmp_path):
    configured = recipe(training={"steps": 2, "warmup_steps": 1})
    run(configured)
    ngrams = NGrams.from_bytes(load_checkpoint(tmp_path / "run" / "latest").ngrams)
    store = Store(configured.data.store / "train")
    row = np.array([0])
    text = store.tokens(row)[0, : store.lengths[0]].tolist()
    there, back = ngrams.log_odds([text, text[::-1]])
    assert there > back


def test_an_inverter_holds_the_averaged_weights_and_names_no_folder_of_this_machine(recipe, tmp_path):
    run(recipe())
    state, weights = (load_file(tmp_path / "run" / name) for name in ("state.safetensors", "latest/model.safetensors"))
    assert all(torch.equal(weight, state[f"average.module.{name}"]) for name, weight in weights.items())
    assert str(tmp_path) not in (tmp_path / "run" / "latest" / "config.json").read_text()


def test_free_running_measures_compare_what_is_decoded_with_the_tokens_of_each_row(recipe, monkeypatch, tiny_store):
    from unembed.store import Store
    from unembed.training import free_running

    store = Store(tiny_store / "train")
    rows = np.array([3, 8])
    canvases = torch.from_numpy(store.tokens(rows))
    lengths = store.lengths[rows]

    def decode(model, noise, embeddings, options):
        assert np.allclose(embeddings, store.embeddings(rows))
        for row in (1, 0):  # in whatever order they end
            numbers = {name: torch.zeros(1) for name in ("candidate", "passes", "score", "mask_rate", "texts_embedded")}
            yield Step(
                canvas=canvases[[row]],
                changed=canvases[[row]] >= 0,
                confidence=torch.ones(1, 12),
                rows=torch.tensor([row]),
                final=torch.tensor([True]),
                **numbers,
            )

    monkeypatch.setattr(free_running, "decode", decode)
    model = build_for_store(recipe().model, store.manifest)
    measure = partial(free_running.measure_free_running, model, None, store, rows)
    assert measure().items() >= {"token_accuracy": 1.0, "token_f1": 1.0, "exact_match": 1.0}.items()
    canvases[0, 0] = (canvases[0, 0] + 1) % 90
    assert measure()["exact_match"] == 0.5
    assert measure()["token_accuracy"] == pytest.approx(1.0 - 0.5 / lengths[0])


def test_the_best_validation_is_remembered_over_a_resume(recipe, tmp_path, monkeypatch):
    elbos = iter([2.0, 3.0])
    monkeypatch.setattr("unembed.training.loop._Loop._measure", lambda loop: {"elbo": next(elbos)})
    made = recipe(training={"validate_every": 5, "steps": 10})
    run(made, stop_at(5))
    best = (tmp_path / "run" / "best" / "model.safetensors").read_bytes()
    assert run(made, resume=True).metrics["elbo"] == 3.0
    assert saved_metrics(tmp_path / "run" / "best")["elbo"] == 2.0
    assert (tmp_path / "run" / "best" / "model.safetensors").read_bytes() == best


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
    with pytest.raises(TrainingError, match="already holds a run"):
        run(recipe())


def test_a_run_is_not_resumed_with_a_recipe_that_makes_another_model(recipe):
    run(recipe())
    with pytest.raises(TrainingError, match="started with another model, training.batch_size"):
        run(recipe(model={"layers": 2}, training={"batch_size": 4}), resume=True)


def test_a_run_of_an_earlier_version_goes_on_whatever_its_weights_were_called(recipe, tmp_path):
    mpnet = recipe(model={"architecture": "mpnet", "norm": "post"})
    run(mpnet, stop_at(5))
    path = tmp_path / "run" / "state.safetensors"
    with safe_open(path, "pt") as file:
        facts = file.metadata()
    tensors = {name.replace("positions.bias", "places.bias"): tensor for name, tensor in load_file(path).items()}
    assert {"model.denoiser.places.bias.weight", "average.module.denoiser.places.bias.weight"} <= tensors.keys()
    save_file(tensors, path, facts)
    assert run(mpnet, resume=True).step == 12


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


def test_the_validation_elbo_is_the_bound_whatever_training_weighs(recipe, monkeypatch):
    """A model that guesses uniformly has the entropy of uniform guessing under every schedule and canvas."""
    from unembed.model import NoiseSchedule
    from unembed.store import Store
    from unembed.training.validation import Validation, validation_rows

    for noise in ({}, {"schedule": "loglinear", "weight": "paper"}, {"full_mask_share": 0.5}):
        # On a fixed canvas masks may fall on padding, which does not count: the mean over draws is the bound.
        for canvas, draws, tolerance in (("exact", 1, 1e-4), ("fixed", 30, 0.03)):
            made = recipe(noise=noise, model={"canvas": canvas, "readout": {"kind": "none"}})
            store = Store(made.data.store / "train")
            model = build_for_store(made.model, store.manifest).eval()
            for parameter in model.denoiser.parameters():
                parameter.data.zero_()
            measure = Validation(store, validation_rows(store, 48), NoiseSchedule(made.noise), made.training)
            elbos = []
            for seed in range(draws):
                monkeypatch.setattr("unembed.training.validation._SEED", seed)
                elbos.append(measure(model)["elbo"])
            choices = model.denoiser.outputs - len(model.vocabulary.special)
            assert np.mean(elbos) == pytest.approx(np.log(choices), rel=tolerance)


def test_two_runs_do_not_share_a_folder(recipe):
    from unembed.files import locked_folder

    made = recipe()
    stages = []
    told = Callbacks(on_stage=lambda label, *_: stages.append(label))
    with locked_folder(made.training.output), pytest.raises(TrainingError, match="Another process is training"):
        run(made, told)
    assert not stages, "the second process must not fit a readout first"


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
    made = recipe(model={"readout": MLP})

    def die(*_):
        raise SystemExit(9)  # as abrupt as a kill: nothing of the loop runs after it

    with pytest.raises(SystemExit):
        run(made, Callbacks(on_step=die))
    stages = []
    run(made, Callbacks(on_stage=lambda label, *_: stages.append(label)), resume=True)
    assert not stages
    assert [step for step, *_ in losses(tmp_path / "run")] == list(range(1, 13))


@pytest.mark.parametrize("way", ["signal", "kill"])
def test_a_readout_that_was_stopped_half_way_becomes_that_of_an_uninterrupted_run(recipe, tmp_path, way):
    def build(name):
        return recipe(
            model={"readout": MLP},
            training={"output": tmp_path / name, "steps": 3, "checkpoint_minutes": 1e-9},
        )

    def stop(label, done, _total):
        if label == "Training the readout" and done == 3:
            if way == "kill":
                raise SystemExit(9)
            os.kill(os.getpid(), signal.SIGTERM)

    run(build("whole"))
    if way == "kill":
        with pytest.raises(SystemExit):
            run(build("parts"), Callbacks(on_stage=stop))
    else:
        stopped = run(build("parts"), Callbacks(on_stage=stop))
        assert (stopped.reason, stopped.step) == ("interrupted", 0)
    with pytest.raises(TrainingError, match="already holds a run"):
        run(build("parts"))
    steps = []
    run(build("parts"), Callbacks(on_stage=lambda *stage: steps.append(stage)), resume=True)
    trained = [done for label, done, _ in steps if label == "Training the readout"]
    assert trained == ([3, 4, 5] if way == "kill" else [4, 5])
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    whole, parts = (weights_of(tmp_path / name / "best") for name in ("whole", "parts"))
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
    assert not list((tmp_path / "parts").glob("readout-state*")), "the run's own state has it now"


def weights_of(folder):
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("precision", ["float32", "compact"])
def test_a_readout_can_be_taken_over_from_an_inverter(recipe, tmp_path, precision):
    run(recipe(model={"readout": MLP}))
    checkpoint = load_checkpoint(tmp_path / "run" / "latest")
    save_checkpoint(tmp_path / "first", checkpoint, precision)
    start = {"start_from": {"readout": tmp_path / "first"}, "readout": {"steps": 0}}
    made = recipe(model={"readout": MLP}, training=start | {"output": tmp_path / "second", "steps": 3})
    stages = []
    run(made, Callbacks(on_stage=lambda label, *_: stages.append(label)))
    assert not [label for label in stages if "readout" in label], "it was fitted or trained again"
    before, after = checkpoint.model.state_dict(), weights_of(tmp_path / "second" / "latest")
    for name in ("readout.hidden.weight", "readout.out.weight", "readout.base"):
        assert torch.allclose(after[name], before[name], rtol=0.01, atol=2e-3), name


def test_a_readout_of_another_shape_is_not_taken_over(recipe, tmp_path):
    save_file({"readout.base": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="another kind or shape than model.readout(.|\n)*training.start_from.readout"):
        run(recipe(training={"start_from": {"readout": tmp_path}}))


def test_a_readout_is_not_taken_over_without_some_of_its_blocks(recipe, tmp_path):
    run(recipe(model={"readout": MLP | {"blocks": 2}}))
    start = {"start_from": {"readout": tmp_path / "run" / "latest"}, "output": tmp_path / "second"}
    with pytest.raises(ConfigError, match="another kind or shape than model.readout"):
        run(recipe(model={"readout": MLP | {"blocks": 1}}, training=start))


def test_a_run_can_start_from_an_inverter_and_keeps_its_readout(recipe, tmp_path):
    run(recipe(model={"readout": MLP}))
    start = {"start_from": {"inverter": tmp_path / "run" / "latest"}, "steps": 3, "learning_rate": 1e-9}
    shape = {"readout": MLP, "prefix_tokens": 2, "length_widths": [20]}
    made = recipe(model=shape, training=start | {"output": tmp_path / "second"})
    stages = []
    run(made, Callbacks(on_stage=lambda label, *_: stages.append(label)))
    assert not [label for label in stages if "readout" in label], "the readout was fitted again"
    before, after = (weights_of(tmp_path / name / "latest") for name in ("run", "second"))
    assert after.keys() - before.keys() == {"denoiser.prefix.weight", "denoiser.prefix.bias"}, "what it lacked is new"
    for name, weight in before.items():
        if not name.startswith("length_head."):  # fitted to the new store, and here of another width
            assert torch.allclose(weight, after[name], atol=1e-6), name
    assert after["length_head.0.weight"].shape == (20, 16)


def test_a_run_from_an_inverter_trains_a_named_readout_further_and_gives_it_blocks(recipe, tmp_path):
    run(recipe(model={"readout": MLP}))
    first = tmp_path / "run" / "latest"
    start = {"start_from": {"inverter": first, "readout": first}, "steps": 3, "learning_rate": 1e-9}
    made = recipe(model={"readout": MLP | {"blocks": 1}}, training=start | {"output": tmp_path / "second"})
    stages = []
    run(made, Callbacks(on_stage=lambda label, *_: stages.append(label)))
    assert stages.count("Training the readout") == 5
    assert "Fitting the readout" not in stages
    before, after = (weights_of(tmp_path / name / "latest") for name in ("run", "second"))
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
    with pytest.raises((ConfigError, CheckpointError), match=message):
        run(recipe(training={"start_from": {"inverter": tmp_path}}))
