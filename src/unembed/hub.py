"""From a name to a checkpoint's folder: in a package, on disk, or on the hub. Knows folders, not models."""

from pathlib import Path

from unembed.errors import CheckpointError, first_line
from unembed.plugins import INVERTERS, plugin_folder, plugin_names

DEFAULT = "default"
"""The name of the inverter that comes with the package, for all-MiniLM-L6-v2."""
AVAILABLE = {"multilingual": "pip install ./packages/multilingual"}
"""Inverters that are packages of their own, and what to type in a checkout of unembed to install each."""
_PACKAGED = Path(__file__).parent / "weights" / "all-MiniLM-L6-v2"
# Nothing else is ever fetched: no code, no pickle.
_FILES = [
    "config.json",
    "model.safetensors",
    "adaptation.safetensors",
    "tokenizer.json",
    "words.txt",
    "ngrams.npz",
    "README.md",
]


def installed_inverters() -> list[str]:
    """Return the names of the inverters that are installed, that of unembed itself first."""
    return [DEFAULT, *(name for name in plugin_names(INVERTERS) if name != DEFAULT)]


def fetch_checkpoint(
    name: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    cache_dir: Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Return the folder of a checkpoint: an installed one, the path itself, or the local copy of a hub repository.

    An installed inverter comes before a folder of the same name, whatever the current folder holds: ``./name`` is the
    folder.
    """
    if name == DEFAULT:
        if not _PACKAGED.is_dir():
            raise CheckpointError(
                "This copy of unembed came without its inverter.", "Install it again, or name another `model`."
            )
        return _PACKAGED
    if (installed := plugin_folder(INVERTERS, name)) is not None:
        return installed
    if Path(name).exists():
        return Path(name)
    if name in AVAILABLE:
        raise CheckpointError(
            f"The inverter '{name}' is not installed: it is a package of its own.",
            f"In a checkout of unembed, run: {AVAILABLE[name]}",
        )
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise CheckpointError(
            f"There is no {'folder' if '/' in name else 'inverter and no folder'} {name}.",
            "Give a folder, a hub id (organisation/model), or a name that unembed inverters lists.",
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                name,
                revision=revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
                allow_patterns=_FILES,
            )
        )
    # The hub client raises its own errors, those of its HTTP library, and OSErrors.
    except Exception as error:
        raise CheckpointError(
            f"Cannot fetch '{name}': there is no such folder, and the hub says: {first_line(error)}",
            "Check the name, the token and the connection.",
        ) from error


def push_checkpoint(folder: Path, name: str, *, private: bool, token: str | None, message: str) -> str:
    """Upload a checkpoint folder to a hub repository and return its address."""
    from huggingface_hub import HfApi

    api = HfApi(token=token)
    try:
        api.create_repo(name, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=name, folder_path=folder, allow_patterns=_FILES, commit_message=message)
    except Exception as error:
        raise CheckpointError(
            f"Cannot push to '{name}': {first_line(error)}", "Check the name, the token and the connection."
        ) from error
    return str(commit.commit_url)
