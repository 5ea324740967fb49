"""From a name to a checkpoint's folder: in this package, on disk, or on the hub. Knows folders, not models."""

from pathlib import Path

from unembed.errors import CheckpointError, first_line

DEFAULT = "default"
"""The name of the inverter that comes with the package, for all-MiniLM-L6-v2."""
_PACKAGED = Path(__file__).parent / "weights" / "all-MiniLM-L6-v2"
# Nothing else is ever fetched: no code, no pickle.
_FILES = ["config.json", "model.safetensors", "adaptation.safetensors", "tokenizer.json", "README.md"]


def fetch_checkpoint(
    name: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    cache_dir: Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Return the folder of a checkpoint: the packaged one, the path itself, or the local copy of a hub repository."""
    if name == DEFAULT:
        if not _PACKAGED.is_dir():
            raise CheckpointError(
                "This copy of unembed came without its inverter.", "Install it again, or name another `model`."
            )
        return _PACKAGED
    if Path(name).exists():
        return Path(name)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise CheckpointError(f"There is no folder {name}.", "Give a folder or a hub id (organisation/model).")
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
