"""The folder of an inverter: ``config.json``, ``model.safetensors`` and ``tokenizer.json``. No code."""
