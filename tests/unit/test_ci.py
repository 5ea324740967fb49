"""What runs in other people's CI: the GitHub Action and the container's recipe."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import stores

ROOT = Path(__file__).parents[2]
SENTENCES = [f"the {who} {what}." for who in ("king", "cat", "dog", "girl") for what in ("sleeps", "runs", "reads")]
STUB = '#!/bin/sh\nprintf "%s\\n" "$@" > "$STUB_ARGUMENTS"\nexit $STUB_CODE\n'


def run_action(tmp_path, path, **inputs):
    """Run the script of the action; return how it ended, its outputs and the summary."""
    output, summary = tmp_path / "outputs", tmp_path / "summary.md"
    summary.touch()
    usual = {"SOURCE": "npy:x.npy", "SIZE": "8", "GUIDED": "0", "FAIL_OVER": "0.1", "OUTPUT": str(tmp_path / "report")}
    environment = os.environ | usual | {"PATH": f"{path}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    environment |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)} | inputs
    script = ROOT / "examples" / "audit-action.sh"
    done = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True, check=False)
    return done, output.read_text(), summary.read_text()


@pytest.fixture
def stub(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "unembed").write_text(STUB)
    (folder / "unembed").chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("code", "verdict", "ends"),
    [(0, "below", 0), (3, "above", 3), (4, "undecided", 4), (5, "worse", 5), (2, "failed", 2)],
)
def test_the_exit_code_of_an_audit_is_the_verdict_of_the_action(stub, tmp_path, code, verdict, ends):
    done, outputs, _ = run_action(tmp_path, stub, STUB_CODE=str(code), STUB_ARGUMENTS=str(tmp_path / "arguments"))
    assert (done.returncode, outputs) == (ends, f"verdict={verdict}\n")


def test_an_undecided_audit_need_not_fail_the_job(stub, tmp_path):
    inputs = {"STUB_CODE": "4", "STUB_ARGUMENTS": str(tmp_path / "arguments"), "FAIL_IF_UNDECIDED": "false"}
    assert run_action(tmp_path, stub, **inputs)[0].returncode == 0


def test_inputs_are_arguments_and_never_commands(stub, tmp_path):
    inputs = {
        "SOURCE": "$(touch owned); `touch owned`",
        "ARGUMENTS": "--column=a b\n\n--id-column=$(touch owned)",
        "BASELINE": "old report.json",
    }
    run_action(tmp_path, stub, STUB_CODE="0", STUB_ARGUMENTS=str(tmp_path / "arguments"), **inputs)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:2] == ["audit", "$(touch owned); `touch owned`"]
    assert {"--column=a b", "--id-column=$(touch owned)", "old report.json"} <= set(arguments)
    assert not list(tmp_path.rglob("owned"))


def test_the_action_audits_a_store(fake_encoder, tiny_checkpoint, tmp_path):
    uri = stores.jsonl(tmp_path / "store", fake_encoder.encode(SENTENCES), SENTENCES)
    arguments = f"--model={tiny_checkpoint}\n--bootstrap=20\n--device=cpu"
    done, outputs, summary = run_action(
        tmp_path, Path(sys.executable).parent, SOURCE=uri, FAIL_OVER="1.0", ARGUMENTS=arguments
    )
    assert done.returncode == 0, done.stderr
    assert outputs == "verdict=below\n"
    assert summary.startswith("# What 12 stored vectors give away")
    written = {path.name for path in (tmp_path / "report").iterdir()}
    assert written == {"report.html", "report.json", "report.md", "report.sarif", "junit.xml"}


def test_the_action_is_valid_and_passes_every_input_on():
    check = [str(Path(sys.executable).parent / "check-jsonschema"), "--builtin-schema", "vendor.github-actions"]
    done = subprocess.run([*check, str(ROOT / "action.yml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    used = str(action["runs"]) + str(action["outputs"])
    assert all(f"inputs.{name}" in used for name in action["inputs"])
    assert not any("inputs." in step.get("run", "") for step in action["runs"]["steps"])


def test_the_recipe_of_the_container_has_no_fault_that_hadolint_knows():
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(hadolint), str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_everything_that_the_container_copies_is_there_and_not_ignored():
    recipe = (ROOT / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        name
        for line in recipe.splitlines()
        if line.startswith("COPY") and "--from" not in line
        for name in line.split()[1:-1]
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
