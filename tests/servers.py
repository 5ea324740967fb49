"""Runs apps behind a real uvicorn, in a thread of the test's process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


@contextmanager
def running(app: FastAPI, last_seconds: int = 1) -> Iterator[tuple[uvicorn.Server, str]]:
    """Serve at a free port until the end of the block; yields the server and its address.

    Requests may take ``last_seconds`` to end; then the server must have ended, too.
    """
    config = uvicorn.Config(app, port=0, access_log=False, log_level="warning", timeout_graceful_shutdown=last_seconds)
    server = uvicorn.Server(config)
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
