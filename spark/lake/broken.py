"""A data file of the lake that is missing, or is no Parquet file any more: whose it is, and the way back."""

from __future__ import annotations

import re
from urllib.parse import unquote

from contract.steps import SNAPSHOT_TABLE
from spark.errors import chain
from spark.lake.stopped import Name

# What Spark and Delta say of it; a full disk and missing rights are told apart before (failures.py).
BROKEN = (
    r"FAILED_READ_FILE|DELTA_FILE_NOT_FOUND|is not a Parquet file|FileNotFoundException: File|CANNOT_READ_FILE_FOOTER|"
    r"Cannot seek after EOF"
)
FILE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?/[^\s'\"`]+?\.(?:parquet|bin)\b")


def broken_file(error: BaseException) -> str | None:
    """The path of the file that could not be read, empty where nothing names it; None for another failure."""
    told = "\n".join(chain(error))
    if not re.search(BROKEN, told):
        return None
    found = FILE.search(told)
    return unquote(found[0]) if found else ""


def broken_within(path: str, error: BaseException) -> str | None:
    """The file below the path that could not be read; None where the failure is another, or about other files."""
    file = broken_file(error)
    return file if file is not None and _inside(file, path) else None


def broken_table(name: Name, path: str, error: BaseException) -> str | None:
    """Why the table at the path cannot be read, and the way back; None where that is not why."""
    if (file := broken_within(path, error)) is None:
        return None
    return (
        f"{'.'.join(name)}: a file of the lake's table is missing or cannot be read ({file}). Put it back from a copy, "
        f"or {SNAPSHOT_TABLE}, which makes it anew"
    )


def _inside(file: str, path: str) -> bool:
    """Spark names a folder's files with one, two or three slashes."""
    bare = [re.sub(r"^file:/*", "/", text) for text in (file, unquote(path))]
    return bare[0].startswith(bare[1].rstrip("/") + "/")
