"""Who started a job, also where the system has no name for the user, as in a container of `--user 1234`."""

from __future__ import annotations

import getpass
import os

import pytest

from contract.asker import asker


@pytest.mark.parametrize("error", [KeyError, OSError])  # of Python 3.11, and of 3.13
def test_a_user_without_a_name_is_told_by_the_number(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def nobody() -> str:
        raise error("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert asker() == f"user {os.getuid()}"
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert asker() == "ada"
