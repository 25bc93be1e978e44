"""Tables whose names differ by small and capital letters alone, which a server on Linux may have, are one name to
DuckDB: a statement has the one that it spells as the source does."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from contract.status import TableStatus


class SameNameError(Exception):
    """Which table of several is meant is not told."""


def meant(
    wanted: Sequence[TableStatus],
    tables: Sequence[TableStatus],
    names: Callable[[TableStatus], list[str]],
    words: Set[str],
) -> list[TableStatus]:
    """Those of the `wanted` that the statement means. `tables`: all; `names`: of the parts of a table's past;
    `words`: the names in the statement. Raises SameNameError."""

    def spelled(table: TableStatus) -> tuple[bool, bool]:
        return bool(words & {table.table, *names(table)}), table.db in words

    found = []
    for one in wanted:
        alike = sorted((other for other in tables if _name(other) == _name(one)), key=spelled)
        if len(alike) > 1 and (not spelled(alike[-1])[0] or spelled(alike[-1]) == spelled(alike[-2])):
            raise SameNameError(_told(alike))
        if alike[-1] is one:
            found.append(one)
    return found


def _name(table: TableStatus) -> tuple[str, str]:
    return table.db.lower(), table.table.lower()


def _told(alike: Sequence[TableStatus]) -> str:
    listed = " and ".join(sorted(f"{table.db}.{table.table}" for table in alike))
    return (
        f"the lake has {listed}, which are one name to DuckDB: spell the one that is meant with exactly these small "
        "and capital letters, and the other nowhere in the statement. What needs both takes a statement for each, or "
        "Spark or Polars, which read their folders"
    )
