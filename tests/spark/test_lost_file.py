"""A file of `_changes` that is gone, and the way back that docs/operations.md tells, while compactions go on; and the
same command where it is run on a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from contract import breaks, status
from contract.pipeline import Pipeline
from contract.renames import FILE
from spark.errors import LakeError
from spark.failures import message_of
from spark.history.history import History
from spark.job import JobFailedError
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import change
from tests.spark.lake_by_hand import AT, NAME, ids, item, land, seq, stage

Compact = Callable[[], dict[str, Any]]


def files(lake: Lake) -> set[Path]:
    return set(Path(lake.changes).rglob("*.parquet"))


def refused(compact: Compact, pipeline: Pipeline) -> None:
    with pytest.raises(Exception, match="parquet") as failed:
        compact()
    told = message_of(failed.value, pipeline)
    assert told.startswith("a file of the lake is missing or cannot be read (")
    assert 'see "A file of the lake that is lost" in docs/operations.md' in told


def broken(file: Path, how: str) -> None:
    """Gone, or there without what it had."""
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(b"PAR1" + b"\0" * 400)


@pytest.mark.parametrize(
    ("merged", "how"),
    [(False, "gone"), (False, "broken"), pytest.param(True, "gone", marks=pytest.mark.soak)],
)
def test_no_compaction_on_the_way_back_brings_a_deleted_row_again(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, merged: bool, how: str
) -> None:
    """The lost file has row 2's deletion, the others have what made the row; where the snapshot came last, the row was
    there until then. A compaction comes behind each step."""
    land(spark, lake, change(seq(1), "c", item(1)), change(seq(2), "c", item(2)))
    compact()
    before = files(lake)
    land(spark, lake, change(seq(3), "u", item(1, "lost")), change(seq(4), "d", item(2)))
    if merged:
        compact()
    lost = files(lake) - before
    for file in lost:
        broken(file, how)
    if not merged:
        refused(compact, pipeline)
    stage(spark, lake, "1", AT, item(1, "lost"))
    refused(compact, pipeline)
    for file in lost:
        file.unlink(missing_ok=True)  # where it is there, it is to be moved away first
    assert DeltaTable(lake.changes).repair()["files_removed"]
    if not merged:
        refused(compact, pipeline)
    Path(lake.checkpoint("tables")).rename(f"{lake.root}-tables-before")
    compact()
    assert ids(spark, lake) == [(1, "lost")]
    land(spark, lake, change(seq(AT + 1), "c", item(3)))
    compact()
    assert ids(spark, lake) == [(1, "lost"), (3, "a")]
    with pytest.raises(LakeError, match=r"the history of shop\.items begins with the next change"):
        History(spark, lake, *NAME).as_of(datetime.now(UTC))
    land(spark, lake, change(seq(2000), "c", item(4)))
    compact()
    [known] = breaks.of(breaks.parse(lake.text(lake.at(FILE))), *NAME)
    assert known.seq == (0, 1, 1000), "noted once, at what the lake was complete to"


@pytest.mark.soak
def test_a_table_whose_lost_file_somebody_took_out_of_its_log_lacks_rows_until_a_snapshot(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact
) -> None:
    """The table is stopped until then, and can be merged behind it: as if nothing were lost."""
    stage(spark, lake, "1", AT, item(1), item(2))
    land(spark, lake, change(seq(AT + 5), "c", item(9)))
    compact()
    path = lake.table(*NAME)
    files = [file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts]
    [lost] = [file for file in files if 2 in pl.read_parquet(file)["id"]]
    lost.unlink()
    lake.forget_logs()
    land(spark, lake, change(seq(AT + 6), "u", item(2, "b")))
    with pytest.raises(JobFailedError, match="missing"):
        compact()
    assert DeltaTable(path).repair()["files_removed"]
    lake.forget_logs()
    compact()
    table = status.read(pipeline).tables["shop.items"]  # type: ignore[union-attr]
    assert table.foreign is not None
    assert "FSCK as version" in table.foreign.reason
    assert (table.rows, table.snapshot, table.freshness_ms) == (len(ids(spark, lake)), None, None)
    assert [told for told in table.doubts() if "not yet snapshotted" in told]
    stage(spark, lake, "2", AT + 1, item(1), item(2))
    compact()
    table = status.read(pipeline).tables["shop.items"]  # type: ignore[union-attr]
    assert (ids(spark, lake), table.doubts()) == ([(1, "a"), (2, "b"), (9, "a")], [])
