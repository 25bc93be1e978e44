"""Audit: GTIDs that the source has, and that no binlog of it ever had (a dump that was loaded into it)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.snapshot import places
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

GIVEN = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:1-5"


@pytest.fixture
def streamer(mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    run(mysql, "CREATE DATABASE auditpurged")
    made = Streamer(tmp_path, mysql, kafka, "auditpurged")
    yield made
    made.close()


@pytest.mark.usefixtures("without_expectations")
def test_a_snapshot_goes_on(
    spark: SparkSession, mysql: Database, streamer: Streamer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PATIENCE", 10.0)
    run(mysql, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", database="auditpurged")
    streamer.started()
    pipeline = load(streamer.file)
    run(mysql, f"SET GLOBAL gtid_purged = '+{GIVEN}'")
    run(mysql, "INSERT INTO t VALUES (2)", database="auditpurged")
    told = []
    for at in range(2):
        try:
            snapshot(spark, pipeline, [])
            break
        except LakeError as error:
            told.append(str(error))
            print("SAID", error)
            streamer.stop()
            streamer.started()
            run(mysql, f"INSERT INTO t VALUES ({10 + at})", database="auditpurged")
    compact(spark, pipeline)
    print(verify(spark, pipeline, [], compact="yes")["tables"])
    assert told == []
