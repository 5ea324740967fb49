"""Runs every benchmark, each in a process of its own, and writes ``results.md`` and ``results.json``.

Figures are ratios within one run, so they mean something on any machine that is otherwise idle; a busy one is said to
be busy. A missed target is reported and is no failure; a benchmark that does not run is one. With ``--only`` and
``--output``, the page keeps what it had of the others, each with its date.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measure import Figure, Result, format_section

FOLDER = Path(__file__).parent
NAMES = ("training", "peak", "embedding", "memory", "decoding", "words", "serving")
_IDLE = 0.5
_PACKAGES = ("torch", "sentence-transformers", "transformers", "numpy", "onnxruntime", "fastapi", "uvicorn")


def describe_machine() -> dict[str, Any]:
    """Return all that a reader needs to judge the figures."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "load before": round(os.getloadavg()[0], 2),
    }


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run(name: str, folder: Path, *options: str) -> dict[str, Any]:
    """Run one benchmark and return its result; its table goes to stdout, its progress to stderr."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    place = folder / f"{name}.json"
    begun = time.perf_counter()
    subprocess.run([sys.executable, str(FOLDER / f"{name}.py"), "--json", str(place), *options], check=True)
    values: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return values | {"seconds": round(time.perf_counter() - begun, 1)}


def format_page(machine: dict[str, Any], results: dict[str, dict[str, Any]], *, quick: bool) -> str:
    """Return ``results.md``."""
    lines = ["# Benchmarks", ""]
    if quick:
        lines += ["**A smoke run: these sizes are far too small for the figures to mean anything.**", ""]
    elif machine["load before"] > _IDLE:
        lines += [
            f"**The machine was busy (load {machine['load before']}) when this began. Repeat it on an idle one.**",
            "",
        ]
    lines += [
        "Within a benchmark the variants take turns (A B A B ...) after a warm-up, and the median of each counts; every"
        " single time is in `results.json`.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine.items()),
        "",
    ]
    for values in results.values():
        fields = {key: value for key, value in values.items() if key in Result.__dataclass_fields__}
        fields["figures"] = [Figure(**figure) for figure in fields["figures"]]
        lines.append(format_section(Result(**fields)))
    return "\n".join(lines)


def _earlier(output: Path, *, quick: bool) -> dict[str, dict[str, Any]]:
    """Return the results that are in the folder already; a smoke run keeps nothing, and is not kept."""
    place = output / "results.json"
    if quick or not place.is_file():
        return {}
    facts = json.loads(place.read_text(encoding="utf-8"))
    results: dict[str, dict[str, Any]] = facts["results"]
    return {} if facts["quick"] else results


def _given(options: argparse.Namespace, *names: str) -> list[str]:
    """Hand on those of these options that were given."""
    values = {name: getattr(options, name) for name in names}
    return [part for name, value in values.items() if value for part in (f"--{name}", value)]


def main() -> None:
    """Run what was asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that the scripts run, measures nothing")
    parser.add_argument("--output", type=Path, help="folder of the results (default: benchmarks/; not with --quick)")
    parser.add_argument("--only", choices=NAMES, nargs="+", default=NAMES, help="run only these")
    parser.add_argument("--corpus", help="real text for the embedding benchmark, in place of its word list")
    parser.add_argument("--model", help="a trained inverter for decoding and serving, in place of random weights")
    parser.add_argument("--texts", help="the texts that this inverter is to recover")
    options = parser.parse_args()
    quick = ["--quick"] * options.quick
    own = {
        "embedding": _given(options, "corpus"),
        "decoding": _given(options, "model", "texts"),
        "words": _given(options, "model", "texts"),
        "serving": _given(options, "model"),
    }
    partial = options.quick or set(options.only) != set(NAMES)
    output = options.output or (Path(tempfile.gettempdir()) / "unembed-benchmarks" if partial else FOLDER)
    output.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "benchmarks/run.py", *sys.argv[1:]])
    machine = describe_machine() | {"command": f"`{command}`"}
    with tempfile.TemporaryDirectory() as folder:
        measured = {"measured": machine["date"]}
        fresh = {name: run(name, Path(folder), *quick, *own.get(name, [])) | measured for name in options.only}
    every = _earlier(output, quick=options.quick) | fresh
    results = {name: every[name] for name in NAMES if name in every}
    (output / "results.md").write_text(format_page(machine, results, quick=options.quick), encoding="utf-8")
    facts = {"machine": machine, "quick": options.quick, "results": results}
    (output / "results.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {output / 'results.md'} and {output / 'results.json'}.", file=sys.stderr)


if __name__ == "__main__":
    main()
