"""Errors of the server that are not mistakes of a request. Knows statuses, not responses."""

from unembed.errors import UnembedError


class Refusal(UnembedError):
    """A request that is refused: with which status, and after how many seconds to try again."""

    def __init__(self, status: int, problem: str, remedy: str = "", retry_after: int | None = None) -> None:
        super().__init__(problem, remedy)
        self.status = status
        self.retry_after = retry_after


def busy(problem: str, retry_after: int = 5) -> Refusal:
    """Refuse because too many jobs wait."""
    return Refusal(503, problem, f"Try again in {retry_after} seconds.", retry_after)


def status_of(error: UnembedError) -> int:
    """Return the status that an error is answered with; by default it is a mistake of the request."""
    return error.status if isinstance(error, Refusal) else 422
