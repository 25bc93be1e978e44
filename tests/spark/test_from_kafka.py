"""A table's changes out of Kafka's topics again: out of all in which they are, also those of before `kafka.topic` was
edited."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.lake.lake import Lake
from spark.lake.topic_ids import TopicIds
from spark.mending import from_kafka
from tests.spark.changes_by_hand import record, records
from tests.spark.lake_by_hand import NAME, item

OLD, NEW, TEMPLATE = "shop.shop.items", "tables.shop.items", "tables.{db}.{table}"
POLICIES = {OLD: "delete", NEW: "delete"}
FLOOR = [0, 1, 100, -1, -1]


class Kafka:
    """Spark's reader of Kafka, over topics of one partition."""

    def __init__(self, spark: SparkSession, topics: dict[str, list[tuple[Any, ...]]]) -> None:
        self.spark, self.topics, self.read, self.assigned = spark, topics, self, set[str]()
        self.createDataFrame = spark.createDataFrame

    def format(self, name: str) -> Kafka:
        return self

    def options(self, **given: str) -> Kafka:
        self.assigned = {*json.loads(given["assign"])}
        return self

    def load(self) -> DataFrame:
        return records(self.spark, *(row for topic in sorted(self.assigned) for row in self.topics[topic]))


def of(topic: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:2], topic, *row[3:])


@pytest.fixture
def kafka(spark: SparkSession, lake: Lake, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compaction has read both topics: it goes on with each that it has read before."""
    first, second = record(0, (0, 1, 110, 0, 0), "u", item(1, "b")), record(0, (0, 1, 120, 0, 0), "u", item(2, "c"))
    monkeypatch.setattr(from_kafka.Landing, "read", lambda self: {(OLD, 0): 1, (NEW, 0): 1})
    there(monkeypatch)
    lake.pipeline = named(pipeline)
    return Kafka(spark, {OLD: [of(OLD, first)], NEW: [of(NEW, second)]})


def named(pipeline: Pipeline, earlier: Sequence[str] = ()) -> Pipeline:
    update = {"topic": TEMPLATE, "earlier_topics": tuple(earlier)}
    return pipeline.model_copy(update={"kafka": pipeline.kafka.model_copy(update=update)})


def there(
    monkeypatch: pytest.MonkeyPatch, gone: Sequence[str] = (), begin: int = 0, policies: Mapping[str, str] = POLICIES
) -> None:
    """`begin`: the first offset that the old topic still has; `policies`: what the broker tells of the topics."""
    broker = SimpleNamespace(
        begins=lambda ends: {at: begin if at[0] == OLD else 0 for at in ends},
        bounds=lambda topic: {} if topic in gone else {0: (0, 1)},
        topic_ids=lambda topics: dict.fromkeys(topics, "of now"),
        settings=lambda topics: {one: {"cleanup.policy": policies[one]} for one in topics if one in policies},
    )
    monkeypatch.setattr(from_kafka, "Broker", lambda _: broker)


@pytest.mark.parametrize("earlier", [["{pipeline}.{db}.{table}"], []], ids=["that the file names", "that it does not"])
def test_the_changes_of_before_the_edit_are_in_a_topic(kafka: Any, lake: Lake, earlier: list[str]) -> None:
    lake.pipeline = named(lake.pipeline, earlier)
    found = from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")
    assert sorted(row["key"] for row in found.collect()) == ['{"id":1}', '{"id":2}']


def test_a_topic_that_was_made_again_has_other_records(kafka: Any, lake: Lake) -> None:
    known = TopicIds(lake, lake.checkpoint("changes"))
    known.keep({OLD: "of now", NEW: "of now"})
    assert from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1").count() == 2
    known.keep({OLD: "of before"})
    with pytest.raises(LakeError, match=f"the topic {OLD} was deleted and made again.*changes or mysql"):
        from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")


def test_without_that_topic_or_its_first_records_it_is_refused(
    kafka: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    there(monkeypatch, begin=1)
    with pytest.raises(LakeError, match=rf"Kafka has deleted records of {OLD} \(partition 0\)"):
        from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")
    there(monkeypatch, gone=[OLD])
    with pytest.raises(LakeError, match=f"read the topic {OLD}, and Kafka does not have all of it.*changes or mysql"):
        from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_topic_that_was_set_to_compact_is_refused(
    kafka: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """It may have lost the delete of a row that it still has, and begins where it began."""
    there(monkeypatch, policies={**POLICIES, OLD: policy})
    told = rf"the topic {OLD} has cleanup.policy {policy}, and not delete.*would come back.*changes or mysql instead"
    with pytest.raises(LakeError, match=told):
        from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")
    there(monkeypatch, policies={NEW: "delete"})
    with pytest.raises(LakeError, match=f"does not tell the cleanup.policy of the topic {OLD}.*DescribeConfigs"):
        from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")


def test_a_table_of_which_compaction_has_read_nothing(kafka: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_kafka.Landing, "read", lambda self: {("tables.shop.lines", 0): 1})
    with pytest.raises(LakeError, match=f"read nothing of the topic {NEW}: take the rows from changes or mysql"):
        from_kafka.sent(kafka, lake, NAME, FLOOR, "the snapshot s1")
