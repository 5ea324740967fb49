"""``unembed embed``: a corpus becomes a store."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unembed.cli.distribution import RayAddress, WorkerCount, check_cluster, shards_on


class PrecisionName(StrEnum):
    """The precision that an encoder computes in."""

    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"


def embed(
    corpus: Annotated[Path, typer.Argument(help="A folder made by unembed prepare, or a .txt / .txt.gz file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the store.")],
    encoder: Annotated[
        str, typer.Option(help="A name that unembed encoders lists, a folder, a hub id, or https://host/v1#model.")
    ] = "all-MiniLM-L6-v2",
    revision: Annotated[str | None, typer.Option(help="Hub revision of the encoder.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Text that the encoder puts before every sentence.")] = None,
    task: Annotated[
        str | None, typer.Option(help="The task whose adapter is used, for encoders that have one per task.")
    ] = None,
    truncate_dim: Annotated[
        int | None, typer.Option(min=1, help="Keep only this many numbers of each vector (Matryoshka models).")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="The tokenizer of the canvas: an encoder's name, a tokenizer.json, or a folder with one.",
            show_default="the encoder's own",
        ),
    ] = None,
    vocabulary: Annotated[
        int | None,
        typer.Option(min=1, help="Keep only this many pieces of the tokenizer: those that the corpus uses most."),
    ] = None,
    price: Annotated[
        float | None, typer.Option(min=0.0, help="Price of an endpoint per million tokens, to estimate the cost.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before an endpoint is used.")] = False,
    canvas_length: Annotated[int, typer.Option(min=1, help="Cut texts to this many tokens.")] = 32,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per forward pass.")] = 32,
    shard_lines: Annotated[int, typer.Option(min=1, help="Lines per shard: the most that a killed run loses.")] = 8192,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    precision: Annotated[
        PrecisionName,
        typer.Option(
            help="The precision of the encoder. bfloat16 is about twice as fast on processors that support it. auto "
            "uses bfloat16 if it is supported and the vectors stay practically the same."
        ),
    ] = PrecisionName.float32,
    ray: RayAddress = None,
    workers: WorkerCount = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Embed a prepared corpus with an encoder. Run it again to continue where it stopped.

    Example: unembed embed work/corpus --output work/store
    """
    from functools import partial
    from itertools import chain

    from unembed.canvas import count_pieces, reduce_vocabulary, respelled_share
    from unembed.cli.costs import announce_requests
    from unembed.cli.output import show_result
    from unembed.corpus import read_texts
    from unembed.encoders import is_endpoint, known_tokenizer, load_encoder, load_tokenizer
    from unembed.errors import CorpusError
    from unembed.progress import make_progress
    from unembed.store import Shard, embed_texts

    check_cluster(ray, workers)
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
    chosen = load_tokenizer(tokenizer) if tokenizer else None
    if chosen and is_endpoint(encoder):
        lines = chain.from_iterable(map(read_texts, sources.values()))
        announce_requests(lines, chosen, canvas_length, batch_size, price, ask=not yes and sys.stdin.isatty())
    load = partial(
        load_encoder,
        encoder,
        prompt=prompt,
        revision=revision,
        device=device,
        task=task,
        truncate_dim=truncate_dim,
        precision=precision.value,
    )
    model = load()
    chosen, share = chosen or known_tokenizer(model), None
    if vocabulary:
        whole = chosen
        counts = count_pieces(read_texts(next(iter(sources.values()))), whole)
        chosen = reduce_vocabulary(whole, counts, vocabulary)
        share = respelled_share(whole, chosen, counts)
    result = {}
    with shards_on(ray, workers, device) as map_shards:
        for folder, source in sources.items():
            with make_progress() as progress:
                bar = progress.add_task(f"Embedding {source.name}", total=totals[folder])

                def advance(shard: Shard) -> None:
                    progress.advance(bar, shard.lines)  # noqa: B023 - called within this iteration only

                manifest = embed_texts(
                    partial(read_texts, source),
                    folder,
                    model,
                    tokenizer=chosen,
                    respelled_share=share,
                    canvas_length=canvas_length,
                    shard_lines=shard_lines,
                    batch_size=batch_size,
                    on_shard=advance,
                    map_shards=map_shards,
                    load_encoder=None if ray is None else load,
                )
            result[str(folder)] = {
                "rows": manifest.rows,
                "left out": manifest.lines - manifest.rows,
                "vocabulary": manifest.vocabulary_size,
                "lost tokens": round(manifest.lost_share, 6),
            } | ({} if share is None else {"respelled tokens": round(share, 6)})
    described = model.description
    show_result(result, title=f"Embedded with {described.name} in {described.precision}", as_json=as_json)


def _count_lines(source: Path) -> int:
    from unembed.corpus import read_texts

    return sum(1 for _ in read_texts(source)) if source.is_file() else 0
