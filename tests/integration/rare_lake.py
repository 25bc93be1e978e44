"""A lake to which happens, at once, what is rare: what a run of it that is killed there must leave to the next one.

Its first run has merged FIRST; a second one landed SECOND and died. Then Kafka removed records that were not read yet,
the DDL topic was deleted and made again, and the lake's place in Kafka was moved away. Delta has no log any more of
what was merged. A snapshot is staged that ended behind the streamer's checkpoint, and a repair of a table that
somebody has set to take no updates. A table is stopped that is tried again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from spark.compaction.compaction import compact
from spark.failpoints import hooked
from spark.job import JobFailedError
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.merging.beginning import FILE
from stack.kafka import Kafka
from tests import checkpoints
from tests.integration.by_hand import pipeline_of
from tests.integration.test_lake_topics import made_again
from tests.integration.written import TABLES, Written
from tests.spark.lake_by_hand import item, part, staged
from tests.spark.test_refused import APPEND_ONLY, by_somebody

NAME = "rare"
LACKS, AHEAD, SET, STOPPED = TABLES
FIRST = [(LACKS, 70, 7), (LACKS, 71, 8), (AHEAD, 73, 7), (SET, 74, 7), (STOPPED, 75, 7)]
SECOND = [(LACKS, 100, 10), (AHEAD, 101, 10)]
THIRD = [(LACKS, 120, 11), (LACKS, 121, 12), (AHEAD, 135, 13)]
REMOVED = 4  # records of LACKS, the last of which nobody has read
P0, END = 130, 1500  # of the snapshot of AHEAD: behind all that is lost
ROWS = {
    LACKS: [(1, "a", 60), (7, "a", 70), (8, "a", 71), (10, "a", 100), (12, "a", 121)],
    AHEAD: [(1, "a", P0), (13, "a", 135)],
    SET: [(1, "a", 60), (7, "a", 74)],
    STOPPED: [(1, "a", 60)],
}
# A run may count a second time what a run that was killed has counted, and its moment is its own.
OWN = {"changes_last_run", "version", "next_try_ms", "foreign", "snapshot"}
FILES = (FILE, "_running.json", "_staging", "_parts")  # which a whole run leaves none of


class DiedError(Exception):
    pass


class RareLake:
    """`copy` makes as many as there are tests."""

    def __init__(self, spark: SparkSession, folder: Path, kafka: Kafka) -> None:
        self.spark, self.folder, self.kafka = spark, folder, kafka
        self.written = Written(kafka, NAME)
        self.pipeline = pipeline_of(folder, kafka, NAME)
        self.lake = Lake(spark, self.pipeline)

    def make(self) -> None:
        written = self.written
        written.snapshot(self.spark, self.lake, "1", 60)
        written.shapes[STOPPED] = written.shapes[STOPPED].model_copy(update={"version": 9})  # which no topic has
        written.statement("nothing", 76, "create")
        self._sent(FIRST, 90)
        with pytest.raises(JobFailedError, match=f"{STOPPED}: a change names schema version 9"):
            compact(self.spark, self.pipeline)
        self._sent(SECOND, 110)
        with hooked(dying("landed")), pytest.raises(DiedError):
            compact(self.spark, self.pipeline)
        self._sent(THIRD, P0)
        written.remove(LACKS, REMOVED)
        made_again(self.kafka, f"{NAME}.ddl", 1)
        written.statement(AHEAD, 129)
        shutil.rmtree(self.lake.checkpoint("changes"))
        forget_merged(self.lake)
        self._stage()

    def copy(self, name: str) -> Pipeline:
        folder = self.folder / name
        shutil.copytree(self.folder / "lake", folder / "lake")
        return pipeline_of(folder, self.kafka, NAME)

    def _sent(self, changes: list[tuple[str, int, int]], released: int) -> None:
        for change in changes:
            self.written.change(*change)
        self.written.released(released)

    def _stage(self) -> None:
        shapes, p0 = self.written.shapes, self.written.checkpoint(P0)
        facts: dict[str, Any] = {"p0": p0, "p1": f"{checkpoints.SOURCE}:1-{END}", "counts": {f"{NAME}.{AHEAD}": 1}}
        staged(self.spark, self.lake, Manifest(id="2", pipeline=NAME, tables=[shapes[AHEAD]], **facts), item(1))
        by_somebody(self.spark, APPEND_ONLY.format(f"delta.`{self.lake.table(NAME, SET)}`"))
        part(self.spark, self.lake, "3", P0, item(1, "right"), item(7), of=shapes[SET], p0=p0)


def dying(point: str) -> Callable[[str], None]:
    def hook(reached: str) -> None:
        if reached == point:
            raise DiedError

    return hook


def forget_merged(lake: Lake) -> None:
    """As Delta cleans a log behind a checkpoint of its own, where nothing was merged for weeks."""
    DeltaTable(lake.changes).create_checkpoint()
    last = lake.version(lake.changes) or 0
    assert last > 0, "else all of it was merged"
    log = Path(lake.changes, "_delta_log")
    for version in range(last):
        for file in (f"{version:020d}.json", f"{version:020d}.crc", f".{version:020d}.json.crc"):
            (log / file).unlink(missing_ok=True)
    lake.forget_logs()


def standing(pipeline: Pipeline) -> dict[str, Any]:
    """All that a reader of the lake is told, but for the moments of its runs."""
    lake, told = Path(pipeline.lake.path) / NAME, status.read(pipeline)
    assert told is not None
    tables = {table.table: table for table in told.tables.values()}
    rows = {table: pl.read_delta(str(lake / NAME / table)).select("id", "name", "_seq").rows() for table in TABLES}
    changes = pl.read_delta(str(lake / "_changes")).select("tbl", "_seq").rows()
    found = {
        "rows": {table: sorted((id, name, seq["pos"]) for id, name, seq in found) for table, found in rows.items()},
        "changes": sorted((tbl, seq["pos"]) for tbl, seq in changes),
        "tables": {name: table.model_dump(exclude=OWN) for name, table in sorted(tables.items())},
        "foreign": [name for name, table in sorted(tables.items()) if table.foreign],
        "snapshots": {name: table.snapshot and table.snapshot.id for name, table in sorted(tables.items())},
        "parts": {id: part.model_dump(exclude={"at"}) for id, part in told.parts.items()},
        "repairs": pl.read_delta(str(lake / "_repairs")).height,
        "lost": (lake / "_lost.json").read_text(),
        "left": [file for file in FILES if (lake / file).is_file() or [*(lake / file).glob("*")]],
    }
    here = json.dumps(str(Path(pipeline.path).parent))[1:-1]  # messages name the lake's own folder
    again: dict[str, Any] = json.loads(json.dumps(found).replace(here, ""))
    return again
