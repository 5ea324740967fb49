"""The benchmarks run; what they measure is not for tests, which share their machine."""

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"


def test_a_smoke_run_of_the_training_benchmarks_writes_its_page(tmp_path):
    command = [sys.executable, str(RUN), "--quick", "--only", "training", "peak", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "A smoke run" in (tmp_path / "results.md").read_text()
    assert set(json.loads((tmp_path / "results.json").read_text())["results"]) == {"training", "peak"}
