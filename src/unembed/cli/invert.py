"""``unembed invert``: texts or vectors in, recovered texts out."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def invert(
    source: Annotated[list[str], typer.Argument(help="Texts (a round trip through the encoder), or one .npy file.")],
    model: Annotated[str, typer.Option("--model", "-m", help="An inverter: a folder or a hub id.")],
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Where the inverter's encoder lies, for the round trip: a folder or a hub id.",
            show_default="the one that the inverter names",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Forward passes at most.")] = 8,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read the text back out of vectors.

    Example: unembed invert "Embeddings are not anonymous." --model work/run/best
    """
    import numpy as np

    from unembed.cli.output import show_json
    from unembed.errors import VectorError
    from unembed.inverter import Inverter

    inverter = Inverter.from_pretrained(model, device=device)
    if len(source) == 1 and source[0].endswith(".npy"):
        try:
            vectors = np.load(Path(source[0]), allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise VectorError(f"Cannot read {source[0]}: {error}.", "Give a .npy file of shape (n, d).") from error
        if not isinstance(vectors, np.ndarray):
            raise VectorError(f"{source[0]} is an archive of arrays.", "Save the one array with numpy.save.")
        inversions = inverter.invert(vectors, steps=steps)
        originals: list[str | None] = [None] * len(inversions)
    else:
        from unembed.encoders import load_encoder

        described = inverter.info.encoder
        on_hub = encoder is None and "/" in described.name
        loaded = load_encoder(
            encoder or described.name,
            prompt=described.prompt,
            revision=described.revision if on_hub else None,
            device=device,
        )
        inversions = inverter.invert_text(source, loaded, steps=steps)
        originals = list(source)
    if as_json:
        show_json(
            [{"original": text, **asdict(inversion)} for text, inversion in zip(originals, inversions, strict=True)]
        )
        return
    for text, inversion in zip(originals, inversions, strict=True):
        if text is not None:
            typer.echo(f"original   {text}")
        typer.echo(f"recovered  {inversion.text}  ({inversion.confidence:.0%} sure, {inversion.passes} passes)")
