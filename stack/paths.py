"""Where things are: the checkout, the cache of downloads, the run data, the virtual environment's programs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from stack.errors import StackError

CHECKOUT = Path(__file__).resolve().parent.parent


def data() -> Path:
    """The folder of the servers' data when no other is named: `.headrace` of the checkout."""
    return CHECKOUT / ".headrace"


def program(name: str) -> Path:
    """A program of the virtual environment that runs this. Raises StackError where it is not installed."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise StackError(f"{path} is missing", "Run `make install` and start again with .venv/bin/python.")
    return path


def writable_folder(path: Path, option: str) -> Path:
    """Makes the folder (mode 700 where new) and proves that files can be written in it.

    Raises StackError naming `option`, which changes the folder.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".probe-", dir=path) as probe:
            probe.write(b"x")
    except OSError as error:
        raise StackError(
            f"the folder {path} cannot be written: {error.strerror or error}",
            f"Mend its permissions, free some space, or name another folder with {option}.",
        ) from None
    return path
