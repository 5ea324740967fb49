"""Vectors of a Hugging Face dataset on disk, as ``save_to_disk`` writes it: Arrow files and their list.

Read without the datasets library, which may write caches beside them.
"""

import json
from pathlib import Path
from typing import Any

from unembed.connectors.arrow import ipc_source
from unembed.connectors.source import DAMAGED, Columns, VectorSource, choose_part
from unembed.errors import VectorError, first_line, require_extra

STATE, SPLITS = "state.json", "dataset_dict.json"


def read_dataset(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a dataset, or a split of a dictionary of datasets."""
    require_extra("train", "pyarrow")
    folder, where = Path(location), f"dataset:{location}"
    if (folder / SPLITS).is_file():
        names = _load(folder / SPLITS).get("splits")
        split = choose_part(part, names if isinstance(names, list) else [], "split", where)
        folder, where = folder / split, f"{where}#{split}"
    elif part is not None:
        raise VectorError(f"{location} is one dataset: it has no splits.", "Leave out what follows #.")
    if not (folder / STATE).is_file():
        raise VectorError(f"There is no dataset in {folder}: it has no {STATE}.", "Check the path.")
    state = _load(folder / STATE)
    if state.get("_indices_data_files"):
        raise VectorError(
            f"{where} is a selection of the rows of another dataset.",
            "Write it again with a newer version of the datasets library, which writes the rows themselves.",
        )
    listed = state.get("_data_files")
    listed = listed if isinstance(listed, list) else []
    files = [str(each.get("filename", "")) for each in listed if isinstance(each, dict)]
    # A name that leads elsewhere is not what save_to_disk writes.
    paths = [folder / name for name in files if name and Path(name).name == name]
    if not paths or len(paths) != len(listed) or not all(path.is_file() for path in paths):
        raise VectorError(f"{where} cannot be read: {STATE} names files that are not there.", DAMAGED)
    return ipc_source(paths, columns, batch_rows, where, [folder], "Hugging Face dataset")


def _load(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VectorError(f"{path} cannot be read: {first_line(error)}.", DAMAGED) from error
    if not isinstance(value, dict):
        raise VectorError(f"{path} cannot be read: it is no JSON object.", DAMAGED)
    return value
