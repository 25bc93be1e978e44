"""A Delta table's rows, read by delta-rs."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable, QueryBuilder


def stream(path: str, columns: str = "*", where: str = "true", options: dict[str, str] | None = None) -> Any:
    """The rows of a Delta table as a stream of Arrow's, whatever its deletion vectors. `options`: of its store."""
    table = DeltaTable(path, storage_options=options)
    return QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t WHERE {where}")
