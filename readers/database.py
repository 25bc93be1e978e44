"""The database that a statement is asked of: its names, and what is loaded for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import UTC, datetime
from functools import partial

from contract import altered, mended, names, status, steps
from contract.pipeline import Pipeline
from contract.pipeline_keys import told_of
from readers import as_of_notes, listing, noted, same_names
from readers.errors import LakeReadError
from readers.loading import RAW, Loading
from readers.named import Named, named_in
from readers.past import literal, quoted
from readers.table_past import TablePast

OWN = ("_seq", "_ts")
TAKEN = {"memory", "temp", "system", "pg_catalog", "information_schema"}  # catalogs and schemas of DuckDB's own
CHANGES = "_changes"
PAST = ("_history", CHANGES, "_as_of")
Wanted = tuple[status.TableStatus, list[str]]  # with those parts of its past that are named


class Database:
    """Of a pipeline's lake: nothing is loaded but what a statement names."""

    def __init__(self, pipeline: Pipeline, found: status.LakeStatus) -> None:
        self.pipeline, self.tables, self.loading = pipeline, found.tables, Loading(pipeline)
        self.since, self.refused = found.checkpoint.since if found.checkpoint else None, found.refused
        self.complete = datetime.fromtimestamp(found.checkpoint.ts_ms // 1000, UTC) if found.checkpoint else None
        self.asked: list[str] = []  # the tables of which something was made
        self.missing: dict[str, str] = {}  # why what a word of the statement may mean is not there, by lower case
        self.taken: dict[str, set[str]] = {}
        for table in self.tables.values():
            self.taken.setdefault(table.db.lower(), set()).add(table.table.lower())
        dbs = dict.fromkeys(table.db for table in self.tables.values())
        # As a statement names them.
        self.schemas = {
            db: names.free(f"_{db}", {one.lower() for one in dbs}) if db.lower() in TAKEN else db for db in dbs
        }
        self.connection = self.loading.connection
        for db in {RAW, *self.schemas.values()}:
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(db)}")  # DuckDB has one named main

    def load(self, sql: str) -> list[str]:
        """Makes what the statement may name. Gives what speaks against these tables."""
        named = named_in(self.connection, sql)
        wanted = [(table, past) for table, past in self._wanted(named) if self._made(table, past, named.sure)]
        self.asked = [f"{table.db}.{table.table}" for table, _ in wanted]
        self._noted({word.lower() for word in named.words})
        path = ",".join(quoted(db) for db in dict.fromkeys([*(self.schemas[table.db] for table, _ in wanted), RAW]))
        self.connection.execute(f"SET search_path = {literal(path)}")
        doubts = [self.refused] if self.refused and wanted else []
        doubts += [f"{table.db}.{table.table}: {doubt}" for table, _ in wanted for doubt in table.doubts()]
        return doubts + [told for table, past in wanted if past for told in self._of_times(table, past[-1], sql)]

    def _wanted(self, named: Named) -> list[Wanted]:
        dbs = {db.lower() for db in self.schemas.values()}

        def those(table: status.TableStatus, *of: str) -> list[str]:
            return [name for name in of if named.has(name, self.schemas[table.db], dbs)]

        pasts = [(table, those(table, *self.parts_of(table))) for table in self.tables.values()]
        asked = [table for table, past in pasts if past or those(table, table.table)]
        try:
            asked = same_names.meant(asked, [*self.tables.values()], self.parts_of, named.words)
        except same_names.SameNameError as error:
            raise LakeReadError(str(error)) from None
        return [(table, past) for table, past in pasts if table in asked]

    def _made(self, table: status.TableStatus, past: Sequence[str], sure: bool) -> bool:
        """Whether it could be. What is not `sure` to be named is refused if DuckDB asks for it."""
        try:
            if past or not table.changes_only:
                self._table(table)
            if past:
                self._past(table, past)
        except LakeReadError as error:
            if sure:
                raise
            self.missing |= dict.fromkeys(map(str.lower, (table.table, *self.parts_of(table))), str(error))
            return False
        return True

    def _noted(self, words: Set[str]) -> None:
        taken = set[str]().union(*self.taken.values())
        for name, columns in noted.COLUMNS.items():
            shown, path = names.free(name, taken), f"{names.lake_root(self.pipeline)}/{name}"
            if shown in words and self.loading.there(path):
                self.loading.make(f"{quoted(RAW)}.{quoted(shown)}", "*", self.loading.stream(path))
            elif shown in words:
                shape = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
                self.connection.execute(f"CREATE TABLE {quoted(RAW)}.{quoted(shown)} ({shape})")

    def _of_times(self, table: status.TableStatus, as_of: str, sql: str) -> Iterator[str]:
        """Of each time that the statement spells out: whether the lake has come to it, and what was done since."""
        name, root = f"{table.db}.{table.table}", names.lake_root(self.pipeline)
        repaired, changed = f"{root}/{names.REPAIRS}", f"{root}/{names.SCHEMA_CHANGES}"
        for text, moment in as_of_notes.times(self.connection, as_of, sql):
            if self.complete is not None:
                yield from as_of_notes.later(as_of, text, moment, self.complete)
            if self.loading.there(repaired):
                repairs = self.loading.stream(repaired, "key", as_of_notes.mended_after(name, table.db, moment))
                told = partial(mended.note, name, moment=text)
                yield from as_of_notes.told_since(self.connection, repairs, "key", told)
            if self.loading.there(changed):
                statements = self.loading.stream(
                    changed, "id", as_of_notes.altered_after(table.table, table.db, moment)
                )
                told = partial(altered.note, name, moment=text)
                yield from as_of_notes.told_since(self.connection, statements, "id", told)

    def parts(self) -> list[str]:
        """The names of all that a statement may say besides the tables themselves."""
        return [
            name
            for table in self.tables.values()
            for name, ending in zip(self.parts_of(table), PAST, strict=True)
            if ending == CHANGES or not table.changes_only
        ]

    def shown(self) -> dict[str, str]:
        """All that a statement may name, and what it is."""
        told = dict[str, str]()
        for table in self.tables.values():
            db = self.schemas[table.db]
            name = f"{db}.{table.table}"
            past = {f"{db}.{part}": kind for part, kind in zip(self.parts_of(table), listing.PARTS, strict=True)}
            changes = f"{db}.{self.parts_of(table)[PAST.index(CHANGES)]}"
            told |= {changes: past[changes]} if table.changes_only else {name: listing.TABLE, **past}
        taken = set[str]().union(*self.taken.values())
        return told | {names.free(name, taken): listing.NOTE for name in noted.COLUMNS}

    def without_rows(self) -> dict[str, str]:
        """Why there is no table of these names, in lower case: the lake has the changes alone, or no rows yet."""
        only = [table for table in self.tables.values() if table.changes_only]
        return self.missing | {
            name.lower(): f"{told_of(f'{table.db}.{table.table}')}: ask for {self.parts_of(table)[PAST.index(CHANGES)]}"
            for table in only
            for name in (table.table, *self.parts_of(table))
        }

    def parts_of(self, table: status.TableStatus) -> list[str]:
        """Of the parts of the table's past."""
        return [names.free(f"{table.table}{ending}", self.taken[table.db.lower()]) for ending in PAST]

    def now(self, table: status.TableStatus) -> str:
        """What has the table's columns, and its rows where there are any. None of MySQL's names ends with a blank."""
        if table.changes_only:
            return f"{quoted(RAW)}.{quoted(f'{table.db}.{table.table} ')}"
        return f"{quoted(self.schemas[table.db])}.{quoted(table.table)}"

    def _past(self, table: status.TableStatus, named: Sequence[str]) -> None:
        joined = self.since(table.db, table.table) if self.since else None
        shown = [f"{quoted(self.schemas[table.db])}.{quoted(name)}" for name in self.parts_of(table)]
        rows = not table.changes_only and {*named} != {self.parts_of(table)[PAST.index(CHANGES)]}
        TablePast(self.loading, table, self.now(table), shown, joined, self.refused).make(rows)

    def _table(self, table: status.TableStatus) -> None:
        path = names.lake_table(self.pipeline, table.db, table.table)
        if table.changes_only:
            path = names.lake_shape(self.pipeline, table.db, table.table)
            if not self.loading.there(path):
                why = table.stopped or f"{steps.compaction(self.pipeline)}, first"
                raise LakeReadError(f"the changes of {table.db}.{table.table} cannot be shown: {why}")
        elif table.version is None and table.stopped:
            raise LakeReadError(f"the lake has no rows of {table.db}.{table.table}: {table.stopped}")
        elif table.version is None:
            raise LakeReadError(
                f"the lake has no rows of {table.db}.{table.table} yet: {steps.snapshot(self.pipeline)}"
            )
        self.loading.make(self.now(table), f"* EXCLUDE ({', '.join(OWN)})", self.loading.stream(path))
