"""User-facing errors, each with its remedy. Knows nothing of the rest of the package.

A mistake that a user can fix raises one of these: what is wrong, what was expected, what to do. A parameter is named
in backticks, with its value or without (``Try `device="cpu"`.``): the command line turns it into its flag, prints the
error without a traceback and exits with 2. Anything else that escapes is a bug of ours.
"""

import errno
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec


class UnembedError(Exception):
    """A mistake that the user can fix: the problem, and what to do about it."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}\n{remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class ConfigError(UnembedError):
    """A configuration that cannot be read, or that contradicts itself."""


class CorpusError(UnembedError):
    """Text that is missing, empty, or not text."""


class EncoderError(UnembedError):
    """An encoder that is unknown, cannot be loaded, or does not give what was asked of it."""


class StoreError(UnembedError):
    """A store that is missing, half written, corrupt, or made for something else."""


class VectorError(UnembedError):
    """Vectors that no inverter can read: wrong dimension, not finite, or zero."""


class AlignmentError(UnembedError):
    """Two embedding spaces between which no map can be found that deserves trust."""


class CheckpointError(UnembedError):
    """A checkpoint that is missing, truncated, foreign, or made for something else."""


class TrainingError(UnembedError):
    """A training run that cannot start, go on, or be resumed as asked."""


class ClusterError(UnembedError):
    """A Ray cluster that cannot be reached, or that fails."""


class DiskFullError(UnembedError):
    """The disk is full; what was written before is intact."""


class MissingExtraError(UnembedError):
    """An optional dependency is not installed."""


def require_extra(extra: str, *modules: str) -> None:
    """Raise with the exact command to type when a module of an optional dependency is not installed."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f"This needs {', '.join(missing)}, which is not installed.", f"Run: pip install 'unembed[{extra}]'"
        )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest known word, or the list of all when none is near."""
    options = sorted(known)
    near = get_close_matches(word, options, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"expected one of: {', '.join(options)}"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its kind when it has none."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def from_os_error(error: OSError, doing: str) -> UnembedError:
    """Turn an operating-system error into one that says what failed and how to continue."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(
            f"The disk is full while {doing}.",
            "Nothing finished before is lost. Free some space and run the same command again to continue.",
        )
    return UnembedError(f"Failed while {doing}: {error.strerror or error}.", "Check the path and its permissions.")
