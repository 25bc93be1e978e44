"""The columns that were renamed in the lake's tables, as a file of the lake has them.

A change has its columns by the names of its own time: `_changes` says with each by which version of the table's schema
it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

FILE = "_evolution.json"


class Rename(BaseModel):
    """Of one statement, at `seq`. `version`: the table's first shape with the new names; `columns`: old and new."""

    db: str
    table: str
    version: int
    seq: tuple[int, int, int]
    columns: tuple[tuple[str, str], ...]


class Spelling(BaseModel):
    """A column's name in changes, where it differs from another one of the same column by small and capital letters."""

    model_config = ConfigDict(frozen=True)

    db: str
    table: str
    name: str


def spellings(text: str | None, db: str, table: str) -> list[str]:
    """Of a table's columns. `text`: as for `parse`, and raises as that does."""
    known = [Spelling.model_validate(one) for one in json.loads(text).get("spellings", ())] if text else []
    return [one.name for one in known if (one.db, one.table) == (db, table)]


def parse(text: str | None) -> list[Rename]:
    """`text`: of the file, None where there is none. Raises ValueError."""
    return [Rename.model_validate(one) for one in json.loads(text).get("renames", ())] if text else []


def of(known: Iterable[Rename], db: str, table: str) -> list[Rename]:
    """Those of a table, the oldest first."""
    return sorted((one for one in known if (one.db, one.table) == (db, table)), key=lambda one: one.version)
