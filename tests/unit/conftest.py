import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary, tokenizer_hash
from unembed.checkpoint import CheckpointInfo
from unembed.config import ModelConfig, ModelRecipe, NoiseConfig, ReadoutConfig, Recipe, parse
from unembed.encoders import EncoderDescription
from unembed.inverter import Inverter
from unembed.model import ConditionalMDLM
from unembed.store import Store
from unembed.training.compatibility import build_for_store

VOCABULARY = CanvasVocabulary(40, special=(0, 1))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Models this small lose more to threads waiting for one another than they gain."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def configs() -> Path:
    return Path(__file__).parents[2] / "configs"


@pytest.fixture
def build_model():
    """Builds tiny models: 40 tokens of which two are special, vectors of 16 numbers, canvases of up to 12."""

    def build(seed: int = 0, readout: str = "none", **changes) -> ConditionalMDLM:
        torch.manual_seed(seed)
        settings = {"layers": 2, "width": 24, "heads": 2, "feedforward": 48, "canvas_length": 12} | changes
        config = ModelConfig(
            embedding_dim=16,
            vocabulary_size=VOCABULARY.size,
            readout=ReadoutConfig(kind=readout, bottleneck=8, blocks=1),
            **settings,
        )
        return ConditionalMDLM(config, VOCABULARY).eval()

    return build


@pytest.fixture
def stir():
    """Gives every parameter random values: a fresh model ignores its vector, for its modulation starts at zero."""

    def stir(model: ConditionalMDLM, seed: int = 1) -> ConditionalMDLM:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        return model

    return stir


@pytest.fixture
def make_inverter(build_model, stir, tiny_tokenizer):
    """Builds inverters of tiny stirred models: they know nothing, but depend on their vector."""

    def make(metrics: dict | None = None, **changes) -> Inverter:
        model = stir(build_model(**changes))
        info = CheckpointInfo(
            encoder=EncoderDescription(name="fake", revision="1", dim=16, prompt=None, pooling="mean", normalised=True),
            model=model.config,
            noise=NoiseConfig(),
            special_ids=model.vocabulary.special,
            tokenizer_hash=tokenizer_hash(tiny_tokenizer),
            training_rows=60,
            metrics=metrics or {},
        )
        return Inverter(model, tiny_tokenizer, info)

    return make


@pytest.fixture
def make_speller(tiny_checkpoint, stir):
    """Builds stirred inverters that have every token of the tiny tokenizer; those of ``make_inverter`` have 40."""

    def make() -> Inverter:
        inverter = Inverter.from_pretrained(tiny_checkpoint, device="cpu")
        stir(inverter.model)
        return inverter

    return make


@pytest.fixture
def build_reader(tiny_store, stir):
    """Builds inverters for the tiny store or another one; the readout knows its words, the denoiser nothing."""

    def build(kind: str, folder: Path = tiny_store / "train") -> Inverter:
        store = Store(folder)
        settings = ReadoutConfig(kind=kind, bottleneck=8, blocks=1)
        config = ModelRecipe(layers=1, width=16, heads=2, feedforward=32, readout=settings)
        torch.manual_seed(0)
        model = stir(build_for_store(config, store.manifest))
        rows = np.arange(store.manifest.rows)
        pairs = (torch.from_numpy(store.embeddings(rows)), torch.from_numpy(store.tokens(rows).astype(np.int64)))
        model.readout.fit(iter([pairs]), ridge=1e-4)
        info = CheckpointInfo.for_store(store.manifest, model.config, NoiseConfig())
        return Inverter(model, store.tokenizer(), info)

    return build


@pytest.fixture
def readout_checkpoint(build_reader, tmp_path) -> Path:
    """A folder with an inverter whose readout knows the words of the tiny store."""
    build_reader("linear").save_pretrained(tmp_path / "readout-checkpoint")
    return tmp_path / "readout-checkpoint"


class GatedEngine:
    """A denoiser that counts its passes, and takes one only while its gate is open."""

    def __init__(self, model: ConditionalMDLM) -> None:
        self.gate = threading.Event()
        self.passes = 0
        self.batches: list[int] = []
        """How many canvases each pass was over."""
        self._model = model

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def hidden(self, canvas, *arguments):
        self.passes += 1
        self.batches.append(len(canvas))
        assert self.gate.wait(timeout=20)
        return self._model.hidden(canvas, *arguments)


@pytest.fixture
def gated(make_inverter):
    """An inverter whose passes wait for ``inverter.engine.gate``; it opens by itself when the test ends."""
    inverter = make_inverter()
    inverter.engine = GatedEngine(inverter.model)
    yield inverter
    inverter.engine.gate.set()


@pytest.fixture
def serve(make_inverter, fake_encoder):
    """Starts real servers of tiny inverters, and returns a client of each."""
    import httpx

    from servers import running
    from unembed.server import ServedModel, Settings, make_app

    with ExitStack() as stack:

        def start(models=None, **changes) -> httpx.Client:
            models = models or [ServedModel("tiny", make_inverter(), fake_encoder)]
            settings = Settings(**{"workers": 1} | changes)
            app = make_app(settings, models)
            _, address = stack.enter_context(running(app, settings))
            return stack.enter_context(httpx.Client(base_url=address, timeout=20))

        yield start


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
                "readout": {"kind": "linear"},
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
                "free_running_rows": 0,
                "readout": {"ridge": 1.0, "steps": 5, "batch_size": 8},
            },
        }
        return parse(
            Recipe, {name: merge(section, changes.get(name, {})) for name, section in sections.items()}, "test"
        )

    return build


def merge(section, changes):
    """Replace the keys of a section; in its own sections, only those that are named."""
    parts = {key: section[key] | part for key, part in changes.items() if isinstance(section.get(key), dict)}
    return section | changes | parts
