"""What ``unembed audit --all`` costs beside the decoding itself: reading, checking, comparing, looking for leaks.

All vectors of a file with their texts are audited, blind. Computing time is counted, so other work on the machine
matters little. Decoding is what ``unembed invert`` would do; embedding the recovered texts again is counted apart.

    python benchmarks/audit_overhead.py --texts FILE --lines 1-300
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measure import Figure, Result, finish, make_parser
from unembed.measures import percent

TARGET = 0.1


class Clock:
    """Adds up the computing time that is spent inside some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def call(*arguments: Any, **options: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.process_time() - begun

        return call

    def timed_steps(self, function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Return a generator function, timed while it works on each of its values."""

        def steps(*arguments: Any, **options: Any) -> Iterator[Any]:
            values = function(*arguments, **options)
            following = self.timed(lambda: next(values, None))
            while (value := following()) is not None:
                yield value

        return steps


def measure(texts: Sequence[str], repetitions: int) -> list[tuple[float, float, float]]:
    """Audit several times; return the seconds of the audit, of decoding in it, and of embedding texts again."""
    import pyarrow
    from pyarrow import parquet

    import unembed
    from unembed.encoders import load_encoder
    from unembed.inverter import Inverter

    encoder = load_encoder("all-MiniLM-L6-v2", device="cpu")
    inverter = Inverter.default(device="cpu")
    vectors = encoder.encode(texts)
    decoding, embedding = Clock(), Clock()
    inverter.decode = decoding.timed_steps(inverter.decode)  # type: ignore[method-assign]
    inverter.read = decoding.timed(inverter.read)  # type: ignore[method-assign]
    kind: Any = type(encoder)  # of a quicker copy, too
    kind.encode = embedding.timed(kind.encode)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.parquet"
        parquet.write_table(pyarrow.table({"text": texts, "embedding": list(vectors)}), path)
        for _ in range(repetitions):
            decoding.seconds = embedding.seconds = 0.0
            begun = time.process_time()
            unembed.audit(path, size=None, guided=0, model=inverter, encoder=encoder)
            found.append((time.process_time() - begun, decoding.seconds, embedding.seconds))
            print(f"  {len(found)}/{repetitions}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, and hand on the result."""
    from unembed.lists import load_lines

    parser = make_parser(__doc__, 3)
    parser.add_argument("--texts", type=Path, help="one text on each line (default: the calibration's sentences)")
    parser.add_argument("--lines", default="1-300", help="which of them (default: %(default)s)")
    options = parser.parse_args()
    first, last = (int(line) for line in ("1-8" if options.quick else options.lines).split("-"))
    texts = options.texts.read_text(encoding="utf-8").splitlines() if options.texts else load_lines("calibration")
    texts = texts[first - 1 : last]
    found = measure(texts, 1 if options.quick else options.repetitions)
    rows = [
        [
            "later" if number else "first: loads spaCy",
            f"{total:.1f}",
            f"{decoding:.1f}",
            percent(embedding / decoding),
            percent((total - decoding - embedding) / decoding),
        ]
        for number, (total, decoding, embedding) in enumerate(found)
    ]
    total, decoding, _ = found[-1]
    result = Result(
        title="An audit beside its decoding",
        compared="An audit of all vectors, blind. Seconds are computing time; shares are of the decoding's.",
        columns=["audit", "seconds", "decoding", "embedding again", "all else"],
        rows=rows,
        figures=[Figure("Overhead of the last one, embedding included", total / decoding - 1, TARGET, at_least=False)],
        repetitions=len(found),
        sizes={"vectors": len(texts)},
    )
    finish(result, options)


if __name__ == "__main__":
    main()
