"""What stands between the network and the API: key, body size, headers, counting. Plain ASGI; knows no routes."""

import hmac
import logging
from collections.abc import Mapping

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unembed.server.metrics import Metrics
from unembed.server.schemas import Problem
from unembed.server.settings import Settings

logger = logging.getLogger(__name__)

_HEADERS = {
    # The page has files of its own only: nothing inline, nothing from elsewhere, and nobody may frame it.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_PROTECTED = ("/api", "/metrics")


class Protection:
    """Checks a request before it reaches the API, and completes the answer."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._key = settings.api_key.get_secret_value() if settings.api_key else None
        self._body_bytes = settings.limits.body_bytes
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def send_completed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(_PROTECTED):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._answer(scope, receive, send_completed)
        except ClientDisconnect:
            pass  # nobody is there to be answered
        except Exception as error:
            # The message of an error may quote the request, so only its kind is told.
            logger.error("A request to %s failed with %s.", _path(scope), type(error).__name__)
            if not status:
                await problem(500, "The server failed.", "Please report what you asked for.")(
                    scope, receive, send_completed
                )
        finally:
            self._metrics.requests.labels(_path(scope), str(status or 499)).inc()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["path"].startswith(_PROTECTED) and not self._knows_the_key(headers):
            wanted = {"WWW-Authenticate": "Bearer"}
            remedy = "Send it as: Authorization: Bearer KEY"
            await problem(401, "The API key is missing or wrong.", remedy, wanted)(scope, receive, send)
            return
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._body_bytes:
            await problem(413, *self._too_large())(scope, receive, send)
            return
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._body_bytes:  # a chunked body does not say beforehand how long it is
                raise HTTPException(413, self._too_large())
            return message

        await self._app(scope, receive_bounded, send)

    def _knows_the_key(self, headers: Headers) -> bool:
        if self._key is None:
            return True
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("latin-1"), self._key.encode())  # headers are bytes, read as latin-1

    def _too_large(self) -> tuple[str, str]:
        return f"The body has more than {self._body_bytes} bytes.", "Send less at once; see limits in /api/models."


def problem(status: int, message: str, remedy: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Answer with what is wrong, and what to do about it."""
    return JSONResponse(Problem(message=message, remedy=remedy).model_dump(), status, headers)


def _path(scope: Scope) -> str:
    """Return the path as the routes name it: what else clients come up with must not fill the memory."""
    route = scope.get("route")
    return str(getattr(route, "path", None) or "other")
