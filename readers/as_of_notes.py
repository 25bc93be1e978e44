"""What is to be known of the times that a statement spells out in `orders_as_of('2026-11-22 10:42:00+00')`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from contract import altered, mended
from readers.past import literal


def times(connection: Any, as_of: str, sql: str) -> Iterator[tuple[str, datetime]]:
    """Each as it is written and as it is meant. `as_of`: the table's function; `connection`: DuckDB's."""
    for text in re.findall(rf"(?i)\b{re.escape(as_of)}\"?\s*\(\s*'([^']*)'", sql):
        [(moment,)] = connection.execute(f"SELECT TRY_CAST({literal(text)} AS TIMESTAMPTZ)").fetchall()
        if moment is not None:
            yield text, moment.astimezone(UTC)


def later(as_of: str, text: str, moment: datetime, complete: datetime) -> Iterator[str]:
    """Of a time that the lake, which is complete up to `complete`, has not come to."""
    if moment > complete:
        told = complete.isoformat(timespec="seconds")
        yield f"{as_of}: the lake is complete up to {told}, and what came until {text} may be missing"


def told_since(connection: Any, rows: Any, column: str, told: Callable[[int], str]) -> Iterator[str]:
    """`rows`: a stream. What is `told` of how many differ in the column, where there are any."""
    connection.register("_stream", rows)
    [(count,)] = connection.execute(f"SELECT count(DISTINCT {column}) FROM _stream").fetchall()
    connection.unregister("_stream")
    if count:
        yield told(count)


def mended_after(name: str, db: str, moment: datetime) -> str:
    """Which rows of `_repairs` these are, in delta-rs' SQL."""
    at = literal(moment.isoformat())
    return f"tbl = {literal(name)} AND db = {literal(db)} AND source = {literal(mended.SOURCE)} AND at > TIMESTAMP {at}"


def altered_after(table: str, db: str, moment: datetime) -> str:
    """Which rows of `_schema_changes` these are."""
    at = literal(moment.isoformat())
    return f"tbl = {literal(table)} AND db = {literal(db)} AND {altered.WHICH} AND ts > TIMESTAMP {at}"
