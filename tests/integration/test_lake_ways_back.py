"""Where what somebody else did to `_changes` cannot be taken back by a RESTORE, the way that the message names is
walked to its end: the lake is equal to the source again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.spark.test_foreign_changes import append

pytestmark = pytest.mark.usefixtures("without_expectations")

NAME = "waysback"


@pytest.fixture
def streamer(mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    run(mysql, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.t (id int PRIMARY KEY, name varchar(9))")
    insert(mysql, 1)
    made = Streamer(tmp_path, mysql, kafka, NAME)
    made.file.write_text(made.file.read_text() + "quality: {wait_seconds: 120}\n")
    yield made
    made.close()


def insert(mysql: MySQL, id: int) -> None:
    run(mysql, f"INSERT INTO {NAME}.t VALUES ({id}, 'a'), ({-id}, 'a')", f"UPDATE {NAME}.t SET name = 'b' WHERE id < 0")


def test_from_a_copy_and_from_a_lake_made_anew(
    spark: SparkSession, mysql: MySQL, streamer: Streamer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamer.started()
    pipeline = load(streamer.file)
    lake = Lake(spark, pipeline)

    def equal(rows: int) -> bool:
        told = verify(spark, pipeline, [], compact="yes")["tables"][f"{NAME}.t"]
        return bool(told["equal"]) and told["lake_count"] == rows

    snapshot(spark, pipeline, [])
    insert(mysql, 2)
    assert equal(rows=4)

    # Removed; a copy of it is there.
    shutil.copytree(lake.changes, tmp_path / "copy")
    shutil.rmtree(lake.changes)
    insert(mysql, 3)
    with pytest.raises(LakeError, match=r"_changes: it is gone\. .*Put it back from a copy; then run this again"):
        compact(spark, pipeline)
    shutil.move(tmp_path / "copy", lake.changes)
    assert equal(rows=6)

    # Written to in the very moment at which a run lands changes, which are behind it then.
    insert(mysql, 4)
    save, harmed = DataFrameWriter.save, list[str]()

    def harm(writer: DataFrameWriter, path: str | None = None, *given: Any, **named: Any) -> None:
        if path == lake.changes and not harmed:
            harmed.append(path)
            append(lake)
        save(writer, path, *given, **named)

    monkeypatch.setattr(DataFrameWriter, "save", harm)
    told = (
        rf"cannot be taken back: move the folder {lake.root} away and run the DAG {NAME}\.snapshot, or `headrace snap"
    )
    for _ in range(2):
        with pytest.raises(LakeError, match=told):
            compact(spark, pipeline)
    assert harmed
    Path(lake.root).rename(tmp_path / "away")
    snapshot(spark, pipeline, [])
    insert(mysql, 5)
    assert equal(rows=10)
    assert {row["name"] for row in lake.frame(lake.table(NAME, "t")).collect()} == {"a", "b"}
