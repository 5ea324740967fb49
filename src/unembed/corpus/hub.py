"""Datasets of the Hugging Face hub as a stream of texts. Knows nothing of local files. Never runs a dataset's code."""

from collections.abc import Iterator
from typing import Any

from unembed.corpus.fields import as_text, choose_field
from unembed.errors import CorpusError, require_extra

PREFIX = "hf:"

_C4 = "allenai/c4"
# The old pages of C4 and mC4 hold loading scripts only. The data of both is in one dataset, with a config per language.
_MC4 = ("mc4", "allenai/mc4")
_MOVED = dict.fromkeys(("c4", *_MC4), _C4)


def read_hub(address: str, field: str | None) -> Iterator[str]:
    """Open a dataset's train split for streaming and return its texts.

    Args:
        address: ``name[:config]``. The config of C4 is the language, ``en`` by default: ``allenai/c4:fr``.
        field: the field that holds the text; by default ``text``, or the only one.

    Raises:
        CorpusError: there is no such dataset or config, or the hub cannot be reached.
    """
    require_extra("train", "datasets")
    import datasets
    from datasets.exceptions import DatasetNotFoundError

    name, config = _name_and_config(address)
    try:
        rows = datasets.load_dataset(name, config, split="train", streaming=True)
    except DatasetNotFoundError as error:
        raise CorpusError(
            f"There is no public dataset '{name}' on the Hugging Face hub.",
            "Look for it on https://huggingface.co/datasets; if it is gated or private, first run: hf auth login",
        ) from error
    except (ValueError, RuntimeError) as error:
        raise CorpusError(
            f"Cannot open the dataset '{name}'{f' with the config {config!r}' if config else ''}: {_reason(error)}",
            f"A config goes after a colon ({PREFIX}{_C4}:fr). A dataset that needs code of its own cannot be read.",
        ) from error
    # The network libraries below (huggingface_hub, fsspec, httpx) have errors of their own, without a common base.
    except Exception as error:
        raise _unreachable(name, error) from error
    return _texts(rows, name, field)


def _texts(rows: Any, name: str, field: str | None) -> Iterator[str]:
    column: str | None = None
    try:
        for row in rows:
            column = column or choose_field(row, field, f"{PREFIX}{name}")
            yield as_text(row[column], column, f"{PREFIX}{name}")
    except CorpusError:
        raise
    except Exception as error:
        raise _unreachable(name, error) from error


def _name_and_config(address: str) -> tuple[str, str | None]:
    name, _, config = address.partition(":")
    if not name or (name in _MC4 and not config):
        raise CorpusError(
            f"'{PREFIX}{address}' does not say which {'language' if name else 'dataset'}.",
            f"Write {PREFIX}name[:config], such as {PREFIX}{_C4}:fr",
        )
    name = _MOVED.get(name, name)
    return name, config or ("en" if name == _C4 else None)


def _unreachable(name: str, error: Exception) -> CorpusError:
    return CorpusError(
        f"The dataset '{name}' cannot be read from the Hugging Face hub: {_reason(error)}",
        "Check the network and try again, or give a local file: .txt, .jsonl, .csv, .tsv or .parquet.",
    )


def _reason(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
