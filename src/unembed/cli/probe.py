"""``unembed words --probe``: the vectors nearest to a subject, ranked, and what the first ones give away."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from unembed.auditing.probes import Probe
    from unembed.connectors import VectorBatch, VectorSource
    from unembed.inverter import Inverter


def show_ranked(
    source: "VectorSource",
    inverter: "Inverter",
    name: str,
    probe: "Probe",
    *,
    most: int,
    invert: int,
    name_words: Callable[[Any], list[list[str]]],
    as_json: bool,
) -> None:
    """Rank a source's vectors, print the nearest, and invert the first of these.

    Args:
        source: the vectors.
        inverter: that inverts the first ones.
        name: of the probe.
        probe: what they are compared with.
        most: how many are listed.
        invert: how many of them are inverted, from the vector alone.
        name_words: names the words of vectors.
        as_json: print a JSON object per line.
    """
    from unembed.auditing.probes import rank
    from unembed.cli.interrupt import early_end
    from unembed.cli.output import write_json_lines, write_lines
    from unembed.errors import VectorError
    from unembed.progress import make_progress
    from unembed.text import printable

    skipped: Counter[str] = Counter()
    with early_end() as interrupted, make_progress() as progress:
        task = progress.add_task("Reading", total=source.rows)

        def read() -> "Iterator[VectorBatch]":
            for batch in source.usable(skipped):
                progress.advance(task, len(batch))
                yield batch
                if interrupted():
                    typer.echo("Stopped early.", err=True)
                    return

        ranked = rank(read(), probe, most)
    if not ranked.seen:
        raise VectorError(f"{source.name} holds no vectors that can be read.", "Check the address.")
    words = name_words(ranked.vectors)
    recovered = [each.text for each in inverter.invert(ranked.vectors[:invert])] if invert else []
    records: list[dict[str, Any]] = []
    for place, (row, identifier, score, text) in enumerate(
        zip(ranked.rows, ranked.ids, ranked.scores.tolist(), ranked.texts, strict=True)
    ):
        record = {"rank": place + 1, "row": row, "id": identifier, "probe": name, "score": round(score, 4)}
        record |= {"words": words[place]}
        record |= {"recovered": recovered[place]} if place < len(recovered) else {}
        records.append(record if text is None else record | {"stored_text": text})
    if as_json:
        write_json_lines(records)
    else:
        write_lines(
            "\t".join(
                printable(str(cell))
                for cell in (
                    f"{record['score']:.3f}",
                    record["id"],
                    " ".join(record["words"]),
                    *(record[key] for key in ("recovered", "stored_text") if key in record),
                )
            )
            for record in records
        )
    typer.echo(
        f"{ranked.above:,} of {ranked.seen:,} vectors lie nearer to '{name}' than 95 of 100 everyday sentences. The "
        "list ranks and proves nothing: read what the first ones give away.",
        err=True,
    )
    for what, number in skipped.items():
        if number:
            typer.echo(f"Skipped: {number:,} vectors that are {what}.", err=True)
