"""The folder of an inverter: ``config.json``, ``model.safetensors``, ``tokenizer.json`` and ``words.txt``. No code."""
