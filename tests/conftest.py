"""Parts that all tests share: a tiny tokenizer, an encoder without weights, a store of both, and the real MiniLM.

Nothing is downloaded; MiniLM's weights come in a package.
"""

import shutil
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from stores import running_postgres
from unembed.cli import main
from unembed.encoders import EncoderDescription, load_encoder
from unembed.store import embed_texts

settings.register_profile("unembed", deadline=None, database=None)
settings.load_profile("unembed")

TRAIN = """
the cat sleeps on the warm mat.
the dog runs in the park.
a bird sings in the tree.
the boy reads a book at home.
the girl writes a long letter.
two dogs play in the snow.
three birds fly over the house.
the old man drinks tea.
a woman walks her dog.
the child eats a red apple.
rain falls on the roof.
the sun is warm today.
snow is cold and white.
the river runs to the sea.
a small boat is on the lake.
the cat and the dog sleep.
my friend lives in a big city.
her house is near the river.
his car is old and slow.
the train is late again.
we eat bread and soup.
they drink cold water.
i like green tea.
you read a good book.
she sings a sad song.
he plays in the garden.
the garden is full of flowers.
a red flower grows near the door.
the door of the house is open.
the window is closed at night.
the night is dark and long.
the moon is over the lake.
stars are small and far.
the morning is cold.
a teacher reads to the children.
the children laugh and play.
the king lives in a big house.
a king and a queen walk home.
the queen has a white horse.
the horse runs over the hill.
two men work in the field.
the field is green.
an old tree grows on the hill.
the wind is strong today.
the doctor works at night.
my mother writes a book.
his father has a small shop.
the shop sells bread, tea, soup and red apples to the children of the city.
""".strip().splitlines()
VALIDATION = """
the cat sleeps in the house.
a dog plays in the snow.
the girl reads a long book.
the old woman drinks cold water.
two birds sing in the garden.
the boat is on the river.
my father works in the city.
the wind is cold at night.
a white horse runs to the sea.
the children eat bread and apples.
her friend lives near the lake.
the king walks home today.
""".strip().splitlines()


@pytest.fixture(scope="session")
def tiny_words() -> set[str]:
    """All words above."""
    return {word.strip(".,") for text in [*TRAIN, *VALIDATION] for word in text.split()}


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_words: set[str]) -> Tokenizer:
    """A lower-casing WordPiece of all words above, and of single letters, so that it can spell any other word."""
    letters = [*string.ascii_lowercase, *string.digits]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *letters]
    tokens += [f"##{letter}" for letter in letters] + sorted(tiny_words - set(letters))
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(tokens[:5])
    return tokenizer


TOKENIZERS = ("WordPiece", "BPE", "Unigram")
"""The families that encoders' tokenizers come from; each marks the beginnings of words in its own way."""


@pytest.fixture(scope="session")
def build_tokenizer(tiny_tokenizer: Tokenizer, tiny_words: set[str]):
    """Makes a tokenizer of a family that knows the words above, and spells any other word in smaller pieces."""

    def build(family: str) -> Tokenizer:
        texts = [*TRAIN, *VALIDATION]
        if family == "WordPiece":
            return tiny_tokenizer
        if family == "BPE":
            tokenizer = Tokenizer(models.BPE())
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = decoders.ByteLevel()
            alphabet = pre_tokenizers.ByteLevel.alphabet()
            tokenizer.train_from_iterator(texts, trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False))
        else:
            letters = [*string.ascii_letters, *string.digits, *string.punctuation]
            pieces = [("<unk>", 0.0), ("▁", -9.0), *((f"▁{word}", -6.0) for word in sorted(tiny_words))]
            pieces += [("ing", -9.0), *((letter, -9.0) for letter in letters)]
            tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
            tokenizer.decoder = decoders.Metaspace()
        tokenizer.add_special_tokens(["<unk>", "<pad>"])
        return tokenizer

    return build


@pytest.fixture(params=TOKENIZERS)
def any_tokenizer(request: pytest.FixtureRequest, build_tokenizer) -> Tokenizer:
    """A tokenizer of each family in turn."""
    return build_tokenizer(request.param)


class FakeEncoder:
    """An Encoder without weights: each token has a fixed random vector, turned a little by its position."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.description = EncoderDescription(
            name="fake", revision="1", dim=16, prompt=None, pooling="mean", normalised=True
        )
        self.calls = 0
        self.seen: list[str] = []
        """Every text that was ever encoded, in order."""
        random = np.random.default_rng(0)
        self._of_token = random.normal(size=(tokenizer.get_vocab_size(), 16))
        self._of_position = random.normal(size=(512, 16))

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        self.calls += 1
        self.seen += sentences
        vectors = np.empty((len(sentences), 16), dtype=np.float32)
        for row, text in enumerate(sentences):
            ids = self.tokenizer.encode(text).ids[:512]
            vector = (self._of_token[ids] * (1.0 + 0.3 * self._of_position[: len(ids)])).mean(0)
            vectors[row] = vector / np.linalg.norm(vector)
        return vectors


@pytest.fixture(scope="session")
def build_fake_encoder(tiny_tokenizer: Tokenizer):
    """Makes encoders without weights, all of one tokenizer alike."""
    return lambda tokenizer=tiny_tokenizer: FakeEncoder(tokenizer)


@pytest.fixture
def fake_encoder(build_fake_encoder) -> FakeEncoder:
    """Deterministic vectors of 16 numbers; counts its ``calls`` and remembers the texts it has ``seen``."""
    return build_fake_encoder()


@pytest.fixture(scope="session")
def tiny_store_master(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "store"
    for split, texts in (("train", TRAIN), ("validation", VALIDATION)):
        embed_texts(texts.__iter__, folder / split, FakeEncoder(tiny_tokenizer), canvas_length=12, shard_lines=16)
    return folder


@pytest.fixture
def tiny_store(tiny_store_master: Path, tmp_path: Path) -> Path:
    """A folder whose ``train`` (48 rows, 3 shards) and ``validation`` (12 rows) are stores; a copy, free to damage."""
    return Path(shutil.copytree(tiny_store_master, tmp_path / "tiny-store"))


@pytest.fixture
def tiny_checkpoint(tiny_store: Path, tmp_path: Path) -> Path:
    """A folder with an inverter for the vectors of ``fake_encoder``; it has learnt nothing."""
    return _save_inverter(tiny_store, tmp_path / "tiny-checkpoint")


@pytest.fixture
def searching_checkpoint(tiny_store: Path, tmp_path: Path) -> Path:
    """The same with a surrogate of the encoder and a writer."""
    return _save_inverter(
        tiny_store,
        tmp_path / "searching-checkpoint",
        freeze_token_embeddings=True,
        surrogate={"layers": 1},
        writer={"layers": 1},
    )


@pytest.fixture
def writing_checkpoint(tiny_store: Path, tmp_path: Path) -> Path:
    """The same with a writer, which knows as little as the denoiser that it starts from."""
    return _save_inverter(
        tiny_store, tmp_path / "writing-checkpoint", freeze_token_embeddings=True, writer={"layers": 1}
    )


def _save_inverter(tiny_store: Path, folder: Path, **settings: Any) -> Path:
    import torch

    from unembed.checkpoint import Checkpoint, CheckpointInfo, save_checkpoint
    from unembed.config import ModelRecipe, NoiseConfig
    from unembed.store import Store
    from unembed.training.compatibility import build_for_store

    store = Store(tiny_store / "train")
    torch.manual_seed(0)
    model = build_for_store(ModelRecipe(layers=1, width=16, heads=2, feedforward=32, **settings), store.manifest)
    if model.writer is not None:
        model.writer.start_from(model.denoiser, model.prior_scale, model.prior_damping)
    if model.writer is not None:
        torch.nn.init.normal_(model.writer.start)  # else it would count as never trained
    info = CheckpointInfo.for_store(store.manifest, model.config, NoiseConfig())
    save_checkpoint(folder, Checkpoint(model, store.tokenizer(), info))
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it said where."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command line in this process, as ``unembed`` would in its own."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["unembed", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ending:
            main()
        return Ended(int(ending.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def minilm():
    """The real encoder."""
    return load_encoder()


@pytest.fixture(scope="session")
def build_encoder_folder(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory):
    """Writes a tiny encoder with random weights to a folder, as sentence-transformers does, and returns its path.

    ``kind`` is the architecture, as transformers names it; ``last`` are modules behind the pooling; ``options`` are for
    ``SentenceTransformer``.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

    def build(name: str, *, kind="bert", pooling="mean", last=(), max_seq_length=40, seed=0, **options) -> Path:
        folder = tmp_path_factory.mktemp("models")
        torch.manual_seed(seed)
        config = AutoConfig.for_model(
            kind,
            vocab_size=tiny_tokenizer.get_vocab_size(),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
            initializer_range=0.3,
            pad_token_id=0,
        )
        AutoModel.from_config(config).save_pretrained(folder / kind)
        special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer, model_max_length=64, **special)
        tokenizer.save_pretrained(folder / kind)
        modules = [Transformer(str(folder / kind), max_seq_length=max_seq_length), Pooling(32, pooling), *last]
        SentenceTransformer(modules=modules, device="cpu", **options).save(str(folder / name))
        return folder / name

    return build


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL with pgvector that was started for this session."""
    pytest.importorskip("pgserver", reason="pgserver, which brings PostgreSQL with pgvector, is not installed")
    with running_postgres() as address:
        yield address
