"""What every request passes before the API: host, key, size and time of its body, headers, counting. Plain ASGI."""

import asyncio
import hmac
import logging
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

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
    # The page uses its own files only: nothing inline, nothing from elsewhere, and no other page may frame it.
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

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, paths: Collection[str]) -> None:
        """Wrap an app.

        Args:
            app: what answers requests that pass.
            settings: which requests pass.
            metrics: where they are counted.
            paths: the paths that are counted by name. Others are counted together: clients could make up any number.
        """
        self._app = app
        self._key = settings.api_key.get_secret_value() if settings.api_key else None
        self._settings = settings
        self._hosts = {"localhost", *(host.lower() for host in settings.allowed_hosts)}
        self._body_bytes = settings.limits.body_bytes
        self._metrics = metrics
        self._paths = paths

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
            pass  # the client has left
        except asyncio.CancelledError:  # the server ends, and the client has not even sent its request
            if not status:
                await problem(503, "The server is shutting down.", "Try again later.")(scope, receive, send_completed)
        except Exception as error:
            # The message of an error may quote the request, so only its kind is logged.
            logger.error("A request to %s failed with %s.", self._path(scope), type(error).__name__)
            if not status:
                await problem(500, "The server failed.", "Please report what you asked for.")(
                    scope, receive, send_completed
                )
        finally:
            self._metrics.requests.labels(self._path(scope), str(status or 499)).inc()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if not self._knows_the_host(headers.get("host", "")):
            remedy = "Use the address that the server listens on, or allow the name: unembed serve --allow-host NAME"
            await problem(421, "This host name is not allowed.", remedy)(scope, receive, send)
            return
        if scope["path"].startswith(_PROTECTED) and not self._knows_the_key(headers):
            wanted = {"WWW-Authenticate": "Bearer"}
            remedy = "Send it as: Authorization: Bearer KEY"
            await problem(401, "The API key is missing or wrong.", remedy, wanted)(scope, receive, send)
            return
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._body_bytes:
            await problem(413, *self._too_large())(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    def _bounded(self, receive: Receive) -> Receive:
        """Let a body be received up to a size and within a time."""
        deadline = asyncio.get_running_loop().time() + self._settings.body_seconds
        received, complete = 0, False

        async def receive_bounded() -> Message:
            nonlocal received, complete
            try:
                async with asyncio.timeout_at(None if complete else deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, ("The body did not arrive in time.", "Send it faster, or send less.")
                ) from None
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > self._body_bytes:  # a chunked body does not say beforehand how long it is
                raise HTTPException(413, self._too_large())
            return message

        return receive_bounded

    def _knows_the_host(self, header: str) -> bool:
        """Refuse names that another site could point to this machine (DNS rebinding). Numeric addresses are safe."""
        if not header or "*" in self._hosts:
            return True
        try:
            host = (urlsplit(f"//{header}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return host in self._hosts or _is_address(host)

    def _knows_the_key(self, headers: Headers) -> bool:
        if self._key is None:
            return True
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("latin-1"), self._key.encode())  # headers are bytes, read as latin-1

    def _path(self, scope: Scope) -> str:
        return scope["path"] if scope["path"] in self._paths else "other"

    def _too_large(self) -> tuple[str, str]:
        return f"The body has more than {self._body_bytes} bytes.", "Send less at once; see limits in /api/models."


def problem(status: int, message: str, remedy: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return an answer that says what is wrong and what to do."""
    return JSONResponse(Problem(message=message, remedy=remedy).model_dump(), status, headers)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
