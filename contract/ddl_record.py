"""A record of the DDL topic: what a statement did to a table, beside its rows' events. The streamer writes them, the
lake learns from them which tables' values may have changed without a row event."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

# Kinds that may change stored values and send no row for it; a TRUNCATE has a record of its own in the table's topic.
UNSEEN = ("drop", "rename", "partition", "alter", "unknown", "cascade")


class DdlRecord(BaseModel):
    """`table`: None where the statement means all tables of `db`, or does not tell. `kind`: as streamer/ddl says it.
    `statement`: without secrets, maybe cut. `gtid`: None or empty without GTIDs. `seq`: epoch, number of the binlog
    file, position where the statement begins. `ts_ms`: Unix milliseconds UTC.

    Of an ALTER TABLE: `renamed`: the columns to which it gave another name, old and new as it has them; `only_renamed`:
    and it did nothing else to a column. `dropped`: those that it drops, also where it adds others of their names.
    `computed`: the table has computed columns, or nobody could tell."""

    model_config = ConfigDict(frozen=True)

    db: str
    table: str | None
    kind: str
    statement: str
    gtid: str | None = None
    seq: tuple[int, int, int]
    ts_ms: int
    renamed: tuple[tuple[str, str], ...] = ()
    only_renamed: bool = False
    dropped: tuple[str, ...] = ()
    computed: bool = False
