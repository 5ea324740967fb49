"""The writer: a causal transformer that starts from the denoiser and writes from left to right."""

import json
import os
import signal

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from torch.testing import assert_close

from unembed.alignment import SpaceMap
from unembed.checkpoint import load_checkpoint
from unembed.config import DecodingConfig, ModelRecipe, NoiseConfig
from unembed.decoding import decode
from unembed.engine import MappedEngine
from unembed.errors import ConfigError, TrainingError
from unembed.evaluation.baselines import Unconditional
from unembed.inverter import Inverter
from unembed.model import NoiseSchedule
from unembed.model.candidates import Candidates, draw_candidates
from unembed.model.loss import next_token_entropies
from unembed.training import Callbacks, train
from unembed.training.log import read_metrics
from unembed.training.pretrained import start_from_inverter

NOISE = NoiseSchedule(NoiseConfig())
WRITER = {"freeze_token_embeddings": True, "writer": {"layers": 1}}


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Products in float32, so that two ways to the same figure can be compared."""
    monkeypatch.setattr("unembed.model.precision.has_native_bfloat16", lambda device: False)


@pytest.fixture
def model(build_model, stir):
    """A stirred model whose writer has two layers."""
    made = stir(build_model(freeze_token_embeddings=True, writer={"layers": 2}, readout="linear"))
    made.readout.repetition.uniform_(1.0, 3.0, generator=torch.Generator().manual_seed(0))
    return made


def vectors(rows, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32))


def texts(rows, length, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(2, 40, (rows, length)))


def token_by_token(writing, whole):
    """Return the log-probability (B, T) of each token of texts (B, T), which are continued one token at a time."""
    memories, length = writing.begin(), whole.shape[1]
    lengths = torch.full((len(whole),), length)
    found = []
    for position in range(length):
        scores = writing.next_tokens(whole[:, None, :position], lengths, memories, position)[:, 0]
        column = (writing.tokens == whole[:, position, None]).int().argmax(1, keepdim=True)
        found.append(scores.gather(1, column)[:, 0])
    return torch.stack(found, dim=1)


class TestTheModel:
    @torch.no_grad()
    def test_a_text_that_is_continued_has_the_likelihoods_of_one_that_is_read_whole(self, model):
        writing, whole = model.writing(vectors(3)), texts(3, 7)
        lengths = torch.full((3,), 7)
        memories = writing.begin()
        for position in range(7):
            so_far = whole[:, None, :position]
            continued = writing.next_tokens(so_far, lengths, memories, position)
            assert_close(continued, writing.next_tokens(so_far, lengths, writing.begin(), 0))

    @torch.no_grad()
    def test_beginnings_of_one_vector_do_not_see_each_other(self, model):
        writing, beginnings = model.writing(vectors(2)), texts(6, 4).view(2, 3, 4)
        lengths = torch.tensor([6, 9])
        together = writing.next_tokens(beginnings, lengths, writing.begin(), 0)
        for number in range(3):
            alone = writing.next_tokens(beginnings[:, number : number + 1], lengths, writing.begin(), 0)
            assert_close(together[:, number], alone[:, 0])

    @torch.no_grad()
    def test_a_token_depends_on_those_before_it_and_on_no_later_one(self, model):
        first, second = texts(1, 8), texts(1, 8)
        second[:, 4] = (first[:, 4] - 1) % 38 + 2
        one, other = (next_token_entropies(model, vectors(1), whole)[0] for whole in (first, second))
        assert_close(one[:4], other[:4])
        assert (one[4:] != other[4:]).all()

    @torch.no_grad()
    def test_what_is_trained_is_the_likelihood_of_each_token_when_it_is_written(self, model):
        """The vocabulary is smaller than the shortlist."""
        whole = texts(5, 6)
        whole[:, 3] = whole[:, 1]
        each = token_by_token(model.writing(vectors(1).expand(5, -1)), whole)
        assert_close(-next_token_entropies(model, vectors(1).expand(5, -1), whole), each)

    @torch.no_grad()
    def test_all_tokens_as_candidates_are_the_full_softmax(self, model):
        whole = texts(3, 6)
        candidates = Candidates(torch.arange(40), torch.zeros(40))
        assert_close(
            next_token_entropies(model, vectors(3), whole, candidates), next_token_entropies(model, vectors(3), whole)
        )

    @torch.no_grad()
    def test_a_sample_of_the_tokens_estimates_the_full_softmax(self, model):
        whole = texts(3, 6)
        generator = torch.Generator().manual_seed(0)
        drawn = [draw_candidates(whole, torch.arange(2, 12), 40, 8, generator) for _ in range(40)]
        sampled = torch.stack([next_token_entropies(model, vectors(3), whole, each) for each in drawn]).mean()
        assert_close(sampled, next_token_entropies(model, vectors(3), whole).mean(), atol=0.1, rtol=0.0)

    @torch.no_grad()
    def test_a_token_that_the_text_has_is_less_likely(self, model):
        lengths, beginning = torch.tensor([6]), torch.tensor([[[20, 30]]])
        scores = []
        for damping in (0.0, 5.0):
            model.writer.prior_damping.fill_(damping)
            writing = model.writing(vectors(1))
            scores.append(writing.next_tokens(beginning, lengths, writing.begin(), 0)[0, 0])
        change = dict(zip(writing.tokens[0].tolist(), (scores[1] - scores[0]).tolist(), strict=True))
        repeated = [change.pop(token) for token in (20, 30)]
        assert max(repeated) < 0
        assert min(gain for token, gain in change.items() if token >= 2) > 0

    def test_it_takes_over_the_denoisers_weights(self, build_model, stir):
        model = build_model(freeze_token_embeddings=True, writer={"layers": 2})
        assert model.writer.is_new
        assert model.writing(vectors(1)) is None, "what has learnt nothing is not asked"
        stir(model)
        model.writer.start_from(model.denoiser, model.prior_scale, model.prior_damping)
        assert not model.writer.is_new
        ours, theirs = model.writer.state_dict(), model.denoiser.state_dict()
        shared = ours.keys() & theirs.keys()
        assert {name for name in shared if name.startswith("blocks.1.")}
        assert {"position_embedding.weight", "modulation.weight", "output_bias"} <= shared
        assert all(torch.equal(ours[name], theirs[name]) for name in shared)
        assert torch.equal(model.writer.start, model.denoiser.own_embedding.weight[-1]), (
            "nothing is known, as at [MASK]"
        )
        assert torch.equal(model.writer.prior_scale, model.prior_scale)

    def test_one_of_another_depth_takes_over_what_fits(self, build_model, stir):
        model = stir(build_model(**WRITER))
        model.writer.start_from(model.denoiser, model.prior_scale, model.prior_damping)
        ours, theirs = model.writer.state_dict(), model.denoiser.state_dict()
        assert torch.equal(ours["blocks.0.attention_in.weight"], theirs["blocks.0.attention_in.weight"])
        assert ours["modulation.weight"].shape != theirs["modulation.weight"].shape

    @pytest.mark.parametrize(
        ("settings", "message"),
        [({"canvas": "fixed", "freeze_token_embeddings": True}, "canvas: exact"), ({}, "freeze_token_embeddings")],
    )
    def test_it_needs_exact_canvases_and_token_embeddings_that_stay_as_they_are(self, settings, message):
        with pytest.raises(ValidationError, match=message):
            ModelRecipe(writer={"layers": 1}, **settings)


class TestTheStrategy:
    def written(self, engine, embeddings, length, **options):
        """Return the texts of one length."""
        config, lengths = DecodingConfig(strategy="writer", **options), torch.full((len(embeddings),), length)
        *_, last = decode(engine, NOISE, embeddings, config, lengths=lengths)
        assert last.final.all()
        return last.canvas[last.rows.argsort()]

    @torch.no_grad()
    def test_a_single_beam_without_chance_takes_the_likeliest_token_each_time(self, model, monkeypatch):
        monkeypatch.setattr("unembed.decoding.writer._NOISE", 0.0)
        found = self.written(model, vectors(3), 6, beams=1)
        writing = model.writing(vectors(3))
        for position in range(6):
            scores = writing.next_tokens(found[:, None, :position], torch.full((3,), 6), writing.begin(), 0)[:, 0]
            likeliest = writing.tokens.gather(1, scores.argmax(1, keepdim=True))[:, 0]
            assert torch.equal(found[:, position], likeliest)

    @torch.no_grad()
    def test_it_shows_one_more_token_in_each_pass(self, model):
        config, mask = DecodingConfig(strategy="writer"), model.vocabulary.mask
        steps = list(decode(model, NOISE, vectors(2), config, lengths=torch.tensor([5, 5])))
        assert [(step.canvas != mask).sum(1).tolist() for step in steps] == [[shown] * 2 for shown in range(1, 6)]
        assert [bool(step.final.all()) for step in steps] == [False] * 4 + [True]

    @torch.no_grad()
    def test_more_beams_find_likelier_texts(self, model):
        likelihoods = []
        for beams in (1, 30):
            found = self.written(model, vectors(8), 8, beams=beams)
            likelihoods.append(-next_token_entropies(model, vectors(8), found).sum(1).mean())
        assert likelihoods[1] > likelihoods[0] + 0.1

    @torch.no_grad()
    def test_of_all_beams_the_one_is_kept_whose_vector_by_the_surrogate_is_nearest(self, build_model, stir):
        model = stir(build_model(surrogate={"layers": 1}, readout="linear", **WRITER))
        near = model.resemblance(self.written(model, vectors(8), 6), vectors(8))
        surrogate, model.surrogate = model.surrogate, None
        likeliest = self.written(model, vectors(8), 6)
        model.surrogate = surrogate
        assert near.mean() > model.resemblance(likeliest, vectors(8)).mean() + 0.05

    def test_another_seed_gives_another_draw(self, model):
        first, second = (self.written(model, vectors(6), 8, beams=2, seed=seed) for seed in (0, 1))
        assert not torch.equal(first, second)

    @torch.no_grad()
    def test_an_adapted_inverter_writes_from_the_mapped_vectors(self, model, monkeypatch):
        monkeypatch.setattr("unembed.decoding.writer._NOISE", 0.0)  # the draws would be those of the vectors given
        space_map = SpaceMap(16, 16)
        for parameter in space_map.parameters():
            torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
        mapped = self.written(MappedEngine(model, space_map), vectors(4), 6)
        assert torch.equal(mapped, self.written(model, space_map(vectors(4)), 6))
        assert not torch.equal(mapped, self.written(model, vectors(4), 6))

    def test_without_a_writer_it_says_how_to_get_one(self, make_inverter):
        with pytest.raises(ConfigError, match="no writer(.|\n)*model.writer"):
            make_inverter().invert(np.ones((1, 16)), strategy="writer")

    def test_without_a_vector_there_is_nothing_to_write(self, model):
        assert Unconditional(model).writing(vectors(1)) is None


def run(recipe, callbacks=None, **options):
    return train(recipe, device="cpu", callbacks=callbacks, **options)


@pytest.fixture
def first(recipe, tmp_path):
    """A finished inverter without a writer."""
    run(recipe(training={"output": tmp_path / "first", "steps": 6}))
    return tmp_path / "first" / "latest"


@pytest.fixture
def writer_recipe(recipe, first, tmp_path):
    """Recipes that give a finished inverter a writer."""

    def build(name="second", **changes):
        start = {"start_from": {"inverter": first}, "output": tmp_path / name, "steps": 4, "validate_every": 2}
        stage = {"steps": 30, "batch_size": 8, "learning_rate": 1e-2, "sampled_softmax": 8, "frequent_tokens": 16}
        return recipe(model=WRITER, training=start | {"writer": stage | changes.pop("writer", {})} | changes)

    return build


def nats(folder):
    return load_checkpoint(folder).info.metrics["writer_nats"]


def writer_of(folder):
    weights = load_file(folder / "model.safetensors")
    return {name: weight for name, weight in weights.items() if name.startswith("writer.")}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def stop(step):
    def on_stage(label, done, _total):
        if label == "Training the writer" and done == step:
            os.kill(os.getpid(), signal.SIGTERM)

    return Callbacks(on_stage=on_stage)


class TestTraining:
    def test_lowers_what_a_token_costs_and_says_so(self, writer_recipe, tmp_path):
        run(writer_recipe("short", writer={"steps": 1, "learning_rate": 1e-9}))
        assert run(writer_recipe(writer={"steps": 60})).reason == "finished"
        assert nats(tmp_path / "second" / "latest") < nats(tmp_path / "short" / "latest") - 0.1
        (event,) = [event for event in read_metrics(tmp_path / "second") if event["kind"] == "writer"]
        assert (event["step"], event["writer_nats"]) == (4, nats(tmp_path / "second" / "latest"))

    def test_works_with_the_full_softmax(self, writer_recipe, tmp_path):
        run(writer_recipe(writer={"sampled_softmax": 0}))
        assert nats(tmp_path / "second" / "latest") < 6.0

    def test_gives_the_best_inverter_the_same_writer_and_leaves_its_denoiser(
        self, writer_recipe, tmp_path, monkeypatch
    ):
        elbos = iter([2.0, 3.0])
        monkeypatch.setattr("unembed.training.loop._Loop._measure", lambda loop: {"elbo": next(elbos)})
        run(writer_recipe())
        best, latest = (tmp_path / "second" / name for name in ("best", "latest"))
        assert same(writer_of(best), writer_of(latest))
        assert not same(*(load_file(folder / "model.safetensors") for folder in (best, latest)))
        assert nats(best) == nats(latest)
        assert load_checkpoint(best).info.metrics["elbo"] == 2.0
        assert not (tmp_path / "second" / "writer-state.safetensors").exists()

    def test_that_was_stopped_half_way_ends_as_if_it_had_not_been(self, writer_recipe, tmp_path):
        assert run(writer_recipe("whole")).reason == "finished"
        assert run(writer_recipe("parts"), stop(7)).reason == "interrupted"
        assert (tmp_path / "parts" / "writer-state.safetensors").is_file()
        seen = []
        resumed = run(writer_recipe("parts"), Callbacks(on_stage=lambda *stage: seen.append(stage)), resume=True)
        assert (resumed.reason, resumed.step) == ("finished", 4)
        assert [done for label, done, _ in seen if label == "Training the writer"] == list(range(8, 31))
        for name in ("best/model.safetensors", "latest/model.safetensors", "state.safetensors"):
            assert same(*(load_file(tmp_path / run / name) for run in ("whole", "parts")))

    def test_is_not_repeated_when_a_finished_run_is_resumed_or_prolonged(self, writer_recipe, tmp_path):
        run(writer_recipe())
        before, seen = writer_of(tmp_path / "second" / "latest"), []
        for steps in (4, 8):
            result = run(writer_recipe(steps=steps), Callbacks(on_stage=lambda *stage: seen.append(stage)), resume=True)
            assert (result.reason, result.step) == ("finished", steps)
        assert not seen
        assert all(same(before, writer_of(tmp_path / "second" / name)) for name in ("best", "latest"))

    def test_comes_also_after_a_run_that_no_longer_improves(self, writer_recipe, tmp_path):
        result = run(writer_recipe(learning_rate=1e-12, validate_every=1, patience=2, steps=12))
        assert (result.reason, result.step) == ("patience", 3)
        assert nats(tmp_path / "second" / "best") == nats(tmp_path / "second" / "latest")

    def test_goes_on_from_the_writer_of_an_inverter(self, writer_recipe, tmp_path):
        run(writer_recipe())
        inverter = {"start_from": {"inverter": tmp_path / "second" / "latest"}}
        run(writer_recipe("kept", writer={"steps": 0}, **inverter))
        assert same(writer_of(tmp_path / "kept" / "latest"), writer_of(tmp_path / "second" / "latest"))
        run(writer_recipe("further", writer={"steps": 1, "learning_rate": 1e-9}, **inverter))
        assert nats(tmp_path / "further" / "latest") == pytest.approx(nats(tmp_path / "second" / "latest"), abs=1e-4)

    def test_starts_from_the_denoiser_where_the_inverters_writer_was_never_trained(self, writer_recipe, tmp_path):
        stopped = writer_recipe("stopped")
        run(stopped, Callbacks(on_step=lambda step, *_: step == 4 and os.kill(os.getpid(), signal.SIGTERM)))
        assert load_checkpoint(tmp_path / "stopped" / "latest").model.writer.is_new
        inverter = {"start_from": {"inverter": tmp_path / "stopped" / "latest"}, "steps": 3}
        run(writer_recipe("next", writer={"steps": 1, "learning_rate": 1e-9}, **inverter))
        found = load_checkpoint(tmp_path / "next" / "latest").model
        assert_close(found.writer.start, found.denoiser.own_embedding.weight[-1])

    def test_is_asked_for_where_a_run_would_leave_an_untrained_writer(self, recipe):
        with pytest.raises(ConfigError, match=r"training\.writer\.steps"):
            recipe(model=WRITER | {"norm": "post"}, training={"start_from": {"encoder": "some/encoder"}})

    def test_cannot_be_changed_in_a_resumed_run(self, writer_recipe):
        run(writer_recipe(), stop(3))
        with pytest.raises(TrainingError, match=r"another training\.writer"):
            run(writer_recipe(writer={"steps": 40}), resume=True)


class TestOnDisk:
    def test_a_writer_is_saved_with_its_inverter(self, make_inverter, tmp_path):
        inverter = make_inverter(readout="linear", **WRITER)
        inverter.save_pretrained(tmp_path / "saved")
        loaded = Inverter.from_pretrained(tmp_path / "saved", device="cpu")
        before, after = (each.invert(vectors(3).numpy(), strategy="writer") for each in (inverter, loaded))
        assert [each.ids for each in before] == [each.ids for each in after]
        assert {each.strategy for each in after} == {"writer"}

    def test_an_inverter_without_one_still_loads(self, make_inverter, tmp_path):
        make_inverter().save_pretrained(tmp_path / "saved")
        config = tmp_path / "saved" / "config.json"
        facts = json.loads(config.read_text())
        del facts["model"]["writer"]
        config.write_text(json.dumps(facts))
        assert load_checkpoint(tmp_path / "saved").model.writer is None

    def test_an_inverter_with_a_writer_can_start_a_run_without(self, writer_recipe, recipe, tmp_path):
        run(writer_recipe())
        start = {"inverter": tmp_path / "second" / "latest"}
        run(recipe(training={"output": tmp_path / "third", "start_from": start, "steps": 3}))
        assert not writer_of(tmp_path / "third" / "latest")

    def test_a_longer_canvas_continues_its_positions(self, writer_recipe, build_model, tmp_path):
        run(writer_recipe())
        trained = load_checkpoint(tmp_path / "second" / "latest").model
        longer = type(trained)(trained.config.model_copy(update={"canvas_length": 20}), trained.vocabulary)
        start_from_inverter(longer, tmp_path / "second" / "latest")
        for name in ("position_embedding", "end_embedding"):
            ours, theirs = (getattr(each.writer, name).weight for each in (longer, trained))
            assert ours.shape[0] == 20
            assert torch.equal(ours[:12], theirs)
