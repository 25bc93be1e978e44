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

import re
import tempfile
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from contract import breaks, lost_changes, names, renames, status, steps
from contract.breaks import Break
from contract.pipeline import Pipeline
from contract.pipeline_keys import told_of
from contract.sequence import FIELDS
from readers import as_of_notes, gone_file, kept_history, listing, noted, same_names, store, unknown_name
from readers.past import MOMENT, Past, behind, leaving, literal, parts, quoted
from readers.status import read

OWN = ("_seq", "_ts")
RAW = "_headrace"  # the schema of what the views are made from
TAKEN = ("memory", "temp", "system", "pg_catalog", "information_schema")  # catalogs and schemas of DuckDB's own
BATCH = 1000  # rows
CHANGES = "_changes"
PAST = ("_history", CHANGES, "_as_of")


class LakeReadError(Exception):
    """The lake cannot be read so: what is wrong and what to do."""


def stream(path: str, columns: str = "*", where: str = "true", options: dict[str, str] | None = None) -> Any:
    """The rows of a Delta table as a stream of Arrow's, whatever its deletion vectors. `options`: of its store."""
    table = DeltaTable(path, storage_options=options)
    return QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t WHERE {where}")


@dataclass(frozen=True)
class Answer:
    """`columns`: their names; `cursor`: of DuckDB's; `doubts`: of tables that the statement names, why they may not be
    what the source has."""

    columns: Sequence[str]
    cursor: Any
    doubts: Sequence[str] = ()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """As they come. Raises LakeReadError."""
        while True:
            try:
                batch = self.cursor.fetchmany(BATCH)
            except duckdb.Error as error:
                raise LakeReadError(str(error)) from None
            if not batch:
                return
            yield from batch


def query(pipeline: Pipeline, sql: str) -> Answer:
    """What a statement asks for. Raises LakeReadError."""
    try:
        found = read(pipeline)
    except (status.StatusFormatError, OSError, ValueError) as error:
        raise LakeReadError(str(error)) from None
    if found is None:
        raise LakeReadError(f"{names.lake_root(pipeline)} has no lake yet: {steps.compaction(pipeline)}")
    try:
        database = _Database(pipeline, found)
    except duckdb.Error as error:  # a database may have any name
        raise LakeReadError(str(error)) from None
    if listing.asked(sql):
        return Answer([*listing.COLUMNS], database.connection.execute(listing.query(database.shown())))
    try:
        if [one.type for one in duckdb.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
            raise LakeReadError("one query is wanted, and nothing that writes: the lake is not written from here")
        doubts = database.load(sql)
        cursor: Any = database.connection.execute(sql)
    except (DeltaError, OSError) as error:
        told = gone_file.told(str(error)) or _first_line(error)
        raise LakeReadError(f"{names.lake_root(pipeline)} cannot be read: {told}") from None
    except duckdb.Error as error:
        if gone := gone_file.told(str(error)):
            raise LakeReadError(f"{names.lake_root(pipeline)} cannot be read: {gone}") from None
        raise LakeReadError(_told(database, str(error)) + unknown_name.hint(str(error), sql)) from None
    return Answer([column[0] for column in cursor.description], cursor, doubts)


def _told(database: _Database, message: str) -> str:
    known = [f"{_schema(table.db)}.{table.table}" for table in database.tables.values()]
    return unknown_name.told(message, database.pipeline, known, database.parts(), database.without_rows())


def _schema(db: str) -> str:
    """Of a database's tables, as a statement names it."""
    return f"_{db}" if db.lower() in TAKEN else db


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


class _Database:
    def __init__(self, pipeline: Pipeline, found: status.LakeStatus) -> None:
        self.pipeline, self.tables, self.options = pipeline, found.tables, store.options(pipeline)
        self.since, self.refused = found.checkpoint.since if found.checkpoint else None, found.refused
        self.complete = datetime.fromtimestamp(found.checkpoint.ts_ms // 1000, UTC) if found.checkpoint else None
        self.taken: dict[str, set[str]] = {}
        for table in self.tables.values():
            self.taken.setdefault(table.db, set()).add(table.table.lower())
        self.connection = duckdb.connect()
        # What does not fit into memory is put aside there.
        self.connection.execute(f"SET temp_directory = {literal(tempfile.gettempdir())}")
        self.connection.execute("SET TimeZone = 'UTC'")
        for db in {RAW, *(_schema(table.db) for table in self.tables.values())}:
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(db)}")  # DuckDB has one named main

    def load(self, sql: str) -> list[str]:
        """Makes what the statement may name. Gives what speaks against these tables."""
        words = {word.lower() for word in re.findall(r'"(?:[^"]|"")+"|\w+', sql)}
        words |= {word.strip('"').replace('""', '"') for word in words}
        named = [
            (table, [name for name in self._names(table) if name.lower() in words]) for table in self.tables.values()
        ]
        asked = [table for table, past in named if past or table.table.lower() in words]
        try:
            asked = same_names.meant(asked, [*self.tables.values()], self._names, sql)
        except same_names.SameNameError as error:
            raise LakeReadError(str(error)) from None
        wanted = [(table, past) for table, past in named if table in asked]
        for table, past in wanted:
            if past or not table.changes_only:
                self._table(table)
            if past:
                self._past(table)
        self._noted(words)
        path = ",".join(quoted(db) for db in dict.fromkeys([*(_schema(table.db) for table, _ in wanted), RAW]))
        self.connection.execute(f"SET search_path = {literal(path)}")
        doubts = [self.refused] if self.refused and wanted else []
        doubts += [f"{table.db}.{table.table}: {doubt}" for table, _ in wanted for doubt in table.doubts()]
        return doubts + [told for table, past in wanted if past for told in self._of_times(table, past[-1], sql)]

    def _noted(self, words: Set[str]) -> None:
        taken = set[str]().union(*self.taken.values())
        for name, columns in noted.COLUMNS.items():
            shown, path = names.free(name, taken), f"{names.lake_root(self.pipeline)}/{name}"
            if shown in words and DeltaTable.is_deltatable(path, self.options):
                self._make(f"{quoted(RAW)}.{quoted(shown)}", "*", self._stream(path))
            elif shown in words:
                shape = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
                self.connection.execute(f"CREATE TABLE {quoted(RAW)}.{quoted(shown)} ({shape})")

    def _of_times(self, table: status.TableStatus, as_of: str, sql: str) -> Iterator[str]:
        """Of each time that the statement spells out: whether the lake has come to it, and what was mended since."""
        name, path = f"{table.db}.{table.table}", f"{names.lake_root(self.pipeline)}/{names.REPAIRS}"
        for text, moment in as_of_notes.times(self.connection, as_of, sql):
            if self.complete is not None:
                yield from as_of_notes.later(as_of, text, moment, self.complete)
            if DeltaTable.is_deltatable(path, self.options):
                repairs = self._stream(path, "key", as_of_notes.mended_after(name, table.db, moment))
                yield from as_of_notes.mended_since(self.connection, repairs, name, text)

    def parts(self) -> list[str]:
        """The names of all that a statement may say besides the tables themselves."""
        return [
            name
            for table in self.tables.values()
            for name, ending in zip(self._names(table), PAST, strict=True)
            if ending == CHANGES or not table.changes_only
        ]

    def shown(self) -> dict[str, str]:
        """All that a statement may name, and what it is."""
        told = dict[str, str]()
        for table in self.tables.values():
            db = _schema(table.db)
            name = f"{db}.{table.table}"
            past = {f"{db}.{part}": kind for part, kind in zip(self._names(table), listing.PARTS, strict=True)}
            changes = f"{db}.{self._names(table)[PAST.index(CHANGES)]}"
            told |= {changes: past[changes]} if table.changes_only else {name: listing.TABLE, **past}
        taken = set[str]().union(*self.taken.values())
        return told | {names.free(name, taken): listing.NOTE for name in noted.COLUMNS}

    def without_rows(self) -> dict[str, str]:
        """Why there is no table of these names, in lower case: the lake has the changes alone."""
        only = [table for table in self.tables.values() if table.changes_only]
        return {
            name.lower(): f"{told_of(f'{table.db}.{table.table}')}: ask for {self._names(table)[PAST.index(CHANGES)]}"
            for table in only
            for name in (table.table, *self._names(table))
        }

    def _names(self, table: status.TableStatus) -> list[str]:
        """Of the parts of the table's past."""
        return [names.free(f"{table.table}{ending}", self.taken[table.db]) for ending in PAST]

    def _now(self, table: status.TableStatus) -> str:
        """What has the table's columns, and its rows where there are any. None of MySQL's names ends with a blank."""
        if table.changes_only:
            return f"{quoted(RAW)}.{quoted(f'{table.db}.{table.table} ')}"
        return f"{quoted(_schema(table.db))}.{quoted(table.table)}"

    def _table(self, table: status.TableStatus) -> None:
        path = names.lake_table(self.pipeline, table.db, table.table)
        if table.changes_only:
            path = names.lake_shape(self.pipeline, table.db, table.table)
            if not DeltaTable.is_deltatable(path, self.options):
                why = table.stopped or f"{steps.compaction(self.pipeline)}, first"
                raise LakeReadError(f"the changes of {table.db}.{table.table} cannot be shown: {why}")
        elif table.version is None and table.stopped:
            raise LakeReadError(f"the lake has no rows of {table.db}.{table.table}: {table.stopped}")
        elif table.version is None:
            raise LakeReadError(
                f"the lake has no rows of {table.db}.{table.table} yet: {steps.snapshot(self.pipeline)}"
            )
        self._make(self._now(table), f"* EXCLUDE ({', '.join(OWN)})", self._stream(path))

    def _stream(self, path: str, columns: str = "*", where: str = "true") -> Any:
        return stream(path, columns, where, self.options)

    def _make(self, name: str, columns: str, rows: Any) -> None:
        self.connection.register("_stream", rows)
        self.connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM _stream")
        self.connection.unregister("_stream")

    def _past(self, table: status.TableStatus) -> None:
        name, now = f"{table.db}.{table.table}", self._now(table)
        raw, changes = f"{quoted(RAW)}.{quoted(name)}", f"{names.lake_root(self.pipeline)}/{names.CHANGES}"
        if not DeltaTable.is_deltatable(changes, self.options):
            raise LakeReadError(f"the lake has no changes yet: {name} has a past from its first one on")
        mine = f"tbl = {literal(name)} AND db = {literal(table.db)}"
        followed = store.small_file(self.pipeline, renames.FILE)
        renamed = renames.of(renames.parse(followed), table.db, table.table)
        broken = breaks.of(breaks.parse(followed), table.db, table.table)
        columns = "key, op, before, after, _seq, gtid, ts" + (", schema" if renamed or broken else "")
        counted = "max(ts) OVER (ORDER BY _seq ROWS UNBOUNDED PRECEDING) AS counted"
        ends = sum(one.ends for one in broken)
        parted = parts(broken, [self._ended(one, changes) for one in broken if one.ends])
        self._make(raw, f"*, {counted}, {parted}", self._stream(changes, columns, mine))
        kept = kept_history.read(self.pipeline).tables.get(name)  # behind the changes, since it is noted before they go
        if kept:
            self.connection.execute(f"DELETE FROM {raw} WHERE {leaving(kept.since, kept.gone)}")
        described = self.connection.execute(f"DESCRIBE {now}").fetchall()
        kinds = {str(column): str(kind) for column, kind, *_ in described}
        keys = self.connection.execute(
            f"SELECT DISTINCT json_keys(key) FROM {raw} WHERE op <> 't' AND part = {ends}"
        ).fetchall()
        if len(keys) > 1 and not table.changes_only:
            raise LakeReadError(f"{name}: its primary key changed meanwhile, rows before and after do not compare")
        spelled = renames.spellings(followed, table.db, table.table)
        past = Past(name, now, raw, kinds, keys[0][0] if keys else (), renamed, broken, spelled)
        versions, changed, at = (f"{quoted(_schema(table.db))}.{quoted(name)}" for name in self._names(table))
        self.connection.execute(f"CREATE VIEW {changed} AS {past.changes()}")
        if table.changes_only:
            return
        self.connection.execute(f"CREATE VIEW {versions} AS {past.history()}")
        no_past = f"has no past for now: {self.refused}" if self.refused else table.no_past()
        as_of = past.as_of(self._began(table, changes, kept.since if kept else None, broken), no_past)
        self.connection.execute(f"CREATE MACRO {at}({MOMENT}) AS TABLE {as_of}")

    def _ended(self, one: Break, changes: str) -> datetime | None:
        return datetime.fromtimestamp(one.ts_ms / 1000, UTC) if one.ts_ms else self._first(changes, behind(one.seq))

    def _began(
        self, table: status.TableStatus, changes: str, kept: datetime | None, broken: Sequence[Break]
    ) -> datetime | None:
        """Since when the lake has every change of the table. `kept`: those of before were removed."""
        joined = self.since(table.db, table.table) if self.since else None
        lost = lost_changes.until(
            store.small_file(self.pipeline, lost_changes.FILE), self.pipeline, table.db, table.table
        )
        place = max(filter(None, (joined, lost, breaks.last(broken))), default=None)
        if kept and not place:
            return kept
        began = self._first(changes, behind(place) if place else "true")
        return max(began, kept) if began and kept else began

    def _first(self, changes: str, where: str) -> datetime | None:
        """When the first of all tables' changes was committed, of these."""
        order = ", ".join(f"_seq['{name}']" for name in FIELDS)
        first = self._stream(changes, "ts", f"({where}) ORDER BY {order} LIMIT 1")
        self.connection.register("_stream", first)
        found = self.connection.execute("SELECT ts FROM _stream").fetchall()
        self.connection.unregister("_stream")
        return found[0][0].astimezone(UTC) if found else None
