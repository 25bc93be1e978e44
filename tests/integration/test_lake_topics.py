"""A topic that was deleted and made again: nothing of it is passed by in silence, and what the message says helps."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.errors import LakeError
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
