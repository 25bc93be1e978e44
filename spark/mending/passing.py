"""The tables of a repair or a backfill, one after the other: what one cannot have keeps no other from its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from spark.errors import LakeError, TableError
from spark.mending.choice import Name, tell

Staged = TypeVar("Staged")


def each(names: Collection[Name], stage: Callable[[Name], Staged]) -> tuple[dict[Name, Staged], dict[str, str]]:
    """What `stage` gave for each table, and for those that were passed by, by `db.table`, why. Raises what `stage`
    raised where it was no table's alone, and then tells which are staged already; LakeError where no table was."""
    staged, refused = dict[Name, Staged](), dict[str, str]()
    for name in names:
        try:
            staged[name] = stage(name)
        except TableError as error:
            if len(names) == 1:
                raise
            tell(f"passed by: {error}")
            refused[".".join(name)] = str(error)
        except Exception:
            if staged:  # no report names them
                tell(f"staged already, for the next compaction: {', '.join(map('.'.join, staged))}")
            raise
    if not staged:
        raise LakeError("; ".join(refused.values()))
    return staged, refused
