"""Peak memory of ``embed_texts`` over a short and a long source: it must not grow with the number of lines.

Each source is embedded in a process of its own, whose largest resident set (``ru_maxrss``) is read at its end. Lines
are generated on the fly, 3 or 4 common words on a canvas of 8, so that 200,000 of them take minutes and not an hour;
the encoder is the real one, and shards have their default size.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import Figure, Result, finish, make_parser
from texts import make_texts

TARGET = 1.1
_CANVAS_LENGTH = 8
_SHORTEST, _LONGEST = 3, 4
# ru_maxrss counts kilobytes, on macOS bytes.
_UNIT = 1 if sys.platform == "darwin" else 1024


def lines(count: int) -> Iterator[str]:
    """Generate the source; nothing of it is kept."""
    draw = random.Random(1)
    return make_texts(draw.randint(_SHORTEST, _LONGEST) for _ in range(count))


def embed(count: int, encoder: str, shard_lines: int) -> None:
    """Embed a source of ``count`` lines, and print this process's peak in bytes, the time and the rows."""
    # Imported here: a process starts with the peak of the one that started it, so that one must stay small.
    from unembed.encoders import load_encoder
    from unembed.store import embed_texts

    loaded = load_encoder(encoder, device="cpu")
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        manifest = embed_texts(
            lambda: lines(count), Path(folder), loaded, canvas_length=_CANVAS_LENGTH, shard_lines=shard_lines
        )
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
    print(json.dumps({"peak": peak, "seconds": seconds, "rows": manifest.rows, "shards": len(manifest.shards)}))


def measure(count: int, options: argparse.Namespace) -> dict[str, float]:
    """Run :func:`embed` in a process of its own."""
    own = ["--child", str(count), "--encoder", options.encoder, "--shard-lines", str(options.shard_lines)]
    done = subprocess.run([sys.executable, __file__, *own], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"  {count:,} lines: {figures['peak'] / 1e6:,.0f} MB, {figures['seconds']:.0f} s", file=sys.stderr, flush=True
    )
    return figures


def main() -> None:
    """Measure the sources one after the other, or be the process that embeds one."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("--lines", type=int, nargs=2, default=[50_000, 200_000], help="sizes of the two sources")
    parser.add_argument("--shard-lines", type=int, default=8192, help="lines of a shard (default: %(default)s)")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="a packaged encoder, a folder or a hub id")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        embed(options.child, options.encoder, options.shard_lines)
        return
    if options.quick:
        options.lines, options.shard_lines, options.repetitions = [128, 256], 64, 1
    runs = {count: [measure(count, options) for _ in range(options.repetitions)] for count in options.lines}
    peaks = {count: max(run["peak"] for run in group) for count, group in runs.items()}
    short, long = options.lines
    finish(
        Result(
            title="Memory",
            compared="Largest resident set of a process that embeds a source with `embed_texts`, over the number of"
            " lines.",
            columns=["lines", "shards", "peak, MB", "against the short source", "lines/s"],
            rows=[
                [
                    f"{count:,}",
                    str(group[0]["shards"]),
                    f"{peaks[count] / 1e6:,.0f}",
                    f"{peaks[count] / peaks[short]:.3f}",
                    f"{count / group[0]['seconds']:,.0f}",
                ]
                for count, group in runs.items()
            ],
            figures=[
                Figure(
                    "Peak of the long source against that of the short one",
                    peaks[long] / peaks[short],
                    TARGET,
                    at_least=False,
                )
            ],
            repetitions=options.repetitions,
            sizes={
                "lines": f"generated, {_SHORTEST} to {_LONGEST} common words (one token each)",
                "canvas": _CANVAS_LENGTH,
                "lines a shard": options.shard_lines,
                "encoder": options.encoder,
            },
            times={f"peak in bytes, {count} lines": [run["peak"] for run in group] for count, group in runs.items()},
        ),
        options,
    )


if __name__ == "__main__":
    main()
