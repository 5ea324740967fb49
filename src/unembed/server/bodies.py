"""Reads the JSON of requests, and refuses what is too large to be one before any object is built. Knows no schema.

Everything here runs on the event loop, so it must be quick for any body within the limit of bytes.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

# More than any object of a request has. Each unknown key would get an error of its own.
_MOST_KEYS = 50
# More than a batch or a vector usually has. One that is only a little too long gets a better message elsewhere.
_MOST_ITEMS = 4096


class BoundedRequest(Request):
    """A request whose JSON has a bounded number of values."""

    def __init__(self, request: Request, most_values: int, most_items: int) -> None:
        super().__init__(request.scope, request.receive)
        self._most_values = most_values
        self._most_items = max(most_items, _MOST_ITEMS)

    async def json(self) -> Any:
        """Parse the body, or refuse it."""
        body = await self.body()
        if body.count(b",") >= self._most_values:  # also counts commas in texts, for which the bound leaves room
            raise HTTPException(
                413,
                (
                    f"The body has more than {self._most_values} values.",
                    "Send fewer at once; see limits in /api/models.",
                ),
            )
        values = json.loads(body, object_pairs_hook=_object)
        lists = [value for value in values.values() if isinstance(value, list)] if isinstance(values, dict) else []
        if any(len(items) > self._most_items for items in lists):  # each item may be a list, slow to check
            raise HTTPException(
                413, ("A list has far too many items.", "Send fewer at once; see limits in /api/models.")
            )
        return values


def bounded_route(most_values: int, most_items: int) -> type[APIRoute]:
    """Return a class of routes that accept at most this many values in a request, and items in a list."""

    class BoundedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_bounded(request: Request) -> Response:
                return await handle(BoundedRequest(request, most_values, most_items))

            return handle_bounded

    return BoundedRoute


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_KEYS:
        raise HTTPException(
            422, (f"An object has {len(pairs)} keys.", f"Send at most {_MOST_KEYS}; see /openapi.json for their names.")
        )
    return dict(pairs)
