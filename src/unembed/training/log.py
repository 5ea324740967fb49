"""Metrics of a run, to JSONL and TensorBoard. Knows names and numbers only."""

import json
from pathlib import Path
from typing import Any

from unembed.files import write_text

FILE = "metrics.jsonl"


class MetricsLog:
    """Appends one JSON object per event; after a resume, events past the resumed step are gone."""

    def __init__(self, run: Path, resumed_step: int) -> None:
        run.mkdir(parents=True, exist_ok=True)
        self._path = run / FILE
        kept = [event for event in read_metrics(run) if event["step"] <= resumed_step] if resumed_step else []
        write_text(self._path, "".join(json.dumps(event) + "\n" for event in kept))
        self._board = _open_tensorboard(run, resumed_step)

    def write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        """Record ``values`` under ``kind`` (``train``, ``validation``, ``readout`` or ``writer``)."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Flush what TensorBoard still holds."""
        if self._board is not None:
            self._board.close()


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the events of a run; a line cut short by a kill is left out."""
    path = run / FILE
    if not path.is_file():
        return []
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def _open_tensorboard(run: Path, resumed_step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(run / "tensorboard"), purge_step=resumed_step + 1 if resumed_step else None)
