"""``unembed invert``: texts or vectors in, recovered texts out."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def invert(
    source: Annotated[list[str], typer.Argument(help="Texts (a round trip through the encoder), or one .npy file.")],
    model: Annotated[str, typer.Option("--model", "-m", help="An inverter: a folder or a hub id.")],
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
        originals: list[str | None] = [None] * (1 if vectors.ndim == 1 else len(vectors))
        inversions = inverter.invert(vectors, steps=steps)
    else:
        from unembed.encoders import load_encoder

        described = inverter.info.encoder
        encoder = load_encoder(described.name, prompt=described.prompt, device=device)
        originals = list(source)
        inversions = inverter.invert_text(source, encoder, steps=steps)
    if as_json:
        show_json(
            [{"original": text, **asdict(inversion)} for text, inversion in zip(originals, inversions, strict=True)]
        )
        return
    for text, inversion in zip(originals, inversions, strict=True):
        if text is not None:
            typer.echo(f"original   {text}")
        typer.echo(f"recovered  {inversion.text}  ({inversion.confidence:.0%} sure, {inversion.passes} passes)")
