"""Ctrl-C as a wish to end early with what there is. Knows nothing of what is interrupted."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def early_end(*, possible: bool = True) -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether the user has pressed Ctrl-C; the second time it interrupts as usual.

    Args:
        possible: whether what runs can end early; otherwise the first time interrupts as usual too.
    """
    wished = threading.Event()
    if not possible or threading.current_thread() is not threading.main_thread():
        yield wished.is_set
        return
    usual = signal.getsignal(signal.SIGINT)

    def note(_number: int, _frame: FrameType | None) -> None:
        wished.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield wished.is_set
    finally:
        signal.signal(signal.SIGINT, usual)
