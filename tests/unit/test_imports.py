"""Importing unembed is cheap, and every public name is there. The order of imports is checked by lint-imports."""

import subprocess
import sys

import pytest


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
    assert dir(unembed) == sorted(unembed.__all__)


def test_a_public_name_that_does_not_exist_is_an_attribute_error():
    import unembed

    with pytest.raises(AttributeError, match="no attribute 'Inventer'"):
        _ = unembed.Inventer
