"""What a batch of changes has of each table: what a merge is to know before it reads the table's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from spark.lake.stopped import Name
from spark.tables.rows import maybe_zero


@dataclass
class Batch:
    """One table's part of a batch of changes. `versions`: the schema versions of its rows, each with its greatest
    `_seq`; `since`: the least `_seq` of all; `truncated`: the greatest of a truncation, empty without one. `zeros`: the
    versions with rows in whose texts a date without a month or a day may be."""

    name: Name
    versions: dict[int, list[int]]
    changes: int
    since: list[int]
    truncated: list[int] = field(default_factory=list)
    zeros: set[int] = field(default_factory=set)


def parts_of(changes: DataFrame) -> list[Batch]:
    """The tables that have changes here."""
    row = fn.col("op") != "t"
    last, cut = fn.max(fn.when(row, fn.col("_seq"))).alias("last"), fn.max(fn.when(~row, fn.col("_seq"))).alias("cut")
    since, n = fn.min("_seq").alias("since"), fn.count("*").alias("n")
    # A set, since Spark then hashes: for the greatest of a struct alone it would sort all rows, with their texts.
    zeros = fn.array_contains(fn.collect_set(maybe_zero("after")), fn.lit(True)).alias("zeros")
    parts: dict[Name, Batch] = {}
    for found in changes.groupBy("db", "tbl", "schema").agg(last, cut, since, n, zeros).collect():
        name = (found["db"], found["tbl"][len(found["db"]) + 1 :])
        part = parts.setdefault(name, Batch(name, {}, 0, list(found["since"])))
        if found["last"]:
            part.versions[found["schema"]] = list(found["last"])
        part.truncated = max(part.truncated, list(found["cut"] or []))
        part.changes += found["n"]
        part.zeros |= {found["schema"]} if found["zeros"] else set()
        part.since = min(part.since, list(found["since"]))
    return list(parts.values())
