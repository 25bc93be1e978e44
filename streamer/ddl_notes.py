"""DDL on the pipeline's tables that changed rows without row events: warned of, counted, the last ones kept.

The lake hears of such changes by a new snapshot alone, so each one says which, and the operator's next step.
"""

from __future__ import annotations

import fnmatch
from typing import Any

import structlog

from contract.pipeline import Pipeline
from streamer import ddl
from streamer.protocol.model import Ddl

log = structlog.get_logger("streamer")
KEPT = 5
MEANING: dict[ddl.Kind, str] = {
    "truncate": "the rows are gone in MySQL; the lake still has them",
    "drop": "the table is gone in MySQL; the lake still has it, as it was",
    "rename": "the rows have another table's name in MySQL; the lake has them under the one before",
    "partition": "rows left or entered the table with a partition; the lake does not know of it",
    "alter": "values of rows that are there may have changed; the lake has those from before",
    "unknown": "it was not understood, and may have changed rows; the lake would not know of it",
}
# What the next step waits for: a snapshot is of a table that is there.
LATER: dict[ddl.Kind, str] = {"drop": ", if it is made again", "rename": ", those of them that are there now"}


class DdlNotes:
    """`counts`: since this start, by kind. `last`: the latest ones, the newest at the end, as `/status` shows them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.counts: dict[str, int] = dict.fromkeys(ddl.KINDS, 0)
        self.last: tuple[dict[str, Any], ...] = ()

    def see(self, item: Ddl) -> None:
        change = ddl.change(item.statement, item.db)
        if change is None:
            return
        names = [(db, table) for db, table in change.tables if self._ours(db, table)]
        if change.tables and not names:
            return
        tables = [f"{db}.{table}" for db, table in names]
        note = {
            "kind": change.kind,
            "tables": tables,
            "db": item.db,
            "statement": ddl.shown(item.statement),
            "gtid": item.gtid,
            "file": item.file,
            "pos": item.pos,
            "ts_ms": item.ts_ms,
        }
        self.counts[change.kind] += 1
        self.last = (*self.last, note)[-KEPT:]
        step = f"Run the DAG {self._pipeline.name}.snapshot for {', '.join(tables) or 'the tables that it changed'}"
        step += LATER.get(change.kind, "") + "."
        log.warning("DDL changed rows", **note, meaning=MEANING[change.kind], next_step=step)

    def _ours(self, db: str, table: str) -> bool:
        tables = self._pipeline.tables
        if table == ddl.ANY:
            return any(fnmatch.fnmatchcase(db, glob.split(".")[0]) for glob in tables.include)
        return tables.match(db, table)
