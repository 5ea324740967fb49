"""``unembed demo``: the guided tour in a terminal. A sentence, its numbers, its words, and the sentence again."""

import json
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np

    from unembed.inverter import Inverter

_TICK, _WAVE = "✓", "≈"
_NUMBERS = 6


def demo(
    text: Annotated[
        str | None,
        typer.Argument(help="A sentence of yours.", show_default="one that was measured to come back well"),
    ] = None,
    blind: Annotated[bool, typer.Option("--blind", help="Leave out the search with the encoder.")] = False,
) -> None:
    """Show in a minute what an embedding gives away.

    Example: unembed demo "We are getting divorced in the spring."
    """
    sentence = text or _opener()
    _say("Embeddings are stored and shared as if they were anonymous. Here is one:")
    _say(f"\n  {_printable(sentence)}\n")
    from unembed.cli.interrupt import early_end
    from unembed.cli.loading import loading

    with loading("the inverter and the encoder"):
        from unembed.cli.animation import Painter, make_console
        from unembed.cli.display import animate, list_results
        from unembed.cli.job import InversionJob
        from unembed.config import DecodingConfig
        from unembed.inverter import Inverter

        inverter = Inverter.default()
        encoder = inverter.load_encoder()
    trips, vectors = inverter.round_trip([sentence], encoder)
    numbers = "  ".join(f"{number:+.3f}" for number in vectors[0, :_NUMBERS].tolist())
    _say(f"1. The encoder makes {vectors.shape[1]} numbers of it. Only these are kept:\n\n   {numbers}  ...\n")
    _say(f"2. Words that the numbers give away at once ({_TICK} is in the sentence, {_WAVE} a form of it):\n")
    _say(f"   {_words(inverter, vectors, trips[0].embedded)}\n")
    console = make_console()
    painter = Painter(inverter.tokenizer, inverter.info.vocabulary)
    watched = console.is_terminal and not console.is_dumb_terminal
    steps = [
        (
            "3. The sentence, written from the numbers alone in a moment:\n",
            DecodingConfig(strategy=inverter.strategy_for_many),
        ),
        (
            "4. After a few seconds of search, still without asking the encoder:\n",
            DecodingConfig(strategy="surrogate"),
        ),
        (
            "5. With the encoder, which anyone can download, an attacker checks every guess:\n",
            DecodingConfig(strategy="guided"),
        ),
    ]
    with early_end() as interrupted:
        for heading, options in steps[:-1] if blind else steps:
            _say(heading)
            job = InversionJob(
                inverter,
                options,
                painter,
                encoder=encoder,
                length=None,
                batch_size=64,
                trace=False,
                interrupted=interrupted,
            )
            if watched:
                animate(job, job.embed([sentence]), console)
            else:
                list_results(job, job.embed([sentence]), 1, as_json=False)
            _say("")
            if interrupted():
                break
    _say("Next: unembed serve --open (the web page), or unembed audit chroma:./db (a vector database of yours).")


def _words(inverter: "Inverter", vectors: "np.ndarray", text: str) -> str:
    """Return the words of a vector, those first that the sentence has."""
    from unembed.auditing import WordReader
    from unembed.measures import fate_of, spoken_words

    said = spoken_words(text)
    named = WordReader(inverter).read(vectors).names_of(0)
    fates = {word: fate_of(word, said) for word in named}
    signs = {"same": _TICK, "near": _WAVE, "lost": ""}
    ordered = sorted(named, key=lambda word: list(signs).index(fates[word]))
    return "  ".join(f"{signs[fates[word]]}{word}" for word in ordered)


def _opener() -> str:
    """Return the first example of the web page: ``benchmarks/opener.py`` chose it by measurement."""
    stored = files("unembed").joinpath("server", "examples.json").read_text(encoding="utf-8")
    text: str = json.loads(stored)["examples"][0]["text"]
    return text


def _printable(text: str) -> str:
    from unembed.text import printable

    return printable(text)


def _say(line: str) -> None:
    typer.echo(line)
    sys.stdout.flush()
