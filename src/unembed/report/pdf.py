"""The page of an audit as PDF, printed by a browser that is installed. Knows nothing of what is printed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from unembed.errors import UnembedError
from unembed.files import atomic_path

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_SECONDS = 60
_REMEDY = "Install Chromium or Chrome, or open the HTML page in a browser and print it to a file."


def find_browser() -> str:
    """Return the program that prints.

    Raises:
        UnembedError: there is none.
    """
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    raise UnembedError("A PDF needs Chromium or Chrome, and there is none.", _REMEDY)


def print_page(html: str, target: Path, *, private: bool = False) -> None:
    """Print a page into a file. The browser has a profile of its own, and the page asks for nothing."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="unembed-pdf-", ignore_cleanup_errors=True) as temporary:
        page, made = Path(temporary) / "page.html", Path(temporary) / "page.pdf"
        page.write_text(html, encoding="utf-8")
        flags = ["headless", "disable-gpu", "no-first-run", f"user-data-dir={temporary}/profile"]
        if hasattr(os, "getuid") and os.getuid() == 0:  # Chromium refuses to run as root inside its sandbox
            flags.append("no-sandbox")
        flags += ["no-pdf-header-footer", f"print-to-pdf={made}"]
        command = [browser, *(f"--{flag}" for flag in flags), page.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnembedError(f"{browser} could not print the report: {error}.", _REMEDY) from error
        if done.returncode or not made.is_file():
            raise UnembedError(f"{browser} could not print the report (exit code {done.returncode}).", _REMEDY)
        with atomic_path(target, private=private) as place:
            place.write_bytes(made.read_bytes())
