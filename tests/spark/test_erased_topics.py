"""What an erasure tells of Kafka and of other places beyond the lake: what may be there, how long, what it sends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.pipeline_archive import Archive
from contract.pipeline_sinks import FilesOutput, KafkaOutput, ObjectsOutput, StdoutOutput
from contract.status import parse
from spark.erasing import record
from spark.erasing.topics import lasting
from spark.history.retention import Retention
from spark.jobs import erase as job
from spark.lake.erasures import Topic, together
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import record as kafka_record
from tests.spark.test_erasing import CAME, FIRST, SENT, Broker, checkpoint, filled, item, land, stats

__all__ = ["stats"]

HOUR = 3_600_000
WEEK = {"cleanup.policy": "delete", "retention.ms": str(168 * HOUR), "segment.ms": str(HOUR)}
ITEMS_TOPIC = "topic shop.shop.items: "


@pytest.fixture
def purged(stats: None, spark: SparkSession, lake: Lake) -> None:
    """Of the table's changes `_changes` has none any more, by their age."""
    filled(spark, lake)
    lake.delete(lake.at("_quality", "unfinished.json"))  # no check's
    status = parse(lake.text(lake.status) or "")
    assert status.checkpoint is not None
    later = status.checkpoint.model_copy(update={"ts_ms": CAME + 10 * 24 * HOUR})
    removed = Retention(spark, lake, status.model_copy(update={"checkpoint": later}), 2).run()
    assert removed == {"shop.items": 6}


def erased(spark: SparkSession, lake: Lake) -> list[str]:
    facts = job.erase(spark, lake.pipeline, ["shop.items"], "[1]", present="yes", by="ada")
    [row] = spark.read.format("delta").load(lake.at("_erasures")).select("remains").collect()
    assert len(row["remains"]) == len(facts["remains"])
    return list(facts["remains"])


def of_items(lines: Sequence[str]) -> str:
    [line] = [line for line in lines if line.startswith(ITEMS_TOPIC)]
    return line


def until(line: str) -> float:
    """Seconds from now to the time at which a line says that it is gone."""
    told = line.partition("until ")[2].partition(" UTC")[0]
    return datetime.fromisoformat(f"{told}Z").timestamp() - time.time()


@pytest.mark.usefixtures("purged")
@pytest.mark.soak
def test_a_topic_keeps_what_changes_no_longer_has(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Broker, "config", WEEK)
    line = of_items(erased(spark, lake))
    assert line.endswith(" at the latest (cleanup.policy delete: it may have such a record)")
    assert 168 * 3600 < until(line) < 170 * 3600, "as if it had come just now"
    assert SENT == []
    assert "nothing of these keys" not in capsys.readouterr().out, "the table had the row"


def test_of_keys_that_the_lake_does_not_have_it_says_where_else_they_may_be(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Broker, "config", WEEK)
    land(spark, lake, kafka_record(0, (0, 1, 10, 0, 0), "c", item(2)))
    assert of_items(erased(spark, lake))
    said = "shop.items: nothing of these keys was found; the record says so, and where it may be still\n"
    assert said in capsys.readouterr().out


@pytest.mark.soak
def test_a_record_that_was_sent_again_stands_behind_the_one_that_was_landed(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The landed one came years ago, and the broker would have removed it: its copy it keeps from when that came."""
    monkeypatch.setattr(Broker, "config", WEEK)
    land(spark, lake, *FIRST[:2])
    line = of_items(erased(spark, lake))
    assert "from 2023-11-21 22:13:20 UTC on it may go, until " in line, "the landed one's time and a week"
    assert 168 * 3600 < until(line) < 170 * 3600


def test_what_has_no_records_has_none_of_the_keys(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "kept", {})
    land(spark, lake, *FIRST[:2])
    assert not [line for line in erased(spark, lake) if line.startswith("topic ")]


@pytest.mark.usefixtures("purged")
def test_a_topic_that_compacts_gets_its_tombstone_all_the_same(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In which partition the key's records are no change tells: into each."""
    monkeypatch.setattr(Broker, "kept", {"shop.shop.items": 3})
    line = of_items(erased(spark, lake))
    assert sorted(SENT) == [("shop.shop.items", number, '{"id":1}') for number in range(3)]
    assert "no change of the keys was found" in line
    assert "a tombstone was sent into each partition" in line


def test_a_key_that_has_a_change_since_gets_none(stats: None, spark: SparkSession, lake: Lake) -> None:
    land(spark, lake, *FIRST[:2])
    land(spark, lake, kafka_record(8, (0, 1, 2000, 0, 0), "c", item(1, "Amsel")))
    erased(spark, lake)
    assert SENT == []


@pytest.mark.soak
def test_a_topic_of_several_tables_gets_none_for_a_key_of_which_no_change_is_known(
    stats: None, spark: SparkSession, lake: Lake, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another table's row may have the same key."""
    shared = pipeline.model_copy(update={"kafka": pipeline.kafka.model_copy(update={"topic": "{pipeline}.{db}"})})
    monkeypatch.setattr(Broker, "kept", {"shop.shop": 2})
    land(spark, Lake(spark, shared), *FIRST[:2])
    lines = erased(spark, Lake(spark, shared))
    [line] = [line for line in lines if line.startswith("topic shop.shop: ")]
    assert SENT == []
    assert "until somebody removes it" in line
    assert "No tombstone was sent: tables share it" in line


@pytest.mark.soak
def test_places_where_nothing_is_searched_are_told_of(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics that a transform chose, the archive of the binlog, sinks beside Kafka."""
    assert record.of_archive(lake.pipeline) == record.of_sinks(lake.pipeline) == []
    monkeypatch.setattr(Broker, "config", WEEK)
    monkeypatch.setattr(Broker, "kept", {"shop.shop.items": 1, "visits": 1, "shop.dead-letter": 1})
    at = checkpoint(1000).model_copy(update={"topics": ("visits", "gone")})
    monkeypatch.setattr(job.source, "newest", lambda *_: at)
    sinks = (
        KafkaOutput(), FilesOutput(type="files", path=Path("/srv/events")),
        ObjectsOutput(type="objects", url="s3://bucket/events"), StdoutOutput(type="stdout"),
    )  # fmt: skip
    archive = Archive(target="s3://bucket/binlogs/", spool=Path("/srv/spool"))
    lake.pipeline = lake.pipeline.model_copy(update={"sinks": sinks, "archive": archive})
    land(spark, lake, *FIRST[:2])
    lines = erased(spark, lake)
    told = [line.partition(": ")[0] for line in lines if line.startswith("topic ")]
    assert told == ["topic shop.shop.items", "topic shop.dead-letter", "topic visits"]
    for place in ("s3://bucket/binlogs", "the folder /srv/events", "s3://bucket/events", "standard output"):
        assert [line for line in lines if line.startswith(f"{place}: until somebody removes it (")], place


def test_a_run_behind_a_killed_one_keeps_what_that_knew() -> None:
    """`_changes` told the first run of the topic, and has nothing of it any more."""
    first = lasting("t", WEEK, 1000 * HOUR, came_ms=900 * HOUR).model_copy(update={"tombstone": True})
    [both] = together([first, lasting("t", WEEK, 1001 * HOUR)])
    assert (both.found, both.tombstone, both.earliest_ms) == (True, True, 1068 * HOUR)
    assert both.latest_ms == (first.latest_ms or 0) + HOUR
    [kept] = together([Topic(name="t", policy="delete", last_ms=None), first])
    assert kept.latest_ms == first.latest_ms


def test_of_a_topic_that_the_broker_tells_nothing_of_nobody_says_until_when() -> None:
    [line] = [one.told() for one in record.of_topics([lasting("t", {}, 1)])]
    assert line == "topic t: until somebody removes it (cleanup.policy unknown: it may have such a record)"
    forever: dict[str, Any] = {**WEEK, "retention.ms": "-1"}
    [line] = [one.told() for one in record.of_topics([lasting("t", forever, 1)])]
    assert "until somebody removes it" in line
