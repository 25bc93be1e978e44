"""The rows of `_schema_changes`: one for each statement and for each difference between two shapes of a table.

Rows have an `id`, by which a run that repeats another one's work does not write them again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from contract import names
from contract.ddl_record import UNSEEN, DdlRecord
from contract.schema import TableSchema
from spark.evolution.shape_changes import CARRIED, STALE, ShapeChange
from spark.failpoints import reached
from spark.lake.lake import Lake

Place = tuple[int, int, int]  # epoch, number of the binlog file, position
AGAIN = "added again"
UNLOGGED = "unlogged"
SHOWN = 200  # characters of a statement in a message
COLUMNS = (
    "id string, db string, tbl string, at struct<epoch:bigint,file:bigint,pos:bigint>, ts timestamp, gtid string, "
    "kind string, column string, before string, after string, rule string, told string, statement string, "
    "version int, noted timestamp"
)
TOLD = {
    "drop": "the table that was there is gone in the source, the lake keeps its rows",
    "rename": "rows have another table's name in the source now",
    "partition": "rows may have left or entered the table with a partition",
    "alter": "values of rows that were there may have changed",
    "unknown": "the statement was not understood and may have changed rows",
    "cascade": "a foreign key changes its rows from here on, and the source does not log that",
    "truncate": "its rows are gone, in the lake too",
    "shape": "rows that were there are as they were",
    "harmless": "neither rows nor columns changed",
    AGAIN: "the lake has the values of before it was dropped",
    UNLOGGED: "the source's binlog has no statement that did it, and values of rows that were there may have changed",
}
TEXT = re.compile(r"""'(?:[^'\\]|''|\\.)*'?|"(?:[^"\\]|""|\\.)*"?""", re.DOTALL)


def note(spark: SparkSession, lake: Lake, rows: list[dict[str, Any]]) -> list[str]:
    """Writes those that the table has not. Gives a line for each that is news."""
    path = lake.at(names.SCHEMA_CHANGES)
    unique = {row["id"]: row for row in rows}
    if unique and lake.is_table(path):
        ids = spark.createDataFrame([(id,) for id in unique], "id string")
        known = spark.read.format("delta").load(path).join(ids, "id", "left_semi").select("id").collect()
        unique = {id: row for id, row in unique.items() if id not in {found["id"] for found in known}}
    if unique:
        frame = spark.createDataFrame(list(unique.values()), COLUMNS)
        frame.coalesce(1).write.format("delta").mode("append").save(path)
        reached("shape changes noted")
    return [f"{row['db']}.{row['tbl'] or '*'}: {row['told']}" for row in unique.values() if _news(row)]


def place(schema: TableSchema) -> Place:
    return (schema.since.epoch, schema.since.file, schema.since.pos) if schema.since else (0, 0, 0)


def identity(record: DdlRecord) -> str:
    """What comes again in a new epoch has the GTID that it had."""
    place = record.gtid or ":".join(map(str, record.seq))
    return f"{place} {record.db}.{record.table or '*'} {record.kind}"


def of_statement(record: DdlRecord) -> dict[str, Any]:
    rule = STALE if record.kind in UNSEEN else CARRIED
    return {
        "id": identity(record),
        "db": record.db,
        "tbl": record.table,
        "at": record.seq,
        "ts": datetime.fromtimestamp(record.ts_ms / 1000, UTC),
        "gtid": record.gtid,
        "kind": record.kind,
        "column": None,
        "before": None,
        "after": None,
        "rule": rule,
        "told": f"{shown(record.statement)}: {TOLD.get(record.kind, record.kind)}",
        "statement": record.statement,
        "version": None,
        "noted": datetime.now(UTC),
    }


def of_shape(schema: TableSchema, change: ShapeChange) -> dict[str, Any]:
    return {
        "id": f"{schema.db}.{schema.table} version {schema.version} {change.kind} {change.column or ''}",
        "db": schema.db,
        "tbl": schema.table,
        "at": place(schema) if schema.since else None,
        "ts": None,
        "gtid": None,
        "kind": change.kind,
        "column": change.column,
        "before": change.before,
        "after": change.after,
        "rule": change.rule,
        "told": change.told,
        "statement": None,
        "version": schema.version,
        "noted": datetime.now(UTC),
    }


def _news(row: Mapping[str, Any]) -> bool:
    return row["kind"] != "harmless"


def shown(statement: str) -> str:
    """For a message: without its texts, which may be rows' values, and shortened."""
    text = " ".join(TEXT.sub("'...'", statement).split())
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
