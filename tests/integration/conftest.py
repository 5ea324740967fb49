"""Tiny models of the paper's three architectures, with random weights, written as the hub's repositories have them."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXTS = """
the cat sleeps on the warm mat.
the dog runs in the park, and a bird sings in the tree.
two dogs play in the snow; three birds fly over the house.
the old man drinks tea, the child eats a red apple.
rain falls on the roof. the sun is warm today. snow is cold and white.
a teacher reads to the children, the children laugh and play.
""".strip().splitlines()


@pytest.fixture(scope="session")
def qwen3(tmp_path_factory) -> Path:
    return write_qwen3(tmp_path_factory.mktemp("hub") / "qwen3")


@pytest.fixture(scope="session")
def gemma(tmp_path_factory) -> Path:
    return write_gemma(tmp_path_factory.mktemp("hub") / "embeddinggemma")


@pytest.fixture(scope="session")
def jina(tmp_path_factory) -> Path:
    pytest.importorskip("peft", reason="jina-embeddings-v3 needs the extra jina")
    return write_jina(tmp_path_factory.mktemp("hub") / "jina")


def _byte_level(special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    )
    return tokenizer


def _save(folder: Path, model, tokenizer: Tokenizer, modules: list[str], **options) -> None:
    from transformers import PreTrainedTokenizerFast

    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **options).save_pretrained(folder)
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
                for place, (path, kind) in enumerate(module.split(":") for module in modules)
            ]
        )
    )


def _pooling(folder: Path, mode: str, width: int) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": width, f"pooling_mode_{mode}": True, "include_prompt": True})
    )


def _prompts(folder: Path, prompts: dict[str, str]) -> None:
    content = {"prompts": prompts, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(content))


def write_qwen3(folder: Path) -> Path:
    """Last-token pooling, padding on the left, an end token behind every text, a prompt for queries only."""
    from transformers import Qwen3Config, Qwen3Model

    tokenizer = _byte_level(["<|endoftext|>", "<|im_end|>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    _save(
        folder,
        Qwen3Model(config),
        tokenizer,
        [":Transformer", "1_Pooling:Pooling", "2_Normalize:Normalize"],
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        padding_side="left",
    )
    _pooling(folder, "lasttoken", 32)
    _prompts(folder, {"query": "Instruct: retrieve passages that answer the query\nQuery:", "document": ""})
    return folder


def write_gemma(folder: Path) -> Path:
    """Bidirectional, mean pooling, two dense layers behind it, a prompt for documents."""
    from sentence_transformers.sentence_transformer.modules import Dense
    from transformers import Gemma3TextConfig, Gemma3TextModel

    tokenizer = _byte_level(["<pad>", "<eos>", "<bos>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", 2), ("<eos>", 1)]
    )
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=64,
        sliding_window=16,
        use_bidirectional_attention=True,
        initializer_range=0.3,
    )
    special = {f"{name}_token": f"<{name}>" for name in ("pad", "eos", "bos", "unk")}
    modules = [":Transformer", "1_Pooling:Pooling", "2_Dense:Dense", "3_Dense:Dense", "4_Normalize:Normalize"]
    _save(folder, Gemma3TextModel(config), tokenizer, modules, **special)
    _pooling(folder, "mean_tokens", 32)
    for name, sizes in (("2_Dense", (32, 48)), ("3_Dense", (48, 32))):
        (folder / name).mkdir()
        Dense(*sizes, bias=False, activation_function=torch.nn.Identity()).save(str(folder / name))
    _prompts(folder, {"query": "task: search result | query: ", "document": "title: none | text: "})
    return folder


def write_jina(folder: Path) -> Path:
    """Transformers' own implementation, and a low-rank adapter per task in a subfolder."""
    from peft import LoraConfig, get_peft_model
    from transformers import JinaEmbeddingsV3Config, JinaEmbeddingsV3Model, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    torch.manual_seed(0)
    config = JinaEmbeddingsV3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    names = {f"{name}_token": f"<{name}>" for name in ("pad", "unk", "mask")}
    names |= {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    JinaEmbeddingsV3Model(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(folder)
    for task in ("retrieval_query", "retrieval_passage", "separation", "classification", "text_matching"):
        lora = LoraConfig(
            r=4, lora_alpha=4, target_modules=["word_embeddings", "q_proj", "v_proj", "o_proj", "up_proj"]
        )
        adapted = get_peft_model(JinaEmbeddingsV3Model.from_pretrained(folder), lora)
        with torch.no_grad():
            for name, parameter in adapted.named_parameters():
                if "lora_" in name:
                    parameter.normal_(std=0.3)
        adapted.save_pretrained(folder / task)
    return folder
