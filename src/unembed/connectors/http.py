"""Asks vector databases that speak JSON over HTTP, and turns what goes wrong into errors. Knows none of them."""

import time
from typing import Any
from urllib.parse import urlsplit

from unembed.connectors.source import show_id
from unembed.connectors.uri import mask_passwords
from unembed.errors import VectorError, first_line
from unembed.hosts import LOOPBACK

SECONDS = 30.0
"""How long an answer may take."""
_TRIES = 4
_BUSY = (429, 502, 503, 504)
_LONGEST_WAIT = 30.0


class Service:
    """A database at an address. It is asked, never told anything."""

    def __init__(self, address: str, where: str, headers: dict[str, str], credentials: str) -> None:
        """Open a connection.

        Args:
            address: the base of all paths.
            where: what the database is called in errors.
            headers: sent with every question; a key among them.
            credentials: where the key comes from, for errors.
        """
        import httpx

        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise VectorError(f"{where} is no address.", "Give http://HOST:PORT or https://HOST.")
        has_secret = bool(headers) or bool(parts.password)
        if has_secret and parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise VectorError(
                f"{where} is plain http. A key is never sent over plain http, except to localhost.",
                f"Use https, or leave out the key ({credentials}).",
            )
        self.where = where
        self._credentials = credentials
        self._client = httpx.Client(base_url=address.rstrip("/"), headers=headers, timeout=SECONDS)

    def get(self, path: str, **parameters: Any) -> Any:
        """Ask for what is at a path."""
        return self._ask("GET", path, params={key: value for key, value in parameters.items() if value is not None})

    def find(self, path: str, *otherwise: int) -> Any:
        """Ask for what is at a path; return None if it is not there, or the answer has one of the other codes."""
        return self._ask("GET", path, none_for=(404, *otherwise))

    def post(self, path: str, body: Any, **parameters: Any) -> Any:
        """Ask a question that has a body."""
        return self._ask("POST", path, params=parameters, json=body)

    def forget(self, path: str, body: Any) -> None:
        """End a question that the server still holds open; it does not matter whether that works."""
        import httpx

        try:
            self._client.request("DELETE", path, json=body)
        except httpx.HTTPError:
            return

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _ask(self, method: str, path: str, none_for: tuple[int, ...] = (), **options: Any) -> Any:
        import httpx

        for attempt in range(1, _TRIES + 1):
            try:
                answer = self._client.request(method, path, **options)
            except httpx.TimeoutException as error:
                raise VectorError(
                    f"{self.where} did not answer within {SECONDS:g} seconds.", "Check that it runs, and run again."
                ) from error
            except httpx.HTTPError as error:
                raise VectorError(
                    f"{self.where} cannot be reached: {mask_passwords(first_line(error))}.", "Check that it runs."
                ) from error
            if answer.status_code in _BUSY and attempt < _TRIES:
                time.sleep(_wait(answer.headers.get("retry-after"), attempt))
                continue
            return None if answer.status_code in none_for else self._read(answer)
        raise AssertionError("unreachable")

    def _read(self, answer: Any) -> Any:
        if answer.status_code in (401, 403):
            raise VectorError(
                f"{self.where} refuses these credentials ({answer.status_code}).",
                f"Give a key that may read it: {self._credentials}.",
            )
        if answer.is_error:
            said = show_id(answer.text.strip()[:200])
            raise VectorError(f"{self.where} answers {answer.status_code}: {said}", "Check the address.")
        try:
            return answer.json()
        except ValueError as error:
            raise VectorError(f"{self.where} does not answer with JSON.", "Check the address.") from error


def _wait(said: str | None, attempt: int) -> float:
    """Return how many seconds to wait before the next try: as long as the server says, else longer each time."""
    try:
        return min(_LONGEST_WAIT, max(0.0, float(said or "")))
    except ValueError:
        return 0.25 * 2.0**attempt
