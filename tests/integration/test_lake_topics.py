"""A topic that was deleted and made again, or has another name from now on: nothing of it is passed by in silence, and
what the message says helps."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.jobs.backfill import backfill
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.streaming import Streamer, rows


def test_a_topic_made_again_that_is_longer_than_the_old_one(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    run(mysql, "CREATE DATABASE anew", "CREATE TABLE anew.t (id int PRIMARY KEY, v int)")
    streamer = Streamer(tmp_path, mysql, kafka, "anew")
    pipeline = load(streamer.file)
    try:
        streamer.started()
        run(mysql, "INSERT INTO anew.t VALUES (1, 1), (2, 2), (3, 3)")
        streamer.wait_until_released()
        compact(spark, pipeline)
        run(mysql, "UPDATE anew.t SET v = v + 1")  # never to be compacted
        streamer.wait_until_released()
        streamer.close()
        made_again(kafka, "anew.anew.t")
        streamer.started()
        run(mysql, *(f"INSERT INTO anew.t VALUES ({n}, 0)" for n in range(10, 50)), "DELETE FROM anew.t WHERE id = 3")
        streamer.wait_until_released()
    finally:
        streamer.close()

    with pytest.raises(LakeError, match=r"the topic anew\.anew\.t was deleted and made again"):
        compact(spark, pipeline)
    # What the message says: the checkpoint goes away, and a snapshot brings what the topic has lost.
    checkpoint = Path(Lake(spark, pipeline).checkpoint("changes"))
    checkpoint.rename(tmp_path / "away")
    told = compact(spark, pipeline)["tables"]["anew.t"]
    assert not told["snapshot"]
    assert "were removed from Kafka before they reached the lake" in told["unread"]
    snapshot(spark, pipeline, [])
    for _ in range(2):
        compact(spark, pipeline)
        found = pl.scan_delta(str(tmp_path / "lake" / "anew" / "anew" / "t")).select("id", "v").collect()
        assert sorted(found.rows()) == sorted(rows(mysql, "anew.t").values())
    standing = status.read(pipeline)
    assert standing is not None
    assert standing.tables["anew.t"].doubts() == []


@pytest.mark.usefixtures("without_expectations")
def test_the_topics_are_named_otherwise_from_now_on(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one table a snapshot is staged and no compaction has run, of the other the lake knows nothing yet."""
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    run(mysql, "CREATE DATABASE named", "USE named", "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")  # fmt: skip
    streamer = Streamer(tmp_path, mysql, kafka, "named")
    try:
        streamer.started()
        snapshot(spark, load(streamer.file), [])
        run(mysql, "UPDATE named.t SET v = 20 WHERE id = 2", "DELETE FROM named.t WHERE id = 3",
            "CREATE TABLE named.late (id int PRIMARY KEY, v int)", "INSERT INTO named.late VALUES (1, 1)")  # fmt: skip
        streamer.wait_until_released()
        assert streamer.stop() == 0

        template = 'topic: "t.{pipeline}.{db}.{table}"'
        streamer.file.write_text(streamer.file.read_text().replace("partitions: 2", f"partitions: 2, {template}"))
        told = 'kafka.earlier_topics: ["{pipeline}.{db}.{table}"]'
        streamer.start()
        assert streamer.end() != 0
        assert told in json.loads(streamer.log().splitlines()[-1])["next_step"]
        with pytest.raises(LakeError, match=re.escape(told)):
            compact(spark, load(streamer.file))

        earlier = 'earlier_topics: ["{pipeline}.{db}.{table}"]'
        streamer.file.write_text(streamer.file.read_text().replace(template, f"{template}, {earlier}"))
        pipeline = load(streamer.file)
        streamer.started()
        run(mysql, "UPDATE named.t SET v = 10 WHERE id = 1")
        streamer.wait_until_released()
        compact(spark, pipeline)
        as_the_source(mysql, pipeline)
        backfill(spark, pipeline, ["named.t"], source="kafka", compact="yes")
        as_the_source(mysql, pipeline)
    finally:
        streamer.close()


def as_the_source(mysql: MySQL, pipeline: Pipeline) -> None:
    standing = status.read(pipeline)
    assert standing is not None
    for table in ("t", "late"):
        found = pl.scan_delta(f"{pipeline.lake.place}/named/named/{table}").select("id", "v").collect()
        assert sorted(found.rows()) == sorted(rows(mysql, f"named.{table}").values())
        assert standing.tables[f"named.{table}"].doubts() == []


def made_again(kafka: Kafka, topic: str, partitions: int = 2) -> None:
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.delete_topics([topic])[topic].result()
    until = time.monotonic() + 20
    while True:  # its deletion takes a moment
        try:
            client.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
            return
        except KafkaException:
            assert time.monotonic() < until
            time.sleep(0.1)
