"""``unembed export``: an inverter becomes graphs for ONNX Runtime, stored with its weights."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unembed.cli.sources import INVERTER


class Precision(StrEnum):
    """The precision of a graph."""

    int8 = "int8"
    float32 = "float32"


def export(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the inverter and its graphs; may be the inverter's own.")
    ],
    model: Annotated[str, typer.Argument(help=f"{INVERTER.capitalize()}.")] = "default",
    precision: Annotated[
        Precision, typer.Option(help="int8 is small and fast; float32 gives the same as torch.")
    ] = Precision.int8,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Export an inverter for ONNX Runtime, which runs it faster on a CPU.

    Example: unembed export work/run/best --output work/onnx; unembed invert ... --model work/onnx --engine onnx
    """
    from unembed.cli.output import show_json, show_result
    from unembed.errors import require_extra
    from unembed.progress import make_progress

    require_extra("onnx", "onnx", "onnxruntime", "onnxscript")
    from unembed.checkpoint import fetch_checkpoint
    from unembed.engine.onnx import export_onnx

    with make_progress() as progress:
        progress.add_task("Exporting", total=None)
        info = export_onnx(fetch_checkpoint(model), output, precision.value)
    sizes = {name: (output / name).stat().st_size for name in info.graphs}
    if as_json:
        show_json({"output": str(output), "precision": info.precision, "bytes": sizes})
        return
    rows = {name: {"MB": round(size / 1e6, 1)} for name, size in sizes.items()}
    show_result(rows, title=f"Graphs in {output} ({info.precision})", as_json=False)
    typer.echo(f"Use them: unembed invert ... --model {output} --engine onnx", err=True)
