"""How many changes the lake has of each table, as it is: for who has no count to go on with."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import Column
from pyspark.sql import functions as fn

from spark.conditions import any_of
from spark.history.going import staying
from spark.history.retention import history_of
from spark.lake.lake import Lake
from spark.lake.stopped import Name, StoppedTables
from spark.tables.merge import sequence


def counted(
    lake: Lake, stopped: StoppedTables, known: Iterable[Name] = (), only: Collection[Name] | None = None
) -> dict[Name, int]:
    """Those that were removed too (retention.py); what of them is still there is not counted twice. Without those that
    a stopped table waits for: they count when they are merged. `known`: tables whose names need not be guessed;
    `only`: of these alone."""
    if not lake.is_table(lake.changes):
        return {}
    history = history_of(lake)
    changes = staying(lake.frame(lake.changes), history)
    if only is not None:
        changes = changes.where(fn.col("tbl").isin(sorted(".".join(name) for name in only)))
    if waits := [_waiting(name, stop.since) for name, stop in stopped.tables.items() if not stop.kept]:
        changes = changes.where(~any_of(waits))
    counts = dict[Name, int]()
    for row in changes.groupBy("db", "tbl").count().collect():
        counts[row["db"], row["tbl"][len(row["db"]) + 1 :]] = row["count"]
    names = {".".join(name): name for name in (*counts, *known)}
    for told, kept in history.tables.items():
        if name := names.get(told) or name_of(told):
            counts[name] = counts.get(name, 0) + kept.removed
    return counts if only is None else {name: counts.get(name, 0) for name in only}


def _waiting(name: Name, since: list[int]) -> Column:
    return (fn.col("tbl") == ".".join(name)) & (fn.col("db") == name[0]) & (fn.col("_seq") >= sequence(since))


def name_of(told: str) -> Name | None:
    """Of `db.table`. Where more than one dot leaves it open which is which, the table is known by its changes alone."""
    db, _, table = told.partition(".")
    return None if "." in table else (db, table)
