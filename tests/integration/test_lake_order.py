"""What must not come back into the lake, and what must not be left out of it, though it comes in an odd order."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.snapshot import snapshot
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Streamer, execute, rows
from tests.integration.topic_records import records

Make = Callable[..., Streamer]
LIMIT = 400_000  # bytes of a batch, packed; the streamer's batches are below it, but for one
ROWS = 20_000


@pytest.fixture
def make(tmp_path: Path, mysql: MySQL, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A streamer over a database with a table `t`."""
    made: list[Streamer] = []
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)

    def streamer(name: str, **more: Any) -> Streamer:
        execute(mysql, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id int PRIMARY KEY, text longtext)")
        made.append(Streamer(tmp_path, mysql, kafka, name, **more))
        return made[-1]

    yield streamer
    for each in made:
        each.close()


def lake(streamer: Streamer) -> dict[int, tuple[int, str]]:
    path = streamer.file.parent / "lake" / streamer.name / streamer.name / "t"
    found = pl.scan_delta(str(path)).select("id", "text").collect().rows()
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row for row in found}


def test_rows_that_were_truncated_before_the_snapshot_and_after_it_stay_away(
    make: Make, mysql: MySQL, spark: SparkSession
) -> None:
    streamer = make("truncated").started()
    execute(mysql, "INSERT INTO truncated.t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "TRUNCATE truncated.t")
    execute(mysql, "INSERT INTO truncated.t VALUES (3, 'new'), (4, 'd')")
    streamer.wait_until_released()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    execute(mysql, "INSERT INTO truncated.t VALUES (5, 'e')", "UPDATE truncated.t SET text = 'newer' WHERE id = 3")
    streamer.wait_until_released()
    compact(spark, pipeline)  # lands the old inserts, applies the snapshot, merges: all in one
    assert lake(streamer) == rows(mysql, "truncated.t") == {3: (3, "newer"), 4: (4, "d"), 5: (5, "e")}
    execute(
        mysql, "UPDATE truncated.t SET text = 'gone'", "TRUNCATE truncated.t", "INSERT INTO truncated.t VALUES (4, 'f')"
    )
    streamer.wait_until_released()
    assert compact(spark, pipeline)["tables"]["truncated.t"]["rows"] == 1
    assert lake(streamer) == rows(mysql, "truncated.t") == {4: (4, "f")}


def test_what_is_behind_a_refused_record_is_not_taken_for_duplicates(
    make: Make, mysql: MySQL, kafka: Kafka, spark: SparkSession
) -> None:
    topic = "gapless.gapless.t"
    client = AdminClient({"bootstrap.servers": kafka.address})
    [created] = client.create_topics([NewTopic(topic, 2, 1, config={"max.message.bytes": str(LIMIT)})]).values()
    created.result()
    streamer = make("gapless", delivery="at_least_once").started()
    streamer.wait_until_released()
    streamer.kill()
    # All in the binlog before it goes on: then many batches are under way behind the one that is refused.
    noise = "".join(random.Random(5).choices(string.ascii_letters + string.digits, k=900_000))
    many = f"WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS}) SELECT"
    execute(
        mysql,
        f"SET SESSION cte_max_recursion_depth = {ROWS}",
        f"INSERT INTO gapless.t {many} n, repeat('row ', 20) FROM s",
        f"INSERT INTO gapless.t VALUES (0, '{noise}')",
        f"INSERT INTO gapless.t {many} n + 1000000, repeat('row ', 20) FROM s",
        "UPDATE gapless.t SET text = 'changed' WHERE id % 100 = 1",
    )
    streamer.start()
    assert streamer.end() == 1
    assert "size too large" in streamer.log()
    before = len(records(kafka, topic))
    assert before > 0

    entry = ConfigEntry("max.message.bytes", "10000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for done in client.incremental_alter_configs([resource]).values():
        done.result()
    streamer.started().wait_until_released()
    compact(spark, load(streamer.file))
    assert lake(streamer) == rows(mysql, "gapless.t")
    assert_first_appearances_grow(kafka, topic)


def assert_first_appearances_grow(kafka: Kafka, topic: str) -> None:
    greatest: dict[int, tuple[int, ...]] = {}
    seen: set[tuple[int, ...]] = set()
    for record in records(kafka, topic):
        if record.value and record.seq not in seen:
            assert record.seq > greatest.get(record.partition, ())
            greatest[record.partition] = record.seq
            seen.add(record.seq)
    assert len(greatest) == 2
