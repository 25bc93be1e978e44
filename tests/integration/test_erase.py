"""Rows erased from a real pipeline: out of the lake, told of the topics, and the lake still equals the source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pyspark.sql import SparkSession

from contract.pipeline import load
from contract.sequence import file_number
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.jobs.erase import erase
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.topic_records import records
from tests.spark.test_erasing import holding

pytestmark = pytest.mark.usefixtures("without_expectations")

MASKED = """\
columns:
  secret: ${{ERASING_SECRET}}
  masks: [{{columns: ["{name}.people.email"], mask: hash, keys: true}}]
quality: {{wait_seconds: 120}}
"""


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    monkeypatch.setenv("ERASING_SECRET", "quagga-salt")
    name = f"erasing{server.name}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    run(server, "CREATE TABLE t (id int PRIMARY KEY, name varchar(40))", database=name)
    run(server, "CREATE TABLE people (email varchar(80) PRIMARY KEY, name varchar(40))", database=name)
    made = Streamer(tmp_path, server, kafka, name)
    made.file.write_text(made.file.read_text() + MASKED.format(name=name))
    yield made
    made.close()


def compacting(kafka: Kafka, topic: str) -> None:
    entry = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.incremental_alter_configs([resource])[resource].result()


@pytest.mark.soak_on("mysql80", "mariadb")
def test_erased_rows_are_gone_and_the_lake_equals_the_source(
    spark: SparkSession, streamer: Streamer, server: Database, kafka: Kafka
) -> None:
    name = streamer.name

    def write(*statements: str) -> None:
        run(server, *statements, database=name)
        streamer.wait_until_released()

    def equal() -> bool:
        compact(spark, pipeline)
        return all(facts["equal"] for facts in verify(spark, pipeline, [])["tables"].values())

    def erased(table: str, keys: str, **more: str) -> dict[str, Any]:
        return erase(spark, pipeline, [f"{name}.{table}"], keys, now="yes", by="ada", **more)

    run(server, "INSERT INTO t VALUES (1, 'Amsel')", database=name)
    streamer.started()
    pipeline = load(streamer.file)
    lake = Lake(spark, pipeline)
    snapshot(spark, pipeline, [])
    write(
        "INSERT INTO t VALUES (2, 'Zebrafink'), (3, 'Quokka')",
        "UPDATE t SET id = 4 WHERE id = 3",
        "INSERT INTO people VALUES ('zebra@example.org', 'Zebrafink'), ('amsel@example.org', 'Amsel')",
    )
    assert equal()
    with pytest.raises(
        LakeError, match=r"the source still has 1 of 2 rows, .*number \d, and a.*--present, or present in the DAG"
    ):
        erased("t", "[2, 9]")
    with pytest.raises(LakeError, match=r"the same row to it and another one to the lake\. Write the key as"):
        erased("people", "Amsel@Example.org")
    with pytest.raises(LakeError, match="key 1: its id is no int"):
        erased("t", "two")
    with pytest.raises(LakeError, match=f"{name}.tt .* is no table .* those are: {name}.people, {name}.t"):
        erased("tt", "2")

    # Nothing of the deletion, or of the row's last value, is in the lake when the erasure begins.
    compacting(kafka, f"{name}.{name}.people")
    run(
        server, "UPDATE t SET name = 'Zebrafink2' WHERE id = 2", "DELETE FROM t WHERE id = 2",
        "DELETE FROM people WHERE email = 'zebra@example.org'", database=name,
    )  # fmt: skip
    facts = erased("t", "[2, 3]")
    counts = facts["tables"][f"{name}.t"]
    assert (counts["keys"], counts["changes"]) == (2, 5), "the row that took another key as well"
    topic = f"topic {name}.{name}.t: from "
    [told] = [line for line in facts["remains"] if line.startswith(topic)]
    assert "on it may go, until" in told
    assert "cleanup.policy delete" in told
    again = erased("t", "[2]")  # of which `_changes` has nothing any more
    [told] = [line for line in again["remains"] if line.startswith(f"topic {name}.{name}.t: until ")]
    assert "cleanup.policy delete: it may have such a record" in told

    facts = erased("people", "zebra@example.org")
    assert facts["tables"][f"{name}.people"]["changes"] == 2
    assert any("a tombstone was sent" in line for line in facts["remains"])
    found = records(kafka, f"{name}.{name}.people")
    [grave] = [one for one in found if one.value is None]
    assert {one.partition for one in found if one.key == grave.key} == {grave.partition}
    assert len([one for one in found if one.key == grave.key]) == 3
    for value in ("Zebrafink", "zebra@", json.dumps(grave.key)[10:40]):
        assert holding(lake, value) == [], value
    assert equal()

    write("INSERT INTO t VALUES (2, 'Neu')", "INSERT INTO people VALUES ('zebra@example.org', 'Neu')")
    assert equal()
    rows = spark.read.format("delta").load(lake.table(name, "t")).collect()
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, "Amsel"), (2, "Neu"), (4, "Quokka")]
    noted = spark.read.format("delta").load(lake.at("_erasures")).collect()
    assert {row["by"] for row in noted} == {"ada"}
    assert all(file_number(f"x.{row['until'].split(', ')[1]}") for row in noted)
