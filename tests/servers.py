"""Runs apps behind the real server, in a thread of the test's process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from unembed.server import Server, Settings


@contextmanager
def running(app: FastAPI, settings: Settings | None = None) -> Iterator[tuple[Server, str]]:
    """Serve at a free port until the end of the block; yields the server and its address."""
    server = Server(app, settings or Settings())
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "it did not start"
        time.sleep(0.01)
    try:
        yield server, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        assert not thread.is_alive(), "it did not end"
