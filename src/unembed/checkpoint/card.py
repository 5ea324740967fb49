"""The model card: made from the facts of a checkpoint, nothing added by hand."""

from collections.abc import Sequence
from typing import Any

from torch import nn

_EXPLAINED = {
    "token_accuracy": "free-running, from the all-masked canvas",
    "elbo": "nats per token",
    "length_accuracy": "length head, exactly right",
    "readout_f1": "bag of tokens read off the vector, set size known",
    "surrogate_cosine": "of the surrogate's vectors with the encoder's",
    "writer_nats": "negative log-likelihood of a token, given those before it",
    "map_cosine": "of mapped vectors with the base encoder's own",
    "map_top1": "mapped vectors whose own text is the nearest of their fold",
    "mapped_readout_f1": "bag of tokens read off mapped vectors, set size known",
    "tuned_readout_f1": "the same after tuning",
    "agreement": "cosine, around the mean, of two maps that were found from halves that share no vector",
    "mutual_share": "mapped vectors that are the nearest of their own nearest text",
    "base_readout_f1": "the same texts, read off the base encoder's own vectors",
}
_METADATA = (
    "library_name: unembed",
    "license: apache-2.0",
    "tags: [embedding-inversion, masked-diffusion, privacy]",
)
_SNIPPET = (
    "```python",
    "from unembed import Inverter",
    "",
    'inverter = Inverter.from_pretrained("path or hub id of this folder")',
    "print(inverter.invert(vectors)[0].text)",
    "```",
    "",
)
_USE = (
    "",
    "## Use",
    "",
    "For finding out what a leaked vector gives away, on vectors that you may examine. The output is a guess: names, "
    "numbers and word order are often wrong. Texts are recovered in the encoder's own normal form (lower case for an "
    "uncased tokenizer).",
    "",
)


def model_card(info: dict[str, Any], model: nn.Module) -> str:
    """Return the card as Markdown with the hub's metadata on top."""
    encoder = info["encoder"]
    metrics = info["metrics"]
    parameters = sum(parameter.numel() for parameter in model.parameters())
    lines = [
        *_head(info["languages"]),
        f"# An inverter for {encoder['name']}",
        "",
        f"Reads text back out of {encoder['dim']}-dimensional vectors of `{encoder['name']}` "
        f"(revision `{encoder['revision']}`, {encoder['pooling']} pooling, "
        f"{'normalised' if encoder['normalised'] else 'not normalised'}, prompt: {encoder['prompt'] or 'none'}).",
        f"A conditional masked diffusion language model of {parameters / 1e6:.1f}M parameters, "
        f"canvas of up to {info['model']['canvas_length']} tokens, trained with unembed {info['unembed_version']} "
        f"on {info['training_rows']:,} texts.",
        "",
        *_SNIPPET,
        "## Measured during training, on held-out rows",
        "",
    ]
    return "\n".join([*lines, *_measures(metrics), *_USE])


def adapted_card(info: dict[str, Any]) -> str:
    """Return the card of an adapted inverter."""
    encoder = info["encoder"]
    lines = [
        *_head(),
        f"# An inverter for {encoder['name']}, adapted",
        "",
        f"Reads text back out of {encoder['dim']}-dimensional vectors of `{encoder['name']}` (revision "
        f"`{encoder['revision']}`, prompt: {encoder['prompt'] or 'none'}). It maps them to the vectors of another "
        f"encoder, which the inverter `{info['base']}` reads. The map was found with unembed "
        f"{info['unembed_version']} by the method `{info['method']}`, with {info['pairs']:,} pairs of vectors and "
        f"{info['others']:,} other texts; texts: "
        f"{info['texts']}.",
        "",
        *_SNIPPET,
        f"## Measured on held-out {'pairs' if info['pairs'] else 'vectors'}",
        "",
    ]
    return "\n".join([*lines, *_measures(info["metrics"]), *_USE])


def _head(languages: Sequence[str] = ()) -> list[str]:
    """Return the metadata that the hub reads. In YAML, ``no`` (Norwegian) would be false without its quotes."""
    codes = ", ".join(f'"{code}"' for code in languages)
    return ["---", *_METADATA, *([f"language: [{codes}]"] if codes else []), "---", ""]


def _measures(metrics: dict[str, Any]) -> list[str]:
    """Return a table of the measures that are numbers."""
    measured = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
    if not measured:
        return ["Nothing was measured."]
    lines = ["| measure | value | |", "|---|---|---|"]
    for name, value in measured.items():
        note = _EXPLAINED.get(name, "teacher-forced" if name.startswith("masked_accuracy") else "")
        lines.append(f"| {name} | {value:{',.4g' if isinstance(value, float) else ','}} | {note} |")
    return lines
