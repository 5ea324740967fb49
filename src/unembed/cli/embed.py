"""``unembed embed``: a corpus becomes a store."""

from pathlib import Path
from typing import Annotated

import typer


def embed(
    corpus: Annotated[Path, typer.Argument(help="A folder made by unembed prepare, or a .txt / .txt.gz file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the store goes.")],
    encoder: Annotated[str, typer.Option(help="A packaged encoder, a folder, or a hub id.")] = "all-MiniLM-L6-v2",
    revision: Annotated[str | None, typer.Option(help="Hub revision of the encoder.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Text that the encoder puts before every sentence.")] = None,
    canvas_length: Annotated[int, typer.Option(min=1, help="Cut texts to this many tokens.")] = 32,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per forward pass.")] = 32,
    shard_lines: Annotated[int, typer.Option(min=1, help="Lines per shard: what a kill can cost at most.")] = 8192,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Embed a prepared corpus with a real encoder; run it again to go on where it stopped.

    Example: unembed embed work/corpus --output work/store
    """
    from functools import partial

    from unembed.cli.output import show_result
    from unembed.corpus import read_texts
    from unembed.encoders import load_encoder
    from unembed.errors import CorpusError
    from unembed.progress import make_progress
    from unembed.store import Shard, embed_texts

    sources = {output: corpus}
    if corpus.is_dir():
        sources = {output / split: corpus / f"{split}.txt" for split in ("train", "validation")}
        validation = output / "validation"
        # Prepared with --validation-share 0, perhaps to be validated on something else.
        if not _count_lines(sources[validation]):
            typer.echo(
                f"{sources.pop(validation)} is missing or empty: only {output / 'train'} is made. To train on it, also "
                f"run: unembed embed OTHER.txt --output {validation}",
                err=True,
            )
    totals = {}
    for folder, source in sources.items():
        totals[folder] = _count_lines(source)
        if not totals[folder]:
            raise CorpusError(
                f"{source} {'is empty' if source.is_file() else 'does not exist'}.",
                "Give a text file, or a folder made by: unembed prepare INPUT --output CORPUS",
            )
    model = load_encoder(encoder, prompt=prompt, revision=revision, device=device)
    result = {}
    for folder, source in sources.items():
        with make_progress() as progress:
            task = progress.add_task(f"Embedding {source.name}", total=totals[folder])

            def advance(shard: Shard) -> None:
                progress.advance(task, shard.lines)  # noqa: B023 - called within this iteration only

            manifest = embed_texts(
                partial(read_texts, source),
                folder,
                model,
                canvas_length=canvas_length,
                shard_lines=shard_lines,
                batch_size=batch_size,
                on_shard=advance,
            )
        result[str(folder)] = {"rows": manifest.rows, "left out": manifest.lines - manifest.rows}
    show_result(result, title=f"Embedded with {model.description.name}", as_json=as_json)


def _count_lines(source: Path) -> int:
    from unembed.corpus import read_texts

    return sum(1 for _ in read_texts(source)) if source.is_file() else 0
