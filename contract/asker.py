"""Who started a command or a job, for the lake's audit tables."""

from __future__ import annotations

import getpass
import os


def asker() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number that no list of users has
        return f"user {os.getuid()}"
