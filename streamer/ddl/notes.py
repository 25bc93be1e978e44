"""DDL on the pipeline's tables: told in its topic; what changed rows without row events is warned of and counted, the
last ones kept.

Such a change makes its table stale in the lake until a new snapshot (but for a TRUNCATE, which has a record of its
own), so each one says which, and the operator's next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import structlog

from contract import steps
from contract.patterns import any_matches, may_match
from contract.pipeline import Pipeline
from contract.sequence import file_number
from streamer.ddl import records as ddl_records
from streamer.ddl import statement as ddl
from streamer.ddl.cascades import gives_cascade, makes_where_none_is
from streamer.ddl.joining import joining
from streamer.ddl.records import Outgoing
from streamer.ddl.renamed import renamed
from streamer.ddl.secrets import shown
from streamer.protocol.model import Ddl
from streamer.routes import Router

log = structlog.get_logger("streamer")
KEPT = 5
MEANING: dict[ddl.Kind, str] = {
    "drop": "the table that was there is gone in the source; the lake still has its rows",
    "rename": "the rows have another table's name in MySQL; the lake has them under the one before",
    "partition": "rows left or entered the table with a partition; the lake does not know of it",
    "alter": "values of rows that are there may have changed; the lake carries what the shapes tell",
    "cascade": "a foreign key changes its rows from here on, and the server writes nothing of that into its binlog: "
    "neither stream nor lake know of it",
    "unknown": "it was not understood, and may have changed rows; the lake would not know of it",
}
RENAMED = (
    "columns have other names; the lake's table takes them with the next change of a row, where nothing is in doubt"
)
# What the next step waits for: a snapshot is of a table that is there.
LATER: dict[ddl.Kind, str] = {
    "drop": ", if it is made again",
    "rename": ", those of them that are there now",
    "cascade": ", again and again by a schedule, and list it in tables.cascades of the pipeline file; or drop the key",
}
AGAIN = "Run headrace check: it names the tables of such keys, and what to do."
STRONGER: tuple[ddl.Kind, ...] = ("drop", "rename", "partition")  # than `cascade`: another table's rows, or none


class DdlNotes:
    """`drop(db, table, kind)`: whether the pipeline leaves it out. `lower_case`: whether the server that is read keeps
    names in lower case; `logs_cascades`: whether it writes rows that foreign keys change. `joined` hears which of the
    pipeline's tables came with rows that nobody streamed (true), or certainly have none (false), and from which place
    on. `computes` says of a table that is altered whether it has computed columns. `counts`: since this start, by kind.
    `last`: the latest ones and, beside them, the latest truncations, the newest at the end, as `/status` shows them."""

    def __init__(self, pipeline: Pipeline, drop: ddl_records.Drop = lambda db, table, kind: False) -> None:
        self.pipeline = pipeline
        self._drop = drop
        self.lower_case = False
        self.logs_cascades: bool | None = None  # before the first connection, of which preflight tells
        self.joined: Callable[[Mapping[str, bool], tuple[int, int, int]], None] = lambda tables, place: None
        self.computes: ddl_records.Computes = lambda db, table: False
        self.counts: dict[str, int] = dict.fromkeys(ddl.CHANGES_ROWS, 0)
        self.last: tuple[dict[str, Any], ...] = ()

    def records(self, item: Ddl, epoch: int, router: Router) -> Iterator[Outgoing]:
        """What is sent of it; nothing of another's tables, nor of a session's own."""
        if item.temporary:
            return
        change = ddl.change(item.statement, item.db, item.escapes)
        cascades = self._cascades(item)
        tables = [(db.lower(), table.lower()) if self.lower_case else (db, table) for db, table in change.tables]
        self._tell_joined(joining(change._replace(tables=tuple(tables)), item.statement, item.escapes), item, epoch)
        names = [(db, table) for db, table in dict.fromkeys(tables) if self._ours(db, table)]
        news = cascades and change.kind not in STRONGER and not self._known(names, item)
        kind = "cascade" if news else change.kind
        if names or (change.kind == "unknown" and not change.tables):
            if kind in self.counts:
                self._note(kind, names, item, cascades)
            yield from ddl_records.records(self.pipeline, kind, names, item, epoch, router, self._drop, self.computes)

    def _cascades(self, item: Ddl) -> bool:
        """Whether it gives a table a foreign key that changes rows of which nothing is in the binlog. The server that
        reads it now may be a newer one than wrote it, and still write none."""
        written_by = item.written_by
        hidden = written_by.hides_cascades or self.logs_cascades is False
        return hidden and gives_cascade(item.statement, item.escapes, written_by.has_inline_keys)

    def _known(self, names: list[ddl.Table], item: Ddl) -> bool:
        """Of tables that the file lists: an application may send the statement each time it starts."""
        listed = self.pipeline.tables.cascades
        return makes_where_none_is(item.statement, item.escapes) and all(any_matches(listed, *name) for name in names)

    def reads(self, lower_case: bool, logs_cascades: bool) -> None:
        """Of the server that is connected to now."""
        if self.logs_cascades is True and not logs_cascades:
            log.warning("the server no longer writes the rows that foreign keys change", next_step=AGAIN)
        self.lower_case, self.logs_cascades = lower_case, logs_cascades

    def _tell_joined(self, tables: Mapping[ddl.Table, bool], item: Ddl, epoch: int) -> None:
        ours = {f"{db}.{table}": joins for (db, table), joins in tables.items() if self._ours(db, table)}
        if ours:  # a snapshot that begins where the statement does may have been read before it
            self.joined(ours, (epoch, file_number(item.file), item.pos + 1))

    def _note(self, kind: ddl.Kind, names: list[ddl.Table], item: Ddl, cascades: bool) -> None:
        self.counts[kind] += 1
        tables = [f"{db}.{table}" for db, table in names]
        note = {
            "kind": kind,
            "tables": tables,
            "db": item.db,
            "statement": shown(item.statement, item.escapes),
            "gtid": item.gtid,
            "file": item.file,
            "pos": item.pos,
            "ts_ms": item.ts_ms,
        }
        self.last = _newest((*self.last, note))
        if kind == "truncate":
            log.info("table emptied", **note)
            return
        again = steps.snapshot(self.pipeline)
        step = f"{again[0].upper()}{again[1:]}, for {', '.join(tables) or 'the tables that it changed'}"
        step += LATER.get(kind, "") + "."
        meaning = MEANING[kind]
        if cascades and kind != "cascade":
            meaning, step = f"{meaning}; and {MEANING['cascade']}", f"{step[:-1]}{LATER['cascade']}."
        if kind == "alter" and renamed(item.statement, item.db, item.escapes).alone:
            meaning = RENAMED
        if kind == "alter" and not cascades:
            step = f"{step[:-1]}, if the lake's status says that it stays stale."
        log.warning("DDL changed rows", **note, meaning=meaning, next_step=step)

    def _ours(self, db: str, table: str) -> bool:
        tables = self.pipeline.tables
        if table == ddl.ANY:
            return any(may_match(pattern, {"db": db}) for pattern in tables.include)
        return tables.match(db, table)


def _newest(notes: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """A table that is truncated again and again crowds out nothing that asks for a step."""
    truncations = [note for note in notes if note["kind"] == "truncate"]
    others = [note for note in notes if note["kind"] != "truncate"]
    kept = {id(note) for note in [*truncations[-KEPT:], *others[-KEPT:]]}
    return tuple(note for note in notes if id(note) in kept)
