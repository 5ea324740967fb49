"""Words: how many vectors a second ``unembed words`` reads, from a file of vectors to lines of JSON.

``reader`` is the product and the choice of words alone; ``command`` also reads the file, writes the lines and counts.
``whole vocabulary`` is ``Inverter.words``: every token, with its probability. With ``--model`` the weights are those of
a trained inverter; otherwise they are random, which takes the same time. With ``--texts`` too, the share of the words
named over the whole vocabulary that the default one names as well.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import torch

from measure import Figure, Result, finish, interleave, make_parser, spread
from steps import minilm_recipe
from unembed.auditing import WordReader
from unembed.canvas import CanvasVocabulary, tokenizer_hash
from unembed.checkpoint import CheckpointInfo
from unembed.cli.words import words
from unembed.config import NoiseConfig
from unembed.corpus import read_texts
from unembed.encoders import known_tokenizer, load_encoder
from unembed.inverter import Inverter
from unembed.model import ConditionalMDLM

_TARGET = 20_000.0
_TOP = 12


def main() -> None:
    """Measure, and print what was found."""
    parser = make_parser(__doc__, repetitions=5)
    parser.add_argument("--model", help="a trained inverter")
    parser.add_argument("--texts", type=Path, help="texts to compare vocabularies on")
    options = parser.parse_args()
    encoder = load_encoder()
    inverter = Inverter.from_pretrained(options.model) if options.model else _make_inverter(quick=options.quick)
    count, few = (256, 64) if options.quick else (40_000, 2_048)
    vectors = np.random.default_rng(0).normal(size=(count, inverter.info.encoder.dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reader = WordReader(inverter, top=_TOP)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "vectors.npy", vectors)
        inverter.save_pretrained(Path(folder) / "inverter")
        variants: dict[str, Callable[[], object]] = {
            "reader": partial(reader.read, vectors),
            "command": partial(_run_command, Path(folder)),
            "whole vocabulary": partial(inverter.words, vectors[:few], top=_TOP),
        }
        for run in variants.values():
            run()
        times = interleave(variants, options.repetitions)
    sizes = {"reader": count, "command": count, "whole vocabulary": few}
    rates = {name: [sizes[name] / seconds for seconds in each] for name, each in times.items()}
    middle = {name: float(np.median(each)) for name, each in rates.items()}
    notes = ["`command` includes loading the inverter."]
    if options.texts:
        texts = [text for text in read_texts(str(options.texts)) if text.strip()][:1500]
        notes.append(_coverage(inverter, encoder.encode(texts), len(texts), options.texts.name))
    finish(
        Result(
            title="Words of a store",
            compared="Vectors read per second, by `unembed words` and by the readout over the whole vocabulary.",
            columns=["variant", "vectors / s, median (least to most)"],
            rows=[[name, spread(each)] for name, each in rates.items()],
            figures=[Figure("Vectors a second, the reader alone", middle["reader"], _TARGET)],
            repetitions=options.repetitions,
            sizes={"vectors": count, "words": len(reader.words), "threads": torch.get_num_threads()},
            times=times,
            notes=notes,
        ),
        options,
    )


def _run_command(folder: Path) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        words(f"npy:{folder / 'vectors.npy'}", model=str(folder / "inverter"), as_json=True)


def _coverage(inverter: Inverter, vectors: np.ndarray, count: int, name: str) -> str:
    whole = WordReader(inverter, top=_TOP, vocabulary=1_000_000).read(vectors)
    part = WordReader(inverter, top=_TOP).read(vectors)
    shared = [len({*whole.names_of(row)} & {*part.names_of(row)}) / _TOP for row in range(count)]
    return (
        f"Of the {_TOP} words that are named when all {len(whole.names):,} are looked for, {np.mean(shared):.1%} are "
        f"named by default too (n = {count} texts of {name})."
    )


def _make_inverter(*, quick: bool) -> Inverter:
    encoder = load_encoder()
    vocabulary = CanvasVocabulary.of(known_tokenizer(encoder))
    config = minilm_recipe(quick=quick).model.resolve(
        embedding_dim=384, vocabulary_size=vocabulary.size, canvas_length=32
    )
    torch.manual_seed(0)
    info = CheckpointInfo(
        encoder=encoder.description,
        model=config,
        noise=NoiseConfig(),
        special_ids=vocabulary.special,
        tokenizer_hash=tokenizer_hash(known_tokenizer(encoder)),
        training_rows=0,
    )
    return Inverter(ConditionalMDLM(config, vocabulary), known_tokenizer(encoder), info)


if __name__ == "__main__":
    main()
