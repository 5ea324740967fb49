"""Progress bars on stderr. Knows nothing of what is being counted."""

from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many more are done, and of how many."""


class RateColumn(ProgressColumn):
    """Items per second, over the last half minute."""

    def render(self, task: Task) -> Text:
        """Render the rate, or nothing before it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


def make_progress(*, disable: bool = False) -> Progress:
    """Return a progress display: what, how far, how fast, how long still."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=disable,
        transient=True,
        # Results go to stdout, wherever that is, while the bar is on stderr.
        redirect_stdout=False,
    )


def track(counts: Iterable[int], *, total: int, label: str, disable: bool = False) -> Iterator[int]:
    """Pass ``counts`` through, advancing a bar by each of them."""
    with make_progress(disable=disable) as progress:
        task = progress.add_task(label, total=total)
        for count in counts:
            progress.advance(task, count)
            yield count


def make_training_progress(*, disable: bool = False) -> Progress:
    """Return the display of a training run: stage, steps, figures, time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=disable,
    )
