"""Serving: ``unembed serve``, which decodes waiting requests together, against a server that decodes them one by one.

Each server runs in a process of its own. Clients send one text after another (embed it, invert it, embed the recovered
text again for the cosine), each as soon as its last answer is there; the texts are the example sentences of the web
page, all equally often. Meanwhile /health is asked twenty times a second, and the server's memory is read. Without
``--model`` the weights are random and the lengths of the texts are sent along, which takes the same time and recovers
nothing.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from measure import Figure, Result, finish, make_parser

_THROUGHPUT, _HEALTH_SECONDS, _MEMORY = 3.0, 0.25, 1.05
_WARM_UP = 0.1
_BETWEEN_HEALTH = 0.05
_READY_SECONDS = 180.0
OURS, PLAIN = "unembed serve", "one request at a time"


@dataclass
class Load:
    """What the clients of one server saw, after the warm-up."""

    seconds: float
    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    @property
    def throughput(self) -> float:
        """Texts a second."""
        return self.statuses["200"] / self.seconds

    @property
    def errors(self) -> int:
        """Answers that are neither a text nor the word that the server is busy."""
        return sum(count for status, count in self.statuses.items() if status not in ("200", "503"))

    @property
    def growth(self) -> float:
        """The memory of the last quarter against that of the first."""
        quarter = max(1, len(self.memory) // 4)
        return statistics.median(self.memory[-quarter:]) / statistics.median(self.memory[:quarter])


def serve_plainly(model: str, port: int) -> None:
    """Serve as the published demo does: everything within the request's handler, on the event loop."""
    import numpy as np
    import uvicorn
    from fastapi import FastAPI

    from unembed.inverter import Inverter

    inverter = Inverter.from_pretrained(model, device="cpu")
    encoder = inverter.load_encoder(device="cpu")
    app = FastAPI()

    @app.post("/api/invert")
    async def invert(request: dict[str, Any]) -> dict[str, Any]:
        vector = encoder.encode([request["text"]])
        lengths = [request["length"]] if "length" in request else None
        (found,) = inverter.invert(vector, lengths=lengths)
        again = encoder.encode([found.text])[0]
        cosine = float(again @ vector[0] / max(float(np.linalg.norm(again)), 1e-12))
        return {"text": found.text, "passes": found.passes, "cosine": cosine}

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """Run a server until the end of the block; yields its process id once it answers."""
    import httpx

    process = subprocess.Popen(command, stdout=sys.stderr)
    try:
        end = time.monotonic() + _READY_SECONDS
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.2)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def measure(port: int, process: int, bodies: list[dict[str, Any]], options: argparse.Namespace) -> Load:
    """Let all clients send requests for the given time."""
    import httpx
    import psutil

    load = Load(options.duration)
    memory = psutil.Process(process)
    begin = time.perf_counter() + _WARM_UP * options.duration
    end = begin + options.duration

    texts = _dealt(bodies)

    async def client(http: httpx.AsyncClient) -> None:
        while (begun := time.perf_counter()) < end:
            try:
                answer = await http.post("/api/invert", json=next(texts))
                status = str(answer.status_code)
            except httpx.HTTPError as error:
                status = type(error).__name__
            ended = time.perf_counter()
            if begin <= ended <= end:
                load.statuses[status] += 1
                load.latencies.append(ended - begun)
            if status == "503":
                await asyncio.sleep(0.5)

    def watch() -> None:
        # In a thread of its own: among the clients it would wait for them, which is not the server's doing.
        while (begun := time.perf_counter()) < end:
            with urlopen(f"{address}/health") as answer:
                answer.read()
            if (ended := time.perf_counter()) >= begin:
                load.health.append(ended - begun)
            time.sleep(_BETWEEN_HEALTH)

    async def weigh() -> None:
        while (now := time.perf_counter()) < end:
            if now >= begin:
                load.memory.append(memory.memory_info().rss)
            await asyncio.sleep(_BETWEEN_HEALTH)

    address = f"http://127.0.0.1:{port}"
    limits = httpx.Limits(max_connections=options.clients, max_keepalive_connections=options.clients)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=120) as http:
        await asyncio.gather(asyncio.to_thread(watch), weigh(), *(client(http) for _ in range(options.clients)))
    return load


def _dealt(bodies: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the requests in random order, one deck after another: a server's luck with long texts does not count."""
    order = random.Random(0)
    while True:
        yield from order.sample(bodies, len(bodies))


def make_model(folder: Path, *, quick: bool) -> None:
    """Write an inverter of the real shape with random weights."""
    import torch

    from steps import minilm_recipe
    from texts import CANVAS_LENGTH
    from unembed.canvas import CanvasVocabulary, tokenizer_hash
    from unembed.checkpoint import CheckpointInfo
    from unembed.config import NoiseConfig
    from unembed.encoders import known_tokenizer, load_encoder
    from unembed.inverter import Inverter
    from unembed.model import ConditionalMDLM

    encoder = load_encoder(device="cpu")
    vocabulary = CanvasVocabulary.of(known_tokenizer(encoder))
    config = minilm_recipe(quick=quick).model.resolve(
        embedding_dim=encoder.description.dim, vocabulary_size=vocabulary.size, canvas_length=CANVAS_LENGTH
    )
    torch.manual_seed(0)
    model = ConditionalMDLM(config, vocabulary)
    info = CheckpointInfo(
        encoder=encoder.description,
        model=model.config,
        noise=NoiseConfig(),
        special_ids=vocabulary.special,
        tokenizer_hash=tokenizer_hash(known_tokenizer(encoder)),
        training_rows=0,
    )
    Inverter(model, known_tokenizer(encoder), info).save_pretrained(folder)


def make_bodies(model: str, *, trained: bool) -> list[dict[str, Any]]:
    """Return the requests: the sentences of the web page, with their lengths where the model cannot guess them."""
    from tokenizers import Tokenizer

    stored = files("unembed").joinpath("server/examples.json").read_text(encoding="utf-8")
    texts = [example["text"] for example in json.loads(stored)["examples"]]
    if trained:
        return [{"text": text} for text in texts]
    tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
    return [{"text": text, "length": len(tokenizer.encode(text, add_special_tokens=False).ids)} for text in texts]


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def main() -> None:
    """Load both servers in turn, and compare."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("--model", help="a trained inverter (a folder), in place of random weights")
    parser.add_argument("--clients", type=int, default=32, help="clients at a time (default: %(default)s)")
    parser.add_argument("--duration", type=float, default=60.0, help="seconds for each server (default: %(default)s)")
    parser.add_argument("--workers", type=int, help="of unembed serve (default: its own)")
    parser.add_argument("--threads", type=int, help="of unembed serve (default: its own)")
    parser.add_argument("--plain", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        serve_plainly(options.model, options.plain)
        return
    if options.quick:
        options.clients, options.duration, options.repetitions = 4, 2.0, 1
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or folder
        if not options.model:
            make_model(Path(folder), quick=options.quick)
        bodies = make_bodies(model, trained=bool(options.model))
        loads: dict[str, list[Load]] = {PLAIN: [], OURS: []}
        for repetition in range(options.repetitions):
            for name, of_this in loads.items():
                port = free_port()
                with running(_command(name, model, port, options), port) as process:
                    of_this.append(asyncio.run(measure(port, process, bodies, options)))
                told = f"{of_this[-1].throughput:.1f} texts/s, {dict(of_this[-1].statuses)}"
                print(f"  {repetition + 1}/{options.repetitions} {name}: {told}", file=sys.stderr, flush=True)
    finish(_result(loads, bodies, options), options)


def _command(name: str, model: str, port: int, options: argparse.Namespace) -> list[str]:
    if name == PLAIN:
        return [sys.executable, __file__, "--model", model, "--plain", str(port)]
    chosen = {"--workers": options.workers, "--threads": options.threads}
    own = [part for option, value in chosen.items() if value for part in (option, str(value))]
    return [sys.executable, "-m", "unembed", "serve", "--model", f"bench={model}", "--port", str(port), *own]


def _result(loads: dict[str, list[Load]], bodies: list[dict[str, Any]], options: argparse.Namespace) -> Result:
    rates = {name: [load.throughput for load in of_this] for name, of_this in loads.items()}
    ours = loads[OURS]
    gain = statistics.median(rates[OURS]) / max(statistics.median(rates[PLAIN]), 1e-9)
    return Result(
        title="Serving",
        compared="`unembed serve` against a server that embeds, decodes and embeds again within each request's handler,"
        " on the event loop (`serve_plainly` in `serving.py`). The same weights, texts and clients.",
        columns=[
            "server",
            "texts a second",
            "latency, median s",
            "latency, 95th percentile s",
            "/health, median ms",
            "/health, longest ms",
            "answers by status",
            "memory, MB",
            "memory, last quarter against first",
        ],
        rows=[_row(name, of_this) for name, of_this in loads.items()],
        figures=[
            Figure(f"Texts a second, against {PLAIN}", gain, _THROUGHPUT),
            Figure("Errors other than 503", float(sum(load.errors for load in ours)), 0.0, at_least=False),
            Figure(
                "Longest that /health took, in seconds",
                max((seconds for load in ours for seconds in load.health), default=float("inf")),
                _HEALTH_SECONDS,
                at_least=False,
            ),
            Figure(
                "Memory of the last quarter of the time against the first",
                max(load.growth for load in ours),
                _MEMORY,
                at_least=False,
            ),
        ],
        repetitions=options.repetitions,
        sizes={
            "clients": options.clients,
            "seconds for each server": options.duration,
            "texts": f"{len(bodies)} example sentences of the page",
            "n": ", ".join(
                f"{sum(load.statuses.total() for load in of_this)} ({name})" for name, of_this in loads.items()
            ),
            "model": "trained" if options.model else "random weights, lengths given",
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "workers": options.workers or "default",
            "threads": options.threads or "default",
        },
        times={f"{name}, texts a second": each for name, each in rates.items()},
        notes=["The clients run on the same cores as the server."],
    )


def _row(name: str, loads: list[Load]) -> list[str]:
    latencies = sorted(seconds for load in loads for seconds in load.latencies) or [float("inf")]
    health = [1000 * seconds for load in loads for seconds in load.health] or [float("inf")]
    statuses: Counter[str] = sum((load.statuses for load in loads), Counter())
    return [
        name,
        f"{statistics.median(load.throughput for load in loads):.1f}",
        f"{statistics.median(latencies):.2f}",
        f"{latencies[int(0.95 * (len(latencies) - 1))]:.2f}",
        f"{statistics.median(health):.0f}",
        f"{max(health):.0f}",
        ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())) or "none",
        f"{statistics.median(size for load in loads for size in load.memory) / 1e6:,.0f}",
        f"{max(load.growth for load in loads):.3f}",
    ]


if __name__ == "__main__":
    main()
