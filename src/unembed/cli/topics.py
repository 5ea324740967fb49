"""``unembed words --clusters``: the topics of a store. Knows how they are shown."""

from collections import Counter
from typing import TYPE_CHECKING

import typer

from unembed.cli.output import write_json_lines, write_lines
from unembed.text import printable

if TYPE_CHECKING:
    from unembed.auditing import WordReader
    from unembed.connectors import VectorSource


def show_topics(source: "VectorSource", reader: "WordReader", clusters: int, *, as_json: bool) -> None:
    """Group the vectors of a source, and print each group's size, words, and the vectors nearest to its centre."""
    import numpy as np

    from unembed.auditing.topics import find_topics
    from unembed.errors import VectorError

    skipped: Counter[str] = Counter()
    batches = list(source.usable(skipped))
    ids = [identifier for batch in batches for identifier in batch.ids]
    if not ids:
        raise VectorError(f"{source.name} holds no vectors that can be read.", "Check the address.")
    topics = find_topics(reader, np.concatenate([batch.vectors for batch in batches]), clusters)
    if as_json:
        write_json_lines(
            {"size": topic.size, "of": len(ids), "words": topic.words, "nearest": [ids[row] for row in topic.nearest]}
            for topic in topics
        )
    else:
        for topic in topics:
            nearest = ", ".join(printable(str(ids[row])) for row in topic.nearest)
            write_lines(
                [f"{topic.size:>9,}  {topic.size / len(ids):>6.1%}  {' '.join(topic.words)}\tnearest: {nearest}"]
            )
    for what, number in skipped.items():
        typer.echo(f"Skipped: {number:,} vectors that are {what}.", err=True)
