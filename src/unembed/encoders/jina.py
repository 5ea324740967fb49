"""jina-embeddings-v3 by transformers' own implementation, with the adapter of one task. Runs no code of the hub.

The adapter's low-rank updates are added to the weights once, when the model is loaded: the same vectors, no detour
through the adapter in every layer.
"""

from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from unembed.errors import EncoderError, did_you_mean, require_extra

DEFAULT_TASK = "retrieval.passage"
# Each task, and the prompt that the model was trained with for it.
TASKS = {
    "retrieval.query": "Represent the query for retrieving evidence documents: ",
    "retrieval.passage": "Represent the document for retrieval: ",
    "separation": "",
    "classification": "",
    "text-matching": "",
}


def build_jina(
    path: str, *, task: str, device: str | None, truncate_dim: int | None, **source: Any
) -> SentenceTransformer:
    """Load the model from a folder or a hub id, with the adapter of ``task``; ``source`` says where and which."""
    if task not in TASKS:
        raise EncoderError(f"jina-embeddings-v3 has no task '{task}'.", f"{did_you_mean(task, TASKS)}".capitalize())
    require_extra("jina", "peft")
    transformer = Transformer(
        path, model_kwargs=dict(source), processor_kwargs=dict(source), config_kwargs=dict(source)
    )
    _merge_adapter(transformer.auto_model, path, task.replace(".", "_").replace("-", "_"), source)
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(
        modules=[transformer, pooling, Normalize()],
        device=device,
        prompts=TASKS,
        default_prompt_name=task,
        truncate_dim=truncate_dim,
    )


def _merge_adapter(model: Any, path: str, adapter: str, source: dict[str, Any]) -> None:
    """Add an adapter, which is in a subfolder of its name, to the weights permanently."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    if (Path(path) / adapter).is_dir():
        model.load_adapter(str(Path(path) / adapter), adapter_name=adapter)
    else:
        where = {key: source.get(key) for key in ("revision", "local_files_only")}
        model.load_adapter(path, adapter_name=adapter, adapter_kwargs={"subfolder": adapter} | where)
    for module in list(model.modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
