"""Results in a file of JSON lines, which a stopped run can continue. Does not know what they mean."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unembed.errors import ConfigError, from_os_error


class ResultFile:
    """A file to which results are added as they are known; each has its ``row``, and its ``id`` if it has one."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        try:
            if path.is_file() and path.stat().st_size and not resume:
                raise ConfigError(
                    f"{path} has results already.",
                    "Continue them with `resume=True`, or write to another file: `output=FILE`.",
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            self.rows, self.last_id = _cut_to_whole_lines(path) if path.is_file() else (0, None)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise from_os_error(error, f"opening {path}") from error

    def write(self, records: Iterable[dict[str, Any]]) -> None:
        """Add results, so that they are kept whatever happens next."""
        self.write_lines("".join(f"{json.dumps(record, ensure_ascii=False, default=str)}\n" for record in records))

    def write_lines(self, lines: str) -> None:
        """Add results that are lines of JSON already."""
        self._file.write(lines)
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def open_results(output: Path | None, resume: bool) -> ResultFile | None:
    """Open the file for the results, if the user wants one."""
    if output is not None:
        return ResultFile(output, resume=resume)
    if resume:
        raise ConfigError("--resume continues a file of results.", "Name it: --output FILE.")
    return None


def _cut_to_whole_lines(path: Path) -> tuple[int, str | int | None]:
    """Remove what a killed run has left of its last line; return how many rows are done, and the id of the last one."""
    rows, last_id, end = 0, None, 0
    with path.open("r+b") as file:
        for line in file:
            try:
                record = json.loads(line)
                rows, last_id = record["row"] + 1, record.get("id")
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                if line.endswith(b"\n"):
                    raise ConfigError(
                        f"{path} holds other lines than results.", "Write to another file: `output=FILE`."
                    ) from error
                break
            if not line.endswith(b"\n"):
                file.seek(end + len(line))
                file.write(b"\n")
                end += 1
            end += len(line)
        file.truncate(end)
    return rows, last_id
