"""The encoders that vectors can come from: fingerprints, prompts, dimensions. Looks at no vectors."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from unembed.encoders import CATALOGUE, Encoder, load_encoder
from unembed.store import Fingerprint

FINGERPRINTS = "fingerprints.json"

_SEARCH = "Represent this sentence for searching relevant passages: "
PROMPTS = {
    "multilingual-e5-small": ("passage: ", "query: ", ""),
    "nomic-embed-text-v1.5": ("search_document: ", "search_query: ", "", "clustering: ", "classification: "),
    "bge-small-en-v1.5": ("", _SEARCH),
    "snowflake-arctic-embed-s": ("", _SEARCH),
    "Qwen/Qwen3-Embedding-0.6B": (
        "",
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
    ),
    "google/embeddinggemma-300m": ("title: none | text: ", "task: search result | query: ", ""),
}
"""What people put before texts, for encoders that were trained with prompts; first the one for documents."""

ELSEWHERE = {
    256: ("text-embedding-3-large cut to 256",),
    384: (
        "all-MiniLM-L12-v2",
        "paraphrase-multilingual-MiniLM-L12-v2",
        "multi-qa-MiniLM-L6-cos-v1",
        "e5-small-v2",
        "gte-small",
        "embed-english-light-v3.0",
        "embed-multilingual-light-v3.0",
    ),
    512: ("text-embedding-3-small cut to 512", "voyage-3-lite", "jina-embeddings-v2-small-en", "potion-base-32M"),
    768: (
        "bge-base-en-v1.5",
        "e5-base-v2",
        "multilingual-e5-base",
        "gte-base",
        "gtr-t5-base",
        "sentence-t5-base",
        "LaBSE",
        "jina-embeddings-v2-base-en",
        "snowflake-arctic-embed-m",
        "text-embedding-004",
    ),
    1024: (
        "embed-english-v3.0",
        "embed-multilingual-v3.0",
        "mistral-embed",
        "voyage-3",
        "voyage-3.5",
        "titan-embed-text-v2",
        "bge-large-en-v1.5",
        "bge-m3",
        "multilingual-e5-large",
        "mxbai-embed-large-v1",
        "snowflake-arctic-embed-l",
        "text-embedding-3-large cut to 1024",
    ),
    1536: ("text-embedding-3-small", "text-embedding-ada-002", "embed-v4.0", "titan-embed-text-v1"),
    2560: ("Qwen3-Embedding-4B",),
    3072: ("text-embedding-3-large", "gemini-embedding-001"),
    4096: ("Qwen3-Embedding-8B", "NV-Embed-v2", "e5-mistral-7b-instruct"),
}
"""Well-known encoders whose vectors we do not have: only their dimension is known here."""

Load = Callable[[], Encoder]


@dataclass(frozen=True)
class KnownVectors:
    """What the vectors of an encoder look like, if texts are given to it with a prompt."""

    encoder: str
    prompt: str
    fingerprint: Fingerprint

    @property
    def dim(self) -> int:
        """How many numbers its vectors have."""
        return len(self.fingerprint.mean)


@cache
def known_vectors() -> tuple[KnownVectors, ...]:
    """Return the fingerprints that come with the package; ``benchmarks/identification.py`` makes them."""
    text = (files("unembed.identification") / FINGERPRINTS).read_text(encoding="utf-8")
    return tuple(
        KnownVectors(entry["encoder"], entry["prompt"], Fingerprint.model_validate(entry["fingerprint"]))
        for entry in json.loads(text)
    )


def installed_encoders(dim: int, device: str = "auto") -> dict[str, Load]:
    """Return the known encoders of a dimension that run on this machine, and how each is loaded."""
    names = [name for name, encoder in CATALOGUE.items() if encoder.dim == dim and encoder.installed]
    return {name: loading(name, device) for name in names}


def loading(name: str, device: str = "auto") -> Load:
    """Return what loads an encoder to ask; if it has a choice of prompts, it is loaded without one."""
    return partial(load_encoder, name, prompt="" if name in PROMPTS else None, device=device)


def dimension_of(name: str) -> int | None:
    """Return how many numbers the vectors of an encoder have, by its name without its organisation; None if unknown."""
    dimensions = {short_name(known): encoder.dim for known, encoder in CATALOGUE.items()}
    dimensions |= {short_name(known): dim for dim, names in ELSEWHERE.items() for known in names}
    return dimensions.get(short_name(name))


def short_name(name: str) -> str:
    """Return an encoder's name without its organisation, in small letters: databases write it in many ways."""
    return name.rstrip("/").rpartition("/")[2].lower()
