"""Errors that a user can fix: what is wrong, and what to do."""

import errno

import pytest

from unembed import errors
from unembed.errors import (
    DiskFullError,
    MissingExtraError,
    UnembedError,
    did_you_mean,
    from_os_error,
    require_extra,
)


def test_an_error_keeps_problem_and_remedy_apart_and_prints_both():
    error = UnembedError("It broke.", "Fix it.")
    assert (error.problem, error.remedy) == ("It broke.", "Fix it.")
    assert str(error) == "It broke.\nFix it."
    assert str(UnembedError("It broke.")) == "It broke."


def test_all_errors_are_of_one_family():
    ours = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(ours) >= 10
    assert all(issubclass(error, UnembedError) for error in ours)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_or_quota_is_a_disk_full_error(number):
    error = from_os_error(OSError(number, "full"), "writing x")
    assert isinstance(error, DiskFullError)
    assert "writing x" in error.problem
    assert "again" in error.remedy


def test_any_other_system_error_says_what_was_being_done():
    error = from_os_error(OSError(errno.EACCES, "Permission denied"), "writing x")
    assert not isinstance(error, DiskFullError)
    assert error.problem == "Failed while writing x: Permission denied."
    assert error.remedy


def test_a_system_error_without_text_still_reads_as_a_sentence():
    assert from_os_error(OSError("odd"), "reading y").problem == "Failed while reading y: odd."


def test_a_missing_extra_names_the_modules_and_the_command():
    with pytest.raises(MissingExtraError, match="no_such_module") as caught:
        require_extra("serve", "json", "no_such_module")
    assert caught.value.remedy == "Run: pip install 'unembed[serve]'"
    assert "json" not in caught.value.problem


def test_an_installed_extra_passes():
    require_extra("encoders", "json", "os")


def test_a_near_word_is_proposed_and_a_far_one_gets_the_list():
    assert did_you_mean("lerning_rate", ["steps", "learning_rate"]) == "did you mean 'learning_rate'?"
    assert did_you_mean("xyz", ["steps", "batch"]) == "expected one of: batch, steps"
