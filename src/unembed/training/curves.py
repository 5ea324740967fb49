"""Training curves as a PNG. Knows the events of ``metrics.jsonl``, nothing of models."""

from pathlib import Path

from unembed.files import atomic_path
from unembed.training.log import read_metrics

FILE = "curves.png"


def draw_curves(run: Path, target: Path | None = None) -> Path | None:
    """Draw loss and accuracies over the samples seen, by default into the run's folder.

    Returns:
        The path of the picture; None if matplotlib or the events are missing.
    """
    events = read_metrics(run)
    training = [event for event in events if event["kind"] == "train"]
    validation = [event for event in events if event["kind"] == "validation"]
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    if not training:
        return None
    figure = Figure(figsize=(11, 4), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    loss.plot([e["samples"] for e in training], [e["elbo"] for e in training], color="#b8c4d6", label="training")
    loss.plot([e["samples"] for e in validation], [e["elbo"] for e in validation], color="#1f4e8c", label="validation")
    loss.set(xlabel="samples seen", ylabel="ELBO (nats per token)", title="Loss")
    loss.legend()
    names = [name for name in (validation[-1] if validation else {}) if "accuracy" in name]
    for name in names:
        points = [(e["samples"], e[name]) for e in validation if name in e]
        label = f"{name} (free-running)" if name == "token_accuracy" else name
        accuracy.plot(*zip(*points, strict=True), label=label)
    accuracy.set(xlabel="samples seen", ylabel="share", title="Validation accuracy", ylim=(0, 1))
    if names:
        accuracy.legend(fontsize="small")
    for axes in (loss, accuracy):
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    target = target or run / FILE
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    return target
