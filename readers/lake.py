"""A pipeline's lake as a DuckDB database.

A statement sees, by names such as `shop.orders` (or `orders`, where no other database of the pipeline has one): the
table; `orders_history`, every version of its rows; `orders_changes`, what each transaction did;
`orders_as_of('2026-11-22 10:42:00+00')`, the table at that time; and what the jobs noted, as `_differences`. Of a table
of which the lake keeps the changes alone (the pipeline file's `keys`) it sees `clicks_changes`, and no more. Where the
database has a table `orders_history` itself, the versions of `orders` are `_orders_history`. A database whose name
DuckDB keeps for itself, such as `system`, is `_system`. delta-rs reads the files, with their deletion vectors; what a
statement names is loaded for it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
from deltalake.exceptions import DeltaError

from contract import names, no_lake, status, steps
from contract.pipeline import Pipeline
from readers import gone_file, listing, unknown_name
from readers.database import Database
from readers.errors import LakeReadError
from readers.status import read

BATCH = 1000  # rows
TRIES = 3


@dataclass(frozen=True)
class Answer:
    """`columns`: their names; `cursor`: of DuckDB's; `doubts`: of tables that the statement names, why they may not be
    what the source has; `tables`: which these are."""

    columns: Sequence[str]
    cursor: Any
    doubts: Sequence[str] = ()
    tables: Sequence[str] = ()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """As they come. Raises LakeReadError."""
        while True:
            try:
                batch = self.cursor.fetchmany(BATCH)
            except duckdb.Error as error:
                raise LakeReadError(_said(error)) from None
            except (OverflowError, ValueError) as error:  # an interval of a million years, a date that Python has not
                raise LakeReadError(f"a value is outside what can be shown: {error}; cast it to VARCHAR") from None
            if not batch:
                return
            yield from batch


def query(pipeline: Pipeline, sql: str) -> Answer:
    """What a statement asks for. Raises LakeReadError; PipelineFileError of a pipeline that feeds no lake, and has
    none from before."""
    for _ in range(TRIES):
        found = _status(pipeline)
        answer = _answer(pipeline, found, sql)
        # What a compaction did while the rows were looked up may speak against them.
        if not answer.tables or _against(_status(pipeline), answer.tables) == _against(found, answer.tables):
            return answer
    raise LakeReadError(f"{names.lake_root(pipeline)}: how its tables stand changed at each try: ask again")


def _status(pipeline: Pipeline) -> status.LakeStatus:
    try:
        found = read(pipeline)
    except (status.StatusFormatError, OSError, ValueError) as error:
        raise LakeReadError(str(error)) from None
    if found is None:
        no_lake.refuse(pipeline)
        raise LakeReadError(f"{names.lake_root(pipeline)} has no lake yet: {steps.first_snapshot(pipeline)}")
    if found.pipeline != pipeline.name:
        raise LakeReadError(
            f"{names.lake_root(pipeline)} is the lake of the pipeline {found.pipeline}, not of {pipeline.name}: "
            f"correct lake.path or name in {pipeline.path}"
        )
    return found


def _against(found: status.LakeStatus, names: Sequence[str]) -> list[Any]:
    """What speaks against these tables. And of which snapshot they are: one that was ahead may be so no more."""
    tables = [found.tables.get(name) for name in names]
    return [found.refused, *((table.doubts(), table.snapshot) if table else None for table in tables)]


def _answer(pipeline: Pipeline, found: status.LakeStatus, sql: str) -> Answer:
    try:
        database = Database(pipeline, found)
    except duckdb.Error as error:  # a database may have any name
        raise LakeReadError(str(error)) from None
    if listing.asked(sql):
        return Answer([*listing.COLUMNS], database.connection.execute(listing.query(database.shown())))
    doubts: list[str] = []
    try:
        if not _asks(sql):
            raise LakeReadError("one query is wanted, and nothing that writes: the lake is not written from here")
        doubts = database.load(sql)
        cursor: Any = database.connection.execute(sql)
    except (DeltaError, OSError) as error:
        told = gone_file.told(str(error)) or _first_line(error)
        raise LakeReadError(f"{names.lake_root(pipeline)} cannot be read: {told}") from None
    except duckdb.Error as error:
        if gone := gone_file.told(str(error)):
            raise LakeReadError(f"{names.lake_root(pipeline)} cannot be read: {gone}") from None
        told = _told(database, _said(error)) + unknown_name.hint(str(error), sql)
        raise LakeReadError(told + "".join(_of_columns(told, doubts))) from None
    return Answer([column[0] for column in cursor.description], cursor, doubts, database.asked)


def _asks(sql: str) -> bool:
    """Whether it is one query. A PIVOT that finds its columns is several statements to DuckDB, and so is what writes
    its rows somewhere, which can be no part of a query."""
    found = [one.type for one in duckdb.extract_statements(sql)]
    if found != [duckdb.StatementType.MULTI]:
        return found == [duckdb.StatementType.SELECT]
    try:
        inside = sql.rstrip("; \n")
        return len(duckdb.extract_statements(f"FROM ({inside}\n)")) == 1
    except duckdb.Error:
        return False


def _told(database: Database, message: str) -> str:
    known = [f"{database.schemas[table.db]}.{table.table}" for table in database.tables.values()]
    return unknown_name.told(message, database.pipeline, known, database.parts(), database.without_rows())


def _of_columns(told: str, doubts: Sequence[str]) -> Iterator[str]:
    """A column that the source has, and the lake not yet: a table's doubt says so."""
    if told.startswith("Binder Error: Referenced column"):
        yield from (f"\nnote: {doubt}" for doubt in doubts)


def _said(error: duckdb.Error) -> str:
    """What a view refuses in our words DuckDB calls an invalid input."""
    return str(error).removeprefix("Invalid Input Error: ")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
