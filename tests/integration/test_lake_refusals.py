"""A password that MySQL refuses, and servers that do not answer, seen by the Spark jobs: one message each, without the
password, and nothing lost once it is mended."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs import verify as checking
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from tests.integration.spark_jobs import Work, message
from tests.integration.streaming import Streamer, execute

WRONG = "not-this-one-1c8e"


def test_a_wrong_password_and_servers_away(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamer = Streamer(tmp_path, mysql, kafka, "denies")
    execute(mysql, "CREATE DATABASE denies", "CREATE TABLE denies.t (id int PRIMARY KEY, name varchar(9))")
    execute(mysql, "INSERT INTO denies.t VALUES (1, 'one'), (2, 'two')")
    try:
        streamer.started()
        execute(mysql, "DELETE FROM denies.t WHERE id = 2", "INSERT INTO denies.t VALUES (3, 'three')")
        streamer.wait_until_released()
    finally:
        streamer.close()

    monkeypatch.setattr(checking, "_expectations", lambda *_: {})  # they have tests of their own
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    assert "MySQL at 127.0.0.1:" in away(spark, streamer, str(mysql.port), snapshot, [])
    assert "Kafka at 127.0.0.1:" in away(spark, streamer, kafka.address, compact)
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    monkeypatch.setenv("TEST_PASSWORD", WRONG)
    for work in (snapshot, verify):
        told = message(spark, load(streamer.file), work, [])
        refused(streamer, told)
        assert WRONG not in told
    assert verify(spark, pipeline, [])["tables"]["denies.t"]["equal"]
    found = pl.scan_delta(str(tmp_path / "lake" / "denies" / "denies" / "t")).select("id", "name").collect()
    assert sorted(found.rows()) == [(1, "one"), (3, "three")]


def refused(streamer: Streamer, told: str) -> None:
    assert f"MySQL at 127.0.0.1:{streamer.mysql.port} refused the user headrace" in told
    assert "mend source.user or its password" in told
    assert "\n" not in told


def away(spark: SparkSession, streamer: Streamer, address: str, work: Work, *arguments: list[str]) -> str:
    """What the job says with the pipeline file, in which the server's address is one where nothing listens."""
    elsewhere = address.replace(address.rpartition(":")[2], str(free_port()))
    file = streamer.file.with_name(f"away-{streamer.file.name}")
    file.write_text(streamer.file.read_text().replace(address, elsewhere))
    return message(spark, load(file), work, *arguments)
