"""How ``unembed invert`` shows results: as lines, as JSON, in a file or animated. Does not know how they are made."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from unembed.canvas import RoundTrip
from unembed.cli.animation import MASK, Animation, Row
from unembed.cli.job import InputBatch, InversionJob, InvertedText
from unembed.cli.output import show_json_line
from unembed.cli.results import ResultFile
from unembed.connectors.source import Id
from unembed.measures import BY_NAME
from unembed.progress import make_progress
from unembed.text import printable


def list_results(job: InversionJob, batches: Iterable[InputBatch], total: int | None, *, as_json: bool) -> int:
    """Print results; return how many there were."""
    finished = 0
    with _progress(total, hidden=sys.stdout.isatty()) as advance:
        for result in job.run(batches):
            finished += 1
            if as_json:
                show_json_line(_record(result))
            else:
                _print(result)
            advance()
    return finished


def write_results(job: InversionJob, batches: Iterable[InputBatch], total: int | None, results: ResultFile) -> int:
    """Write results to a file; return how many there were."""
    finished = 0
    with results, _progress(total) as advance:
        for result in job.run(batches):
            finished += 1
            results.write([_record(result)])
            advance()
    return finished


def animate(job: InversionJob, batches: Iterable[InputBatch], console: Console) -> int:
    """Show results as they come about; return how many there were."""
    finished = 0
    for single in (single for batch in batches for single in batch.split()):
        if job.interrupted():
            return finished
        heading = _heading(
            single.trips[0] if single.trips else None,
            single.ids[0] if single.ids else None,
            single.stored[0] if single.stored else None,
        )
        with Animation(console, job.painter, heading, job.options.call_limit) as animation:
            for result in job.run([single], animation.show):
                text = job.painter.canvas(result.inversion.ids, result.inversion.confidences)
                animation.end([*heading, *_outcome(result, text)])
                finished += 1
    return finished


def _record(result: InvertedText) -> dict[str, Any]:
    """Return a result as JSON has it."""
    record: dict[str, Any] = {"row": result.row}
    if result.id is not None:
        record["id"] = result.id
    if result.stored is not None:
        record["stored_text"] = result.stored
    if result.trip:
        record |= {"original": result.trip.original, "embedded": result.trip.embedded}
    record |= asdict(result.inversion)
    if result.trip:
        record["comparison"] = result.measures
    if result.trace:
        record["trace"] = result.trace
    return record


def _print(result: InvertedText) -> None:
    rows = _heading(result.trip, result.id, result.stored)
    several = any(step["candidate"] for step in result.trace)
    for step in result.trace:
        state = f"{step['mask_rate']:>4.0%} masked"
        state += f"  hypothesis {step['candidate'] + 1}" if several else ""
        state += f"  cosine {step['score']:.3f}" if step["texts_embedded"] else ""
        canvas = " ".join(MASK if token is None else token for token in step["tokens"])
        rows.append((f"pass {step['pass']}", Text(f"{state}  {canvas}")))
    for label, text in [*rows, *_outcome(result, Text(result.inversion.text))]:
        typer.echo(f"{label:<9}  {text.plain}")


def _heading(trip: RoundTrip | None, identifier: Id | None, stored: str | None) -> list[Row]:
    """Return what is known before a vector is inverted: its text in a round trip, else what the source says."""
    if trip is None:
        rows = [("vector", Text(printable(str(identifier))))]
        return rows if stored is None else [*rows, ("stored", Text(printable(stored)))]
    rows = [("original", Text(trip.original))]
    if trip.cut:
        note = f"  (the first {len(trip.ids)} of {trip.tokens_in_all} tokens: this inverter reads no more)"
        rows.append(("cut to", Text(trip.embedded + note)))
    return rows


def _outcome(result: InvertedText, text: Text) -> list[Row]:
    inversion, measures = result.inversion, result.measures
    if inversion.encoder_calls:
        note = f"cosine {inversion.score:.3f}, {inversion.encoder_calls:,} texts embedded"
    elif inversion.surrogate_calls:
        note = f"cosine {inversion.score:.3f} by the surrogate, {inversion.surrogate_calls:,} texts tried"
    else:
        note = f"{inversion.confidence:.0%} sure, {inversion.passes} passes"
    rows = [("recovered", Text.assemble(text, f"  ({note})"))]
    if measures:
        rows.append(("compared", Text(", ".join(BY_NAME[name].say(value) for name, value in measures.items()))))
    return rows


@contextmanager
def _progress(total: int | None, *, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """Count results on stderr, unless the results themselves appear in the terminal."""
    with make_progress(disable=hidden or not sys.stderr.isatty()) as progress:
        task = progress.add_task("Inverting", total=total)
        yield lambda: progress.advance(task)
