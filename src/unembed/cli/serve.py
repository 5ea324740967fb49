"""``unembed serve``: the web page and the HTTP API. Knows how a server is put together, not how it answers."""

import gc
import logging
import re
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unembed.cli.invert import EngineName, load_encoder_for
from unembed.cli.sources import INVERTER
from unembed.hosts import LOOPBACK

if TYPE_CHECKING:
    from unembed.server import ServedModel

_KEY_VARIABLE = "UNEMBED_SERVER_KEY"


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help=f"{INVERTER.capitalize()}; or NAME=FOLDER. May be repeated; the first one is the default.",
            show_default="all that are installed",
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="Where an inverter's encoder is, LOCATION or NAME=LOCATION: a folder, a hub id or an address. Texts "
            "are sent to an address only if you give it here.",
            show_default="the encoder that the inverter names",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")] = 8080,
    public: Annotated[bool, typer.Option("--public", help="Allow an address that other machines can reach.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser, where there is one.")] = False,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar=_KEY_VARIABLE, help="Key that every request must send. It is safer to set it in the environment."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A host name that clients may use besides localhost and --host; may be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="An origin (https://example.org) whose pages may use the API; may be repeated."),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="What runs the denoiser.")] = EngineName.torch,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Batches decoded side by side.", show_default="one per core, up to 4")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Cores that share one batch.", show_default="1")] = None,
    queue: Annotated[
        int | None, typer.Option(min=1, help="Largest number of vectors that wait.", show_default="256")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Largest number of vectors in a batch request.", show_default="64")
    ] = None,
    wait_seconds: Annotated[
        float | None, typer.Option(min=0.1, help="How long a request may wait for its turn.", show_default="60")
    ] = None,
    work_seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Largest computing time of a vector.", show_default="120")
    ] = None,
) -> None:
    """Start the web page and the HTTP API.

    Example: unembed serve --open
    """
    from unembed.errors import ConfigError, require_extra

    require_extra("serve", "fastapi", "uvicorn", "prometheus_client")
    # The imports alone take many seconds on a slow machine.
    typer.echo("Starting unembed ...", err=True)
    if host not in LOOPBACK and not public:
        raise ConfigError(
            f"Other machines could reach {host}.", "Allow that with --public, and set a key; or leave out --host."
        )
    from unembed.checkpoint import installed_inverters
    from unembed.server import Limits, Server, Settings, make_app

    given = {"queue": queue, "batch": batch}
    chosen = {"workers": workers, "threads": threads, "wait_seconds": wait_seconds, "work_seconds": work_seconds}
    settings = Settings(
        limits=Limits.model_validate({name: value for name, value in given.items() if value is not None}),
        api_key=api_key or None,  # type: ignore[arg-type]
        allowed_hosts=(host, *map(_host, allow_host or [])),
        allowed_origins=tuple(_origin(origin) for origin in allow_origin or []),
        **{name: value for name, value in chosen.items() if value is not None},  # type: ignore[arg-type]
    )
    served = [_name_and_location(named) for named in model or installed_inverters()]
    encoders = _encoder_locations(encoder or [], [name for name, _ in served])
    listening = _listen(host, port)
    models = list(_load_all(served, encoders, engine, device, named=bool(model)))
    if public and settings.api_key is None:
        typer.echo(f"Anyone who can reach {host} can use this server: no key is set ({_KEY_VARIABLE}).", err=True)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    server = Server(make_app(settings, models), settings)
    # What is loaded by now stays: half a million objects. A full garbage collection would check them all, which takes
    # 0.3 seconds, and no request would be answered meanwhile.
    gc.collect()
    gc.freeze()
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    typer.echo(f"unembed is at {address} (Ctrl-C ends it)", err=True)
    if open_page:
        webbrowser.open(address)  # it can connect now, and gets its answer as soon as the server runs
    with listening, suppress(KeyboardInterrupt):  # uvicorn raises it again when all requests have ended
        server.run(sockets=[listening])


def _name_and_location(named: str) -> tuple[str, str]:
    """Read ``NAME=LOCATION``; a location alone is named after its last part."""
    name, equals, location = named.partition("=")
    return (name, location) if equals else (Path(named).name or named, named)


def _encoder_locations(given: list[str], models: list[str]) -> dict[str, str]:
    """Return the location of each model's encoder, by the model's name. Without a name, it is the first model's."""
    locations = {}
    for word in given:
        name, _, location = word.partition("=")
        if name in models:
            locations[name] = location
        else:  # an address may contain a =
            locations[models[0]] = word
    return locations


def _load_all(
    served: list[tuple[str, str]], encoders: dict[str, str], engine: EngineName, device: str, *, named: bool
) -> "Iterator[ServedModel]":
    """Load inverters. One that nobody named is left out if it cannot be used, unless it is the first."""
    from unembed.errors import UnembedError

    for number, (name, location) in enumerate(served):
        try:
            yield _load(name, location, encoders.get(name), engine, device)
        except UnembedError as error:
            if named or not number:
                raise
            typer.echo(f"{name} is left out. {error.problem}", err=True)


def _load(name: str, location: str, encoder: str | None, engine: EngineName, device: str) -> "ServedModel":
    """Load an inverter and, if it is available, its encoder."""
    from unembed.errors import UnembedError
    from unembed.inverter import Inverter
    from unembed.server import ServedModel
    from unembed.text import printable_lines

    typer.echo(f"Loading the inverter {printable_lines(name)} and its encoder ...", err=True)
    inverter = Inverter.from_pretrained(location, device=device, engine=engine.value)
    try:
        return ServedModel(name, inverter, load_encoder_for(inverter, encoder, device))
    except UnembedError as error:
        if encoder is not None:
            raise
        typer.echo(f"{name}: vectors only, no texts and no guided decoding. {printable_lines(error.problem)}", err=True)
        return ServedModel(name, inverter)


def _origin(given: str) -> str:
    """Return an origin as browsers send it; refuse what is not an origin."""
    from urllib.parse import urlsplit

    from unembed.errors import ConfigError

    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or "*" in given:
        raise ConfigError(f"'{given}' is not an origin.", "Write scheme, host and port only: https://example.org:8443")
    return f"{parts.scheme}://{parts.netloc}".lower()


def _host(given: str) -> str:
    """Check a host name: without scheme and port; ``*`` stands for any name."""
    from unembed.errors import ConfigError

    if given != "*" and not re.fullmatch(r"[\w-]+(\.[\w-]+)*", given):
        raise ConfigError(f"'{given}' is not a host name.", "Write the name only: example.org, or * for any name.")
    return given


def _listen(host: str, port: int) -> socket.socket:
    """Open the socket first, so that a wrong address is reported before anything is loaded."""
    from unembed.errors import ConfigError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}.", "Choose another --port or --host."
        ) from error
