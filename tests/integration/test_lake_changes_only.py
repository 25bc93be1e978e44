"""A table without a key beside one with, on each server: the lake keeps the changes of one, the rows of the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from readers.lake import query
from spark.compaction.compaction import compact
from spark.history.history import History
from spark.jobs.backfill import backfill
from spark.jobs.erase import erase
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.spark_jobs import message
from tests.integration.streaming import Streamer

pytestmark = pytest.mark.usefixtures("without_expectations")


@pytest.fixture
def name(server: Database) -> str:
    return f"only{server.name}"


@pytest.fixture
def streamer(
    server: Database, name: str, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    run(server, f"CREATE DATABASE {name}")
    run(
        server,
        "CREATE TABLE orders (id int PRIMARY KEY, state varchar(9))",
        "CREATE TABLE clicks (page int, name varchar(9))",
        "INSERT INTO orders VALUES (1, 'new'), (2, 'new')",
        "INSERT INTO clicks VALUES (0, 'before')",
        database=name,
    )
    made = Streamer(tmp_path, server, kafka, name)
    more = f"keys: [{{tables: [{name}.clicks], changes_only: true}}]\nquality: {{wait_seconds: 120}}\n"
    made.file.write_text(made.file.read_text() + more)
    yield made
    made.close()


@pytest.mark.soak_on("mysql80", "mariadb")
def test_its_changes_are_in_the_lake_beside_a_table_that_is_proven(
    spark: SparkSession, server: Database, name: str, streamer: Streamer, capfd: pytest.CaptureFixture[str]
) -> None:
    streamer.started()
    pipeline = load(streamer.file)
    run(
        server,
        "INSERT INTO clicks VALUES (1, 'a'), (1, 'a'), (2, NULL)",
        "UPDATE clicks SET name = 'b' WHERE page = 2",
        "DELETE FROM clicks WHERE page = 1",
        "UPDATE orders SET state = 'paid' WHERE id = 2",
        database=name,
    )
    assert [*snapshot(spark, pipeline, [])["tables"]] == [f"{name}.orders"]
    streamer.wait_until_released()
    report = compact(spark, pipeline)["tables"]
    assert {table: facts.get("changes_only", False) for table, facts in report.items()} == {
        f"{name}.clicks": True, f"{name}.orders": False,
    }  # fmt: skip
    told = "SELECT op, key, before.page, before.name, after.page, after.name FROM clicks_changes"
    assert list(query(pipeline, told).rows()) == [
        ("c", None, None, None, 1, "a"), ("c", None, None, None, 1, "a"), ("c", None, None, None, 2, None),
        ("u", None, 2, None, 2, "b"), ("d", None, 1, "a", None, None), ("d", None, 1, "a", None, None),
    ]  # fmt: skip
    assert History(spark, Lake(spark, pipeline), name, "clicks").changes().count() == 6
    proof = verify(spark, pipeline, [])["tables"]
    assert {table: (facts["equal"], facts["lake_count"]) for table, facts in proof.items()} == {
        f"{name}.orders": (True, 2)
    }
    assert f"left out: the pipeline file keeps the changes alone of {name}.clicks" in capfd.readouterr().out
    assert "joined without a key" not in streamer.log()
    assert f"{name}.clicks" not in streamer.status()["tables"]["not_yet_snapshotted"]

    for job in (snapshot, verify, backfill):
        assert f"keeps the changes alone of {name}.clicks" in message(spark, pipeline, job, [f"{name}.clicks"])
    with pytest.raises(Exception, match=f"keeps the changes alone of {name}.clicks"):
        repair(spark, pipeline, [f"{name}.clicks"], keys="[1]")
    with pytest.raises(Exception, match=rf"{name}.clicks has no key.*history_days"):
        erase(spark, pipeline, [f"{name}.clicks"], "[1]")

    run(server, "ALTER TABLE clicks ADD ms int", "INSERT INTO clicks VALUES (3, 'c', 7)", database=name)
    streamer.wait_until_released()
    compact(spark, pipeline)
    assert list(query(pipeline, "SELECT after.ms FROM clicks_changes WHERE after.page = 3").rows()) == [(7,)]
    assert list(query(pipeline, "SELECT count(*) FROM clicks_changes").rows()) == [(7,)]
