"""The notebook of the examples runs from its first cell to its last, in a kernel of its own."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "audit.ipynb"


def test_the_notebook_runs_and_shows_the_audit_as_a_table(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit it without outputs"
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = "".join(output["data"].get("text/html", "") for output in outputs if "data" in output)
    assert "<table>" in shown
    assert "blind, measured" in shown
    said = "".join(output["data"]["text/plain"] for output in outputs if "data" in output)
    assert "(8, 384)" in said
    assert "'report.sarif'" in said
