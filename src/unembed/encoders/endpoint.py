"""An OpenAI-compatible embeddings endpoint. Knows HTTP, not what runs behind it.

The address names the model after a ``#``: ``https://api.openai.com/v1#text-embedding-3-small``. The key comes from the
environment: ``UNEMBED_API_KEY``, or for api.openai.com ``OPENAI_API_KEY``, which is sent nowhere else.
``UNEMBED_REQUESTS_PER_MINUTE`` keeps the client below a limit; without it, it slows down when the server says so.

Texts and key go to this address only. Redirects are not followed: they would send both to a host that the user did not
name.
"""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from unembed.encoders.base import EncoderDescription, as_texts
from unembed.errors import ConfigError, EncoderError, first_line
from unembed.progress import track
from unembed.text import printable

_PROBE = "A short sentence."
_SECONDS = 120
_ATTEMPTS = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_TRY_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_LONGEST_SHOWN = 500


class EndpointEncoder:
    """An :class:`~unembed.encoders.Encoder` behind HTTP. One connection serves all requests of a thread."""

    tokenizer = None  # not known: choose one for the canvas

    def __init__(self, address: str, *, prompt: str | None = None, truncate_dim: int | None = None) -> None:
        base, _, self._model = address.partition("#")
        if not self._model or not urlsplit(base).hostname:
            raise ConfigError(
                f"'{address}' does not name a model.",
                "Write the model after a #, as in https://api.openai.com/v1#model.",
            )
        if urlsplit(base).username is not None:
            raise ConfigError("The address holds a user name or a password.", "Give a key as UNEMBED_API_KEY instead.")
        self._url = f"{base.rstrip('/')}/embeddings"
        self._client = httpx.Client(headers=_authorisation(base), timeout=_SECONDS, follow_redirects=False)
        self._pause = _pause_between_requests()
        self._next = 0.0
        self._prompt = prompt or ""
        self._extra = {} if truncate_dim is None else {"dimensions": truncate_dim}
        vector = self._embed([_PROBE])[0]
        if truncate_dim not in (None, len(vector)):
            raise EncoderError(
                f"{self._url} gave {len(vector)} numbers instead of {truncate_dim}.", "Leave out `truncate_dim`."
            )
        self._description = EncoderDescription(
            name=f"{base.rstrip('/')}#{self._model}",
            revision="unknown",
            dim=len(vector),
            prompt=prompt,
            pooling="unknown",
            normalised=bool(abs(np.linalg.norm(vector) - 1.0) < 1e-2),
            truncate_dim=truncate_dim,
        )

    @property
    def description(self) -> EncoderDescription:
        """Name, dimension, prompt and normalisation. Revision and pooling of an endpoint are not known."""
        return self._description

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence, ``batch_size`` of them per request."""
        texts = as_texts(sentences)
        vectors = np.empty((len(texts), self.description.dim), dtype=np.float32)

        def batches() -> Iterator[int]:
            for start in range(0, len(texts), batch_size):
                batch = texts[start : start + batch_size]
                vectors[start : start + len(batch)] = self._embed(batch)
                yield len(batch)

        for _ in track(batches(), total=len(texts), label="Embedding", disable=not show_progress_bar):
            pass
        return vectors

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        question = {"model": self._model, "input": [self._prompt + text for text in texts], "encoding_format": "float"}
        answer = self._post(question | self._extra)
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise EncoderError(
                f"{self._url} gave no embeddings.", "Check that it is an OpenAI-compatible endpoint."
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise EncoderError(f"{self._url} gave {len(vectors)} vectors for {len(texts)} texts.", "Ask its operator.")
        return vectors

    def _post(self, question: dict[str, Any]) -> Any:
        """Send a request. Try again after growing delays, as long as the error is one that may go away."""
        reason = ""
        for attempt in range(_ATTEMPTS):
            self._wait_for_turn()
            requested_pause = None
            try:
                response = self._client.post(self._url, json=question)
                if response.is_success:
                    return response.json()
                reason = f"{response.status_code} {response.reason_phrase}"
                if response.status_code not in _TRY_AGAIN:
                    raise _refused(self._url, response)
                requested_pause = _seconds(response.headers.get("Retry-After"))
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: the answer is not JSON
                reason = first_line(error)
            if attempt < _ATTEMPTS - 1:
                time.sleep(min(requested_pause or _FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE))
        raise EncoderError(
            f"{self._url} did not answer in {_ATTEMPTS} attempts: {reason}.",
            "Check the address and the connection. What was finished is kept: run the same command again to continue.",
        )

    def _wait_for_turn(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + self._pause


def _authorisation(base: str) -> dict[str, str]:
    """Return the header with the key for an address that the user named."""
    address = urlsplit(base)
    variable = "UNEMBED_API_KEY"
    if not os.environ.get(variable) and address.hostname == "api.openai.com":
        variable = "OPENAI_API_KEY"
    key = os.environ.get(variable, "").strip()  # a line's end often comes along with a key that is read from a file
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):  # httpx would refuse it too, and quote it
        raise ConfigError(f"{variable} has characters that no key has.", "Set it again, to the key alone.")
    if address.scheme != "https" and address.hostname not in _LOOPBACK:
        raise ConfigError(
            f"{base} is plain http. A key is never sent over plain http, except to localhost.",
            "Use https, or unset the key.",
        )
    return {"Authorization": f"Bearer {key}"}


def _pause_between_requests() -> float:
    given = os.environ.get("UNEMBED_REQUESTS_PER_MINUTE")
    try:
        return 0.0 if not given else 60.0 / float(given)
    except (ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"UNEMBED_REQUESTS_PER_MINUTE is '{given}'.", "Give a number above 0.") from error


def _refused(url: str, response: httpx.Response) -> EncoderError:
    status = f"{response.status_code} {response.reason_phrase}"
    if response.has_redirect_location:
        target = printable(str(response.headers["Location"]))
        return EncoderError(
            f"{url} redirects to {target} ({status}). Texts are sent only to the address that you name.",
            "If you trust the new address, give it instead.",
        )
    remedy = "Check the model's name and the request."
    if response.status_code in (401, 403):
        remedy = "Set UNEMBED_API_KEY (or, for api.openai.com, OPENAI_API_KEY)."
    message = printable(response.text[:_LONGEST_SHOWN].strip())
    return EncoderError(f"{url} refused: {status}. {message}", remedy)


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None
