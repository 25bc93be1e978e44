"""Many tables with changes in one run: side by side, each right, and none held by one that is broken."""

from __future__ import annotations

import threading
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract.schema import TableSchema
from spark.lake.lake import Lake
from spark.merging import tables
from spark.merging.tables import THREADS, Merging
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change, changes
from tests.spark.lake_by_hand import unwatched

BROKEN = "t3"
WAIT = 60  # seconds in which the others of THREADS are to come


def schema_of(table: str, version: int = 1) -> TableSchema:
    return ITEMS.model_copy(update={"table": table, "version": version})


def made(tables: int, rows: int) -> list[tuple[Any, ...]]:
    """Of each table `rows` rows, of which every third is updated and every fifth deleted; another number of rows each,
    and of one of them changes whose schema nobody knows."""
    found = []
    for n in range(tables):
        schema, at = schema_of(f"t{n}", 9 if f"t{n}" == BROKEN else 1), 1
        for op, every in (("c", 1), ("u", 3), ("d", 5)):
            for id in range(0, rows + n, every):
                at += 1
                row = {"id": id, "name": f"{op}{n}", "price": "1.00"}
                found.append(change((0, 1, at, 0, 0), op, row, schema))
    return found


def expected(n: int, rows: int) -> list[tuple[int, str]]:
    return [(id, f"u{n}" if id % 3 == 0 else f"c{n}") for id in range(rows + n) if id % 5]


def meeting(monkeypatch: pytest.MonkeyPatch) -> threading.Barrier:
    """Lets the first THREADS merges of a run go on together alone."""
    together, first = threading.Barrier(THREADS, timeout=WAIT), iter(range(THREADS))
    merge = tables.merge

    def met(*given: Any) -> int:
        if next(first, None) is not None:
            together.wait()
        return merge(*given)

    monkeypatch.setattr(tables, "merge", met)
    return together


@pytest.mark.parametrize(("count", "rows"), [(5, 10), pytest.param(20, 5_000, marks=pytest.mark.soak)])
def test_tables_of_one_run(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, count: int, rows: int
) -> None:
    together = meeting(monkeypatch)
    changes(spark, *made(count, rows)).write.format("delta").save(lake.changes)
    step = Merging(spark, lake, Schemas([schema_of(f"t{n}") for n in range(count)]), unwatched(lake))
    step.run()
    assert not together.broken, "tables were merged one after the other"
    for n in range(count):
        if f"t{n}" != BROKEN:
            frame = pl.scan_delta(lake.table("shop", f"t{n}")).select("id", "name").collect()
            assert sorted(frame.rows()) == expected(n, rows), n
    [(name, stop)] = step.stopped.tables.items()
    assert name == ("shop", BROKEN)
    assert "schema version 9" in stop.reason
    assert step.merged.keys() == {("shop", f"t{n}") for n in range(count)} - {name}
    assert not lake.is_table(lake.table("shop", BROKEN))
