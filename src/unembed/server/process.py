"""Runs an app with uvicorn: half-open connections are closed, and at the end every request still gets an answer."""

import asyncio
import socket

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from unembed.server.settings import Settings

# How long connections may take to close once the server ends.
_LAST_SECONDS = 5


class Server(uvicorn.Server):
    """A uvicorn that turns requests away before it ends, while their connections are still open."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                port=0,
                http=_with_header_time_out(settings.header_seconds),
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_LAST_SECONDS,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: refuse what waits and what is worked on, then close the connections."""
        self._app.state.turn_away()
        await super().shutdown(sockets)


def _with_header_time_out(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol, with a time-out for the headers of each request."""

    class HeaderTimeOut(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._expect_request()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect_request()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def _expect_request(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(seconds, self._close_unless_asked)

        def _close_unless_asked(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return HeaderTimeOut
