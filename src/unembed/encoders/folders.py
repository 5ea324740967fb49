"""Writes a model as a folder in sentence-transformers' format. Knows nothing of where its weights come from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

BERT_TOKENS = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
}
ROBERTA_TOKENS = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}


def write_model(
    folder: Path,
    weights: Mapping[str, np.ndarray],
    config: Mapping[str, Any],
    *,
    special_tokens: Mapping[str, str],
    max_length: int,
    pooling: str,
    normalise: bool = True,
    document_prompt: str | None = None,
) -> None:
    """Write all files of a model except its ``tokenizer.json``, which the caller puts beside them.

    Args:
        folder: an empty folder.
        weights: by the names that transformers gives them.
        config: transformers' configuration of the model; ``model_type`` says which class it is.
        special_tokens: what the tokenizer calls its special tokens.
        max_length: in tokens; longer texts are cut.
        pooling: ``cls`` or ``mean``.
        normalise: whether vectors have length one.
        document_prompt: what is put before a document.
    """
    from safetensors.numpy import save_file

    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    files: dict[str, Any] = {
        "config.json": dict(config),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": max_length,
            **special_tokens,
        },
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": False},
        "1_Pooling/config.json": {"word_embedding_dimension": config["hidden_size"], "pooling_mode": pooling},
        "modules.json": [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for index, (path, kind) in enumerate(modules if normalise else modules[:2])
        ],
    }
    if document_prompt:
        files["config_sentence_transformers.json"] = {"prompts": {"document": document_prompt}}
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
    save_file(
        {name: np.ascontiguousarray(weight) for name, weight in weights.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )


def completed(weights: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the weights that the model of a configuration has, each of the right shape, in float32.

    A pooler is filled with zeros: no sentence vector passes through it, but without weights transformers would warn.

    Raises:
        ValueError: a weight is missing, is one too many, or has another shape.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    with torch.device("meta"):
        expected = AutoModel.from_config(AutoConfig.for_model(**config)).state_dict()
    if unknown := sorted(weights.keys() - expected.keys()):
        raise ValueError(f"the model has no weight {unknown[0]}")
    whole = {}
    for name, parameter in expected.items():
        shape = tuple(parameter.shape)
        if name.startswith("pooler."):
            whole[name] = np.zeros(shape, np.float32)
            continue
        if name not in weights:
            raise ValueError(f"it has no weight {name}")
        if weights[name].shape != shape:
            raise ValueError(f"the weight {name} has the shape {weights[name].shape} instead of {shape}")
        whole[name] = weights[name].astype(np.float32)
    return whole
