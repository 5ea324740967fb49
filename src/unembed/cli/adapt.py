"""``unembed adapt``: an inverter for another encoder, in minutes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unembed.cli.sources import SourceColumn, SourceTextColumn

if TYPE_CHECKING:
    import numpy as np

    from unembed.adaptation import OwnTexts, Pairs
    from unembed.encoders import Encoder, EncoderDescription
    from unembed.inverter import Inverter
    from unembed.progress import OnProgress

PAIRS_FOLDER = "pairs"
PAIRS, UNPAIRED = 1000, 20_000


def adapt(
    encoder: Annotated[
        str,
        typer.Argument(
            help="The encoder to adapt to: a name that unembed encoders lists, a folder, a hub id, or "
            "https://host/v1#model. With --pairs-from or --unpaired any name will do."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the adapted inverter.")],
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many texts the encoder embeds at most. Further texts, up to 10,000 in all, are embedded by the "
            "inverter's own encoder only.",
            show_default=f"{PAIRS:,}; with --unpaired {UNPAIRED:,}",
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Texts like those that will be read back: .txt, .jsonl, .csv, .parquet.",
            show_default="10,000 short texts that come with unembed",
        ),
    ] = None,
    pairs_from: Annotated[
        str | None,
        typer.Option(
            help="A vector database or a file that holds vectors of the encoder together with their texts, as unembed "
            "audit takes it. The encoder itself is then not needed."
        ),
    ] = None,
    unpaired: Annotated[
        str | None,
        typer.Option(
            help="A vector database or a file with vectors of the encoder, and no texts. Needs --texts of the same "
            "kind; 10,000 or more vectors and texts work best."
        ),
    ] = None,
    column: SourceColumn = None,
    text_column: SourceTextColumn = None,
    model: Annotated[str, typer.Option("--model", "-m", help="The inverter to start from.")] = "default",
    prompt: Annotated[str | None, typer.Option(help="Text that the encoder puts before every sentence.")] = None,
    truncate_dim: Annotated[
        int | None, typer.Option(min=1, help="Keep only this many numbers of each vector (Matryoshka models).")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The task of encoders that have an adapter per task.")] = None,
    revision: Annotated[str | None, typer.Option(help="Hub revision of the encoder.")] = None,
    price: Annotated[
        float | None, typer.Option(min=0.0, help="Price of an endpoint per million tokens, to estimate the cost.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before an endpoint is used.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per forward pass or request.")] = 32,
    seed: Annotated[int, typer.Option(min=0, help="Of the cross-validation and of tuning.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Adapt an inverter to another encoder, with vectors of a few texts by both; or, unpaired, with its vectors alone.

    Run it again to continue where it stopped: vectors that were made are kept in the output folder.

    Example: unembed adapt bge-small-en-v1.5 --output work/bge; unembed invert ... --model work/bge
    """
    from unembed.adaptation import ENOUGH
    from unembed.cli.evaluate import show_progress
    from unembed.cli.output import show_json, show_result
    from unembed.encoders import load_encoder
    from unembed.errors import ConfigError
    from unembed.inverter import Inverter

    if pairs_from and (texts or unpaired):
        other_flag = "--texts" if texts else "--unpaired"
        raise ConfigError(f"{other_flag} and --pairs-from exclude each other.", "Leave out one of them.")
    if unpaired and not texts:
        raise ConfigError(
            "--unpaired needs texts of the same kind as those that the vectors were made of.",
            "Give them: --texts FILE.",
        )
    base = Inverter.from_pretrained(model, device=device)
    most = pairs or (UNPAIRED if unpaired else PAIRS)
    chosen, origin = ([], "") if pairs_from else _read(texts, most if unpaired else max(most, ENOUGH))
    chosen, others = (chosen, []) if unpaired else (chosen[:most], chosen[most:])
    if not unpaired:
        _announce(encoder, chosen, base, batch_size, price, ask=not yes and sys.stdin.isatty())
    with show_progress() as on_progress:
        if unpaired:
            vectors, described = _vectors_of_source(unpaired, column, encoder, prompt, UNPAIRED)
            own = _embed_own(chosen, origin, base, output / PAIRS_FOLDER / "ours", batch_size, device, on_progress)
            adapted = base.adapt_unpaired_to(vectors, described, own, seed=seed, on_progress=on_progress)
        else:
            if pairs_from:
                found = _pairs_of_source(pairs_from, column, text_column, encoder, prompt, most, base, device)
            else:
                other = load_encoder(
                    encoder,
                    prompt=prompt,
                    truncate_dim=truncate_dim,
                    task=task,
                    revision=revision,
                    device=device,
                    precision="auto",
                )
                found = _embed(chosen, origin, other, base, output / PAIRS_FOLDER, batch_size, device, on_progress)
            more = None
            if others:
                folder = output / PAIRS_FOLDER / "others"
                more = _embed_own(others, origin, base, folder, batch_size, device, on_progress)
            adapted = base.adapt_to(found, others=more, seed=seed, on_progress=on_progress)
    adapted.save_pretrained(output)
    assert adapted.adaptation is not None
    how = adapted.adaptation.info
    measured = {name: round(value, 3) for name, value in how.metrics.items()}
    if as_json:
        show_json({"output": str(output), "pairs": how.pairs, "method": how.method, "metrics": measured})
        return
    held_out = "held-out pairs" if how.pairs else "held-out vectors"
    found_by = f"from {how.pairs:,} pairs by {how.method}" if how.pairs else "without pairs"
    show_result(
        {name: {held_out: value} for name, value in measured.items()},
        title=f"An inverter for {how.encoder.name}, {found_by}",
        as_json=False,
    )
    if how.pairs:
        share = how.metrics["tuned_readout_f1"] / max(how.metrics["base_readout_f1"], 1e-9)
        typer.echo(f"It names {share:.0%} of the words that {model} names, given vectors of its own encoder.", err=True)
    typer.echo(f"Use it: unembed invert ... --model {output}", err=True)


def _read(source: Path | None, most: int) -> tuple[list[str], str]:
    """Return up to ``most`` different texts, and where they come from."""
    from itertools import islice

    from unembed.corpus import BUNDLED, bundled_texts, read_texts

    texts = bundled_texts() if source is None else read_texts(source)
    return list(islice(dict.fromkeys(texts), most)), BUNDLED if source is None else source.name


def _announce(
    encoder: str, texts: list[str], base: "Inverter", batch_size: int, price: float | None, *, ask: bool
) -> None:
    from unembed.cli.costs import announce_requests
    from unembed.encoders import is_endpoint

    if texts and is_endpoint(encoder):
        announce_requests(texts, base.tokenizer, base.info.model.canvas_length, batch_size, price, ask=ask)


def _embed(
    texts: list[str],
    origin: str,
    encoder: "Encoder",
    base: "Inverter",
    folder: Path,
    batch_size: int,
    device: str,
    on_progress: "OnProgress",
) -> "Pairs":
    """Embed texts with both encoders; what is finished is kept in ``folder``."""
    from unembed.adaptation import embed_pairs
    from unembed.encoders import quicker

    return embed_pairs(
        texts,
        encoder,
        quicker(base.load_encoder(device=device)),
        folder,
        tokenizer=base.tokenizer,
        canvas_length=base.info.model.canvas_length,
        origin=origin,
        batch_size=batch_size,
        on_progress=on_progress,
    )


def _embed_own(
    texts: list[str],
    origin: str,
    base: "Inverter",
    folder: Path,
    batch_size: int,
    device: str,
    on_progress: "OnProgress",
) -> "OwnTexts":
    """Embed texts with the base's own encoder; what is finished is kept in ``folder``."""
    from unembed.adaptation import embed_own
    from unembed.encoders import quicker

    return embed_own(
        texts,
        quicker(base.load_encoder(device=device)),
        folder,
        tokenizer=base.tokenizer,
        canvas_length=base.info.model.canvas_length,
        origin=origin,
        batch_size=batch_size,
        on_progress=on_progress,
    )


def _vectors_of_source(
    uri: str, column: str | None, encoder: str, prompt: str | None, most: int
) -> "tuple[np.ndarray, EncoderDescription]":
    """Read vectors from a store, and describe their encoder as far as they tell."""
    from collections import Counter

    import numpy as np

    from unembed.connectors import open_vectors
    from unembed.encoders import EncoderDescription
    from unembed.errors import VectorError

    source = open_vectors(uri, column=column)
    parts: list[np.ndarray] = []
    for batch in source.usable(Counter()):
        parts.append(batch.vectors[: most - sum(map(len, parts))])
        if sum(map(len, parts)) >= most:
            break
    if not parts:
        raise VectorError(f"{source.name} holds no vectors that can be used.", "Give another source.")
    vectors = np.concatenate(parts)
    return vectors, EncoderDescription.of_vectors(encoder, vectors, prompt)


def _pairs_of_source(
    uri: str,
    column: str | None,
    text_column: str | None,
    encoder: str,
    prompt: str | None,
    most: int,
    base: "Inverter",
    device: str,
) -> "Pairs":
    """Read vectors and their texts from a store, and embed the texts with the base's own encoder."""
    from collections import Counter

    import numpy as np

    from unembed.adaptation import pair_known
    from unembed.connectors import mask_passwords, open_vectors
    from unembed.encoders import EncoderDescription
    from unembed.errors import VectorError

    source = open_vectors(uri, column=column, text_column=text_column)
    texts: list[str] = []
    parts: list[np.ndarray] = []
    for batch in source.usable(Counter()):
        stored = batch.texts or [None] * len(batch)
        rows = [row for row, text in enumerate(stored) if text and text.strip()][: most - len(texts)]
        texts += [str(stored[row]) for row in rows]
        parts.append(batch.vectors[rows])
        if len(texts) >= most:
            break
    if not texts:
        raise VectorError(f"{source.name} holds no texts with its vectors.", "Name the field: --text-column NAME.")
    vectors = np.concatenate(parts)
    described = EncoderDescription.of_vectors(encoder, vectors, prompt)
    own = base.load_encoder(device=device)
    return pair_known(
        texts, vectors, described, own, tokenizer=base.tokenizer, origin=f"stored in {mask_passwords(uri)}"
    )
