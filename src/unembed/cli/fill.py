"""``unembed fill``: known text with slots in, ranked answers out. Knows the options, and how answers are shown."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.sources import InverterName, SourceColumn, SourceIdColumn, SourceTextColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from unembed.connectors import VectorSource
    from unembed.connectors.source import Id
    from unembed.encoders import Encoder
    from unembed.filling.filler import Filling
    from unembed.inverter import Inverter

_BATCH = 256


def fill(
    template: Annotated[
        str,
        typer.Argument(
            help='The text with slots: "Dear {name}, your PIN is {pin:digits:4}". Write {{ and }} for braces.',
            show_default=False,
        ),
    ],
    source: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VECTORS",
            help="As in unembed invert: a file of vectors, a vector database, or - for stdin; or a text, to try it.",
            show_default=False,
        ),
    ] = None,
    slot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SLOT=KIND",
            help="What stands in a slot: first-names, surnames, cities, countries, places, occupations, conditions, "
            "medicines, months, weekdays, dates, years, times, amounts, numbers:1-500, digits:4; or free:2, for two "
            "tokens that the inverter writes itself.",
            show_default="by the slot's name, else free",
        ),
    ] = None,
    wordlist: Annotated[
        list[str] | None,
        typer.Option(metavar="SLOT=FILE", help="Candidates of your own for a slot, one per line."),
    ] = None,
    blind: Annotated[
        bool, typer.Option("--blind", help="Do without the encoder: by the inverter alone, which is less certain.")
    ] = False,
    row: Annotated[int | None, typer.Option(min=0, help="Fill for this vector.", show_default="the first")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Fill for this many vectors, the first ones.")] = None,
    top: Annotated[int, typer.Option(min=1, max=16, help="Answers per vector.")] = 5,
    calls: Annotated[int, typer.Option(min=1, help="Largest number of texts that are embedded per vector.")] = 6000,
    seed: Annotated[int, typer.Option(help="Of the candidates that are tried at random.")] = 0,
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    model: InverterName = "default",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The inverter's encoder: a folder, a hub id or an address. Texts are sent to an address only if you "
            "give it here.",
            show_default="the encoder that the inverter names",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per vector, one a line.")] = False,
) -> None:
    """Find out what stands in the gaps of a text that is known otherwise.

    Every candidate gets a probability, calibrated on known texts, and so does the case that none is right.

    Example: unembed fill "Dear {name}, thank you for your order." vectors.npy
    """
    from unembed.cli.inputs import open_input
    from unembed.cli.interrupt import early_end
    from unembed.cli.loading import loading
    from unembed.cli.output import write_json_lines, write_lines
    from unembed.errors import ConfigError
    from unembed.filling import Template, choose_candidates, read_choices
    from unembed.hub import fetch_checkpoint

    if row is not None and limit is not None:
        raise ConfigError("--row and --limit both say which vectors are meant.", "Give one of the two.")
    parsed = Template.parse(template)
    given = read_choices(slot or [], wordlist or [])
    choose_candidates(parsed, given)
    first, last = (row, row + 1) if row is not None else (0, limit or 1)
    vectors = open_input(source or [], (column, id_column, text_column), last, _BATCH)
    with loading(f"the inverter {model}"):
        folder = fetch_checkpoint(model)
        from unembed.inverter import Inverter, check_vectors

        inverter = Inverter.from_pretrained(folder, device=device)
    loaded = None
    if not blind or isinstance(vectors, list):
        with loading(f"the encoder {encoder or inverter.info.encoder.name}"):
            loaded = inverter.load_encoder(encoder, device=device)
    rows = _embed(vectors, loaded) if isinstance(vectors, list) else _read(vectors, inverter)
    done = 0
    with early_end() as interrupted:
        filler = inverter.prepare_filling(
            template,
            given,
            encoder=None if blind else loaded,
            calls=calls,
            top=top,
            seed=seed,
            interrupted=interrupted,
        )
        for number, identifier, vector in rows:
            if number < first:
                continue
            filling = filler.fill(check_vectors(vector, inverter.info, first_row=number)[0])
            done += 1
            if as_json:
                write_json_lines([_record(number, identifier, filling)])
            else:
                write_lines(_lines(number if identifier is None else identifier, filling))
            if interrupted():
                typer.echo("Stopped early: these are the best answers so far.", err=True)
                break
    if not done:
        raise ConfigError(f"There is no row {first}.", "Rows are counted from 0; give a smaller `row`.")


def _embed(texts: list[str], encoder: "Encoder | None") -> "Iterator[tuple[int, Id | None, np.ndarray]]":
    """Yield the vector of each text with its number."""
    assert encoder is not None
    for number, vector in enumerate(encoder.encode(texts)):
        yield number, None, vector


def _read(source: "VectorSource", inverter: "Inverter") -> "Iterator[tuple[int, Id | None, np.ndarray]]":
    """Yield each vector with its number and its name."""
    from unembed.cli.inputs import read_batches

    number = 0
    for batch in read_batches(source, inverter):
        for place, vector in enumerate(batch.vectors):
            yield number, None if batch.ids is None else batch.ids[place], vector
            number += 1


def _record(number: int, identifier: "Id | None", filling: "Filling") -> dict[str, Any]:
    """Return the answers for a vector as JSON has them."""
    from dataclasses import asdict

    named = {"row": number} if identifier is None else {"row": number, "id": identifier}
    return named | asdict(filling)


def _lines(name: "Id", filling: "Filling") -> list[str]:
    """Return the answers for a vector as they are printed."""
    from unembed.text import printable

    best = filling.answers[0]
    lines = [f"vector     {printable(str(name))}"]
    lines.append(
        f"{filling.verdict:<10} {printable(best.text)}" if filling.verdict != "not in the list" else filling.verdict
    )
    for answer in filling.answers:
        values = ", ".join(f"{slot}: {value}" for slot, value in answer.values.items())
        score = f"cosine {answer.cosine:.3f}" if answer.cosine is not None else f"log p {answer.likelihood:.1f}"
        lines.append(f"  {answer.probability:>7.1%}  {score}  {printable(values)}")
    tried = f"{filling.encoder_calls:,} texts embedded" if filling.encoder_calls else "without the encoder"
    lines.append(f"  {filling.absent:>7.1%}  none of the {filling.candidates:,} ways to fill the slots  ({tried})")
    return lines
