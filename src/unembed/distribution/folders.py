"""Where relative paths start in a process of Ray: in the folder of the command, as without Ray."""

import os
from pathlib import Path


def enter(folder: Path) -> None:
    """Make ``folder`` the working folder, if this machine has it."""
    if folder.is_dir():
        os.chdir(folder)
