"""``unembed train``: a store becomes an inverter. Joins the loop with the display."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from unembed.training import Callbacks


def train(
    config: Annotated[Path, typer.Argument(help="A recipe, for example configs/tiny.yaml.")],
    store: Annotated[Path | None, typer.Option(help="Use this store instead of the recipe's data.store.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of the recipe's training.output.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run from its saved state.")] = False,
    max_minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Stop after this many minutes; the state is saved.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Use this seed instead of the recipe's.")] = None,
    device: Annotated[
        str, typer.Option(help="auto (a GPU where there is one; several through accelerate launch) or cpu.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train an inverter; Ctrl-C or SIGTERM saves the state and ends cleanly.

    Example: unembed train configs/tiny.yaml --max-minutes 2
    """
    from unembed.cli.output import show_json, show_result
    from unembed.config import load_recipe
    from unembed.errors import require_extra
    from unembed.progress import make_training_progress

    recipe = load_recipe(config)
    require_extra("train", "accelerate")
    from unembed.training import train as run

    data = {"store": store} if store else {}
    training = {key: value for key, value in (("output", output), ("seed", seed)) if value is not None}
    recipe = recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update=data),
            "training": recipe.training.model_copy(update=training),
        }
    )
    # With several processes, only the first one prints.
    silent = os.environ.get("RANK", "0") != "0"
    with make_training_progress(disable=silent) as progress:
        task = progress.add_task("Reading the store", total=None, figures="")
        result = run(
            recipe,
            resume=resume,
            max_minutes=max_minutes,
            device=device,
            callbacks=_show(progress, task),
        )
    if silent:
        return
    folder = recipe.training.output
    if as_json:
        show_json({"step": result.step, "ended": result.reason, "output": str(folder), "metrics": result.metrics})
        return
    rows = {name: {"validation": value} for name, value in result.metrics.items()}
    show_result(rows, title=f"Step {result.step:,}, {_REASONS[result.reason]}", as_json=False)
    if not result.step:
        typer.echo("The readout is not finished, so there is no inverter yet.", err=True)
        return
    kept = "best" if (folder / "best").is_dir() else "latest"
    typer.echo(f"Inverter: {folder / kept}   curves: {folder / 'curves.png'}", err=True)


_REASONS = {
    "finished": "all steps done",
    "time": "time is up (continue with --resume)",
    "interrupted": "interrupted (continue with --resume)",
    "patience": "stopped early: no longer improving",
}


def _show(progress: "Progress", task: "TaskID") -> "Callbacks":
    """Return the callbacks of a live display."""
    from unembed.training import Callbacks

    latest: dict[str, float] = {}

    def on_step(step: int, steps: int, figures: dict[str, float]) -> None:
        latest["loss"] = 0.95 * latest.get("loss", figures["elbo"]) + 0.05 * figures["elbo"]
        speed = figures["samples_per_second"]
        latest["speed"] = 0.9 * latest.get("speed", speed) + 0.1 * speed
        shown = f"loss {latest['loss']:.3f}  {latest['speed']:,.0f} samples/s"
        if "accuracy" in latest:
            shown += f"  token accuracy {latest['accuracy']:.1%}"
        progress.update(task, description="Training", completed=step, total=steps, figures=shown)

    def on_validation(metrics: dict[str, float]) -> None:
        if "token_accuracy" in metrics:
            latest["accuracy"] = metrics["token_accuracy"]

    def on_stage(label: str, done: int, total: int) -> None:
        progress.update(task, description=label, completed=done, total=total, figures="")

    return Callbacks(on_stage=on_stage, on_step=on_step, on_validation=on_validation)
