"""What an endpoint will cost, said before anything is sent."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def announce_requests(
    texts: Iterable[str], tokenizer: "Tokenizer", canvas_length: int, batch_size: int, price: float | None, *, ask: bool
) -> None:
    """Show the number of requests to an endpoint and their cost; ``ask`` whether to go on."""
    count = tokens = 0
    for text in texts:
        count += 1
        tokens += min(canvas_length, len(tokenizer.encode(text, add_special_tokens=False).ids))
    summary = f"About {tokens:,} tokens in {-(-count // batch_size):,} requests, counted with the canvas's tokenizer"
    cost = "; add --price to see the cost" if price is None else f"; {tokens / 1e6 * price:,.4g} at {price:g} a million"
    typer.echo(f"{summary}{cost}.", err=True)
    if ask:
        typer.confirm("Go on?", abort=True, err=True)
