"""Data flows one way: an import may only point to the left."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "unembed"
ORDER = [
    "_version",
    "errors",
    "files",
    "progress",
    "config",
    "corpus",
    "encoders",
    "store",
    "model",
    "training",
    "checkpoint",
    "engine",
    "decoding",
    "inverter",
    "evaluation",
    "connectors",
    "audit",
    "defences",
    "report",
    "server",
    "cli",
    "__main__",
]


def home(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_homes(path: Path) -> set[str]:
    homes = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "unembed":
            names = [node.module] if "." in node.module else [f"unembed.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "unembed"]
        else:
            continue
        homes |= {name.split(".")[1] for name in names if "." in name}
    return homes


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_an_import_only_points_to_the_left(path):
    if path == SOURCE / "__init__.py":
        return  # the public face looks at everything, when asked
    assert home(path) in ORDER, f"{home(path)} has no place in the order: add it"
    wrong = {other for other in imported_homes(path) if ORDER.index(other) > ORDER.index(home(path))}
    assert not wrong, f"{path.name} imports {wrong}, which come after {home(path)}"


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(option):
    code = (
        "import sys\nfrom unembed.cli import app\n"
        f"try: app(['{option}'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'numpy', 'datasets', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_public_name_can_be_imported():
    import unembed

    assert all(getattr(unembed, name) is not None for name in unembed.__all__)


def test_a_public_name_that_does_not_exist_is_an_attribute_error():
    import unembed

    with pytest.raises(AttributeError, match="no attribute 'Inventer'"):
        _ = unembed.Inventer
