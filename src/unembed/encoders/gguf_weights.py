"""nomic-embed-text from a GGUF file to a folder that sentence-transformers reads. Knows nothing of packages.

llama.cpp's names and transformers' differ. Of the vocabulary, the file has each piece without ``##``: the first piece
of a word begins with ``▁`` instead.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from unembed.encoders.folders import BERT_TOKENS, completed, write_model
from unembed.errors import EncoderError, first_line

_ARCHITECTURE = "nomic-bert"
_MEAN_POOLING = 1
_WORD_START = "▁"
_TABLES = {
    "token_embd": "embeddings.word_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
}
_LAYER = {
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_output_norm": "post_attention_layernorm",
    "layer_output_norm": "post_mlp_layernorm",
}


def unpack_nomic(file: Path, folder: Path, *, document_prompt: str) -> None:
    """Write the model of a GGUF file to a folder, in sentence-transformers' format and in float32."""
    from gguf import GGUFReader, dequantize

    try:
        reader = GGUFReader(file)
        facts = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        config = _configuration(facts)
        weights = {
            name: weight
            for tensor in reader.tensors
            for name, weight in _named(tensor.name, dequantize(tensor.data, tensor.tensor_type))
        }
        _tokenizer(facts).save(str(folder / "tokenizer.json"))
        write_model(
            folder,
            completed(weights, config),
            config,
            special_tokens=BERT_TOKENS,
            max_length=config["max_position_embeddings"],
            pooling="mean",
            document_prompt=document_prompt,
        )
    except (ValueError, KeyError, IndexError, TypeError, NotImplementedError) as error:
        raise EncoderError(f"{file.name} cannot be read: {first_line(error)}", "Reinstall its packages.") from error


def _configuration(facts: dict[str, Any]) -> dict[str, Any]:
    """Return transformers' configuration of the model; refuse a file of another kind."""
    if facts["general.architecture"] != _ARCHITECTURE:
        raise ValueError(f"it holds a model of the kind {facts['general.architecture']}, not {_ARCHITECTURE}")
    shape = {
        name.removeprefix(f"{_ARCHITECTURE}."): value
        for name, value in facts.items()
        if name.startswith(f"{_ARCHITECTURE}.")
    }
    if shape["pooling_type"] != _MEAN_POOLING:
        raise ValueError("its vectors are not means")
    return {
        "architectures": ["NomicBertModel"],
        "model_type": "nomic_bert",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": shape["embedding_length"],
        "num_hidden_layers": shape["block_count"],
        "num_attention_heads": shape["attention.head_count"],
        "intermediate_size": shape["feed_forward_length"],
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "max_position_embeddings": shape["context_length"],
        "type_vocab_size": facts["tokenizer.ggml.token_type_count"],
        # The file has the number in single precision; transformers computes with the decimal one.
        "layer_norm_eps": float(f"{shape['attention.layer_norm_epsilon']:.6g}"),
        "rope_parameters": {"rope_type": "default", "rope_theta": shape["rope.freq_base"]},
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
    }


def _named(name: str, tensor: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a tensor under transformers' name; query, key and value lie in one."""
    parts = name.split(".")
    if parts[0] != "blk":
        yield f"{_TABLES[parts[0]]}.{parts[1]}", tensor
        return
    _, number, part, kind = parts
    if part == "attn_qkv":
        for letter, third in zip("qkv", np.split(tensor, 3), strict=True):
            yield f"layers.{number}.self_attn.{letter}_proj.{kind}", third
    else:
        yield f"layers.{number}.{_LAYER[part]}.{kind}", tensor


def _tokenizer(facts: dict[str, Any]) -> Tokenizer:
    """Return the uncased WordPiece tokenizer of BERT with the file's vocabulary."""
    if facts["tokenizer.ggml.model"] != "bert":
        raise ValueError(f"its tokenizer is of the kind {facts['tokenizer.ggml.model']}, not bert")
    vocabulary = {_piece(token): index for index, token in enumerate(facts["tokenizer.ggml.tokens"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=BERT_TOKENS["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ends = [(token, vocabulary[token]) for token in (BERT_TOKENS["sep_token"], BERT_TOKENS["cls_token"])]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    tokenizer.add_special_tokens(list(BERT_TOKENS.values()))
    return tokenizer


def _piece(token: str) -> str:
    """Return BERT's spelling of a piece; special ones, in brackets, have no mark in either."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token.removeprefix(_WORD_START) if token.startswith(_WORD_START) else f"##{token}"
