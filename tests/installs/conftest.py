"""Empty environments, each with the built wheel and one set of extras. They share one installation of torch."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TORCH = os.environ.get("TORCH", "torch==2.13.0")
"""As in the Makefile."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it said where."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Environment:
    """A virtual environment with unembed installed, and a folder to work in."""

    root: Path
    work: Path

    @property
    def python(self) -> Path:
        return self.root / "bin" / "python"

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start ``unembed`` as a user would: from another folder, without the checkout on the path."""
        command = [self.root / "bin" / "unembed", *map(str, arguments)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.work, env=clean_environment(), text=True, stdout=pipe, stderr=pipe)

    def run(self, *arguments: object) -> Ended:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=300)
        return Ended(process.returncode, out, err)

    def run_python(self, code: str) -> str:
        return run(self.python, "-c", code, cwd=self.work)

    def works(self, *arguments: object) -> str:
        """Run ``unembed``, which must succeed, and return what it printed."""
        ended = self.run(*arguments)
        assert ended.code == 0, ended.err
        return ended.out

    def lacks(self, extra: str, *arguments: object) -> None:
        """Run ``unembed``, which must end with the one line to type for a missing extra."""
        ended = self.run(*arguments)
        assert ended.code == 2, ended.err
        assert ended.err.splitlines()[-1] == f"Run: pip install 'unembed[{extra}]'"
        assert "Traceback" not in ended.err


def clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"HF_HUB_OFFLINE": "1"}


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make_venv(root: Path) -> Path:
    """Make an empty virtual environment and return its folder of packages."""
    run(sys.executable, "-m", "venv", "--clear", root)
    (packages,) = root.glob("lib/python*/site-packages")
    return packages


def install(root: Path, *requirements: object) -> None:
    run(root / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements)


@pytest.fixture(scope="session")
def torch_packages(request: pytest.FixtureRequest) -> Path:
    """Packages of an environment that holds torch and nothing else; kept from one run to the next."""
    root = request.config.cache.mkdir("installs") / TORCH
    ready = root / "ready"
    if not ready.is_file():
        make_venv(root)
        install(root, TORCH)
        ready.touch()
    (packages,) = root.glob("lib/python*/site-packages")
    return packages


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, CHECKOUT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def make_environment(wheel: Path, torch_packages: Path, tmp_path_factory: pytest.TempPathFactory):
    """Installs the wheel with some extras, and packages of this checkout, into an environment of its own."""

    def make(*extras: str, packages: Sequence[str] = ()) -> Environment:
        root = tmp_path_factory.mktemp("-".join(extras) or "none") / "venv"
        # pip and Python look there after the environment's own packages.
        (make_venv(root) / "torch.pth").write_text(f"{torch_packages}\n")
        own = [CHECKOUT / "packages" / name for name in packages]
        install(root, f"{wheel}[{','.join(extras)}]" if extras else wheel, *own)
        return Environment(root, tmp_path_factory.mktemp("work"))

    return make
