"""A snapshot of all tables, of which one that came without a key cannot be in the lake."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Streamer, execute


def test_the_others_are_in_the_lake_and_an_error_names_it(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamer = Streamer(tmp_path, mysql, kafka, "leftout")
    execute(mysql, "CREATE DATABASE leftout", "CREATE TABLE leftout.t (id int PRIMARY KEY)")
    execute(mysql, "INSERT INTO leftout.t VALUES (1), (2)")
    try:
        streamer.started()
        execute(mysql, "CREATE TABLE leftout.heap (v int)", "INSERT INTO leftout.heap VALUES (7)")
        streamer.wait_until_released()
    finally:
        streamer.close()
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    pipeline = load(streamer.file)
    with pytest.raises(JobFailedError, match=r"leftout\.heap was left out: leftout\.heap has no primary key") as failed:
        snapshot(spark, pipeline, [], compact="yes")
    assert "1 other table in the lake" in str(failed.value)
    assert failed.value.facts["tables"] == {"leftout.t": {"rows": 2}}
    found = pl.read_delta(str(tmp_path / "lake" / "leftout" / "leftout" / "t"))
    assert sorted(found["id"].to_list()) == [1, 2]
    with pytest.raises(LakeError, match=r"^leftout\.heap has no primary key"):
        snapshot(spark, pipeline, ["leftout.heap"])
