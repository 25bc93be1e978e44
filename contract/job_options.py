"""How a job's options get to it: as words of its command, but for the keys of rows, which go in a file.

Of keys there may be more than a command's word can hold (128 KiB on Linux), and they may be personal data, which a list
of the machine's processes is not to show. The file is its owner's alone, and goes once the job has read it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILED = ("keys",)  # of the jobs' options
BESIDE = "{}-file"


class Given(NamedTuple):
    """`words`: of the job's command. `files`: what they name, for who starts the job to remove where it does not."""

    words: list[str]
    files: list[Path]


def given(options: Mapping[str, str]) -> Given:
    """Empty ones are left out. Raises OSError where there is no room for a file."""
    found = Given([], [])
    for name, value in options.items():
        if value and name in FILED:
            found.files.append(_file(value))
            found.words.append(f"--{BESIDE.format(name)}={found.files[-1]}")
        elif value:
            found.words.append(f"--{name}={value}")  # as one word: a value may begin with a dash
    return found


def forget(files: list[Path]) -> None:
    """Removes those that are left."""
    for file in files:
        file.unlink(missing_ok=True)


def taken(path: str) -> str:
    """What is in the file, which is gone then. Raises OSError."""
    text = Path(path).read_text()
    forget([Path(path)])
    return text


def _file(text: str) -> Path:
    number, path = tempfile.mkstemp(prefix="headrace-")  # nobody else may read it
    with os.fdopen(number, "w") as out:
        out.write(text)
    return Path(path)
