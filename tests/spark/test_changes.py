"""Step 1: every change lands once, whatever comes again, and nothing is passed by in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.kafka.broker import Broker
from spark.kafka.offsets import Ends
from spark.kafka.records import shaped
from spark.lake.lake import Lake
from spark.lake.lost import Losses
from spark.lake.topic_ids import TopicIds
from spark.landing.changes import Landing
from spark.landing.marks import Marks
from tests.spark.changes_by_hand import ITEMS, record, records
from tests.spark.lake_by_hand import checkpoint

Seq = tuple[int, int, int, int, int]


def seq(pos: int, row: int = 0) -> Seq:
    return 0, 1, pos, 0, row


def row(n: int, name: str = "a") -> dict[str, Any]:
    return {"id": n, "name": name, "price": "1.00"}


def landed(spark: SparkSession, lake: Lake) -> list[tuple[int, int]]:
    """(position, row) of every change in the lake, in order."""
    found = spark.read.format("delta").load(lake.changes).select("_seq.pos", "_seq.row").collect()
    return sorted((r["pos"], r["row"]) for r in found)


def test_the_texts_of_rows_are_kept_as_they_came(spark: SparkSession) -> None:
    exact = {"id": 18446744073709551615, "name": 'ö "quoted" \\ / \u2028', "price": "0.10"}
    [found] = shaped(records(spark, record(0, seq(5), "c", exact)), "shop").collect()
    assert found["after"] == '{"id":18446744073709551615,"name":"ö \\"quoted\\" \\\\ / \u2028","price":"0.10"}'
    assert found["key"] == '{"id":18446744073709551615}'
    assert (found["tbl"], found["op"], found["before"], tuple(found["_seq"])) == ("shop.items", "c", None, seq(5))
    assert str(found["day"]) == "2023-11-14"


def test_a_floats_number_is_kept(spark: SparkSession) -> None:
    key, value, *rest = record(0, seq(5), "c", row(1))
    value = value.replace(b'"price":"1.00"', b'"price":1.7976931348623157e308')
    [found] = shaped(records(spark, (key, value, *rest)), "shop").collect()
    assert json.loads(found["after"])["price"] == 1.7976931348623157e308


def test_a_replay_inside_a_batch_lands_once(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    first = [record(n, seq(10 + n), "c", row(n)) for n in range(4)]
    again = [record(10 + n, seq(10 + n), "c", row(n)) for n in range(2, 6)]
    Landing(spark, pipeline, lake)._batch(records(spark, *first, *again), 0, "q")
    assert landed(spark, lake) == [(10 + n, 0) for n in range(6)]


def test_a_replay_in_a_later_batch_lands_once(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    landing = Landing(spark, pipeline, lake)
    landing._batch(records(spark, *[record(n, seq(10 + n), "c", row(n)) for n in range(4)]), 0, "q")
    landing._batch(records(spark, *[record(4 + n, seq(11 + n), "c", row(n)) for n in range(5)]), 1, "q")
    assert landed(spark, lake) == [(10 + n, 0) for n in range(6)]
    assert landing.landed == 6


def test_partitions_have_marks_of_their_own(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    landing = Landing(spark, pipeline, lake)
    landing._batch(records(spark, record(0, seq(100), "c", row(1))), 0, "q")
    # Older by its seq, but the first of its partition: no duplicate.
    landing._batch(records(spark, record(0, seq(50), "c", row(2), partition=1)), 1, "q")
    assert landed(spark, lake) == [(50, 0), (100, 0)]


def test_more_tables_than_a_task_has_files_open(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    tables = [ITEMS.model_copy(update={"table": f"t{n % 12}"}) for n in range(36)]
    batch = records(spark, *[record(n, seq(10 + n), "c", row(n), schema=table) for n, table in enumerate(tables)])
    Landing(spark, pipeline, lake)._batch(batch, 0, "q")
    found = spark.read.format("delta").load(lake.changes).select("tbl", "_seq.pos").collect()
    assert sorted((r["pos"], r["tbl"]) for r in found) == [(10 + n, f"shop.t{n % 12}") for n in range(36)]


@pytest.mark.parametrize("first", [True, False])
def test_a_table_whose_name_is_no_folders_stops_no_other(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, first: bool
) -> None:
    """Of 64 characters each, as MySQL takes, three bytes a character; where tables share a topic."""
    long, landing = ITEMS.model_copy(update={"db": "表" * 64, "table": "行" * 64}), Landing(spark, pipeline, lake)
    if not first:
        landing._batch(records(spark, record(0, seq(5), "c", row(1))), 0, "q")
    both = [record(1, seq(6), "c", row(2)), record(2, seq(7), "c", row(3), schema=long)]
    landing._batch(records(spark, *both), 1, "q")
    landing._batch(records(spark, record(3, seq(8), "d", None, row(3), schema=long)), 2, "q")
    assert landed(spark, lake) == [(at, 0) for at in ([] if first else [5]) + [6, 7, 8]]
    name = f"{long.db}.{long.table}"
    assert spark.read.format("delta").load(lake.changes).where(f"tbl = '{name}'").count() == 2


def test_rows_of_one_event_are_told_apart(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    moved = [record(0, seq(7, 0), "d", None, row(1)), record(1, seq(7, 1), "c", row(2))]
    Landing(spark, pipeline, lake)._batch(records(spark, *moved), 0, "q")
    assert landed(spark, lake) == [(7, 0), (7, 1)]


class CrashError(Exception):
    pass


def test_a_crash_between_the_two_writes_of_a_batch(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    def crash(point: str) -> None:
        if point == "changes written":
            raise CrashError

    rows = [record(n, seq(10 + n), "c", row(n)) for n in range(3)]
    batch = records(spark, *rows, record(3, seq(11), "c", row(1)))
    with hooked(crash), pytest.raises(CrashError):
        Landing(spark, pipeline, lake)._batch(batch, 0, "q")
    again = Landing(spark, pipeline, lake)
    again._batch(batch, 0, "q")
    again._batch(records(spark, record(4, seq(12), "c", row(2)), record(5, seq(13), "c", row(3))), 1, "q")
    assert landed(spark, lake) == [(10, 0), (11, 0), (12, 0), (13, 0)]


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    landing = Landing(spark, pipeline, lake)
    one, two = records(spark, record(0, seq(1), "c", row(1))), records(spark, record(1, seq(2), "c", row(2)))
    for batch, number in ((one, 0), (two, 1), (two, 1)):
        landing._batch(batch, number, "q")
    assert landed(spark, lake) == [(1, 0), (2, 0)]
    assert Marks(lake, "q").before(1) == [("shop.shop.items", 0, list(seq(1)), 1_700_000_000_000)]


def test_a_new_checkpoint_reads_everything_again_and_lands_only_what_is_new(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    landing = Landing(spark, pipeline, lake)
    landing._batch(records(spark, record(0, seq(1), "c", row(1))), 0, "q")
    landing._batch(records(spark, record(1, seq(2), "c", row(2))), 1, "q")
    everything = [record(n, seq(n + 1), "c", row(n + 1)) for n in range(3)]
    anew = Landing(spark, pipeline, lake)
    anew._batch(records(spark, *everything), 0, "another")
    assert landed(spark, lake) == [(1, 0), (2, 0), (3, 0)]
    assert anew.landed == 1  # the old query's batch 0 is not counted again


def test_a_new_checkpoint_lands_nothing_again_of_a_batch_whose_marks_were_never_written(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    """The run died in between, and before the next one the checkpoint was moved away. That one may die there too."""

    def crash(point: str) -> None:
        if point == "changes written":
            raise CrashError

    everything = [record(n, seq(n + 1), "c", row(n + 1)) for n in range(4)]
    Landing(spark, pipeline, lake)._batch(records(spark, *everything[:1]), 0, "q")
    with hooked(crash), pytest.raises(CrashError):
        Landing(spark, pipeline, lake)._batch(records(spark, *everything[1:3]), 1, "q")
    with hooked(crash), pytest.raises(CrashError):
        Landing(spark, pipeline, lake)._batch(records(spark, *everything), 0, "another")
    anew = Landing(spark, pipeline, lake)
    anew._batch(records(spark, *everything), 0, "another")
    assert landed(spark, lake) == [(n + 1, 0) for n in range(4)]
    assert anew.landed == 1  # it comes again as it was, and is counted
    assert Marks(lake, "another").before(1) == [("shop.shop.items", 0, list(seq(4)), 1_700_000_000_000)]


def test_a_truncation_lands_from_each_partition(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    told = {"name": "shop", "db": "shop", "table": "items", "ts_ms": 1_700_000_000_000, "seq": list(seq(8))}
    value = json.dumps({"before": None, "after": None, "source": told, "op": "t"}).encode()
    truncations = [(None, value, "shop.shop.items", partition, 1) for partition in (0, 1)]
    batch = records(spark, record(0, seq(7), "c", row(1)), *truncations)
    Landing(spark, pipeline, lake)._batch(batch, 0, "q")
    found = spark.read.format("delta").load(lake.changes).select("op", "tbl", "key", "schema", "partition").collect()
    ops = sorted((r["op"], r["tbl"], r["partition"]) for r in found)
    assert ops == [("c", "shop.items", 0), ("t", "shop.items", 0), ("t", "shop.items", 1)]


@pytest.mark.parametrize(
    "value",
    [b"no json", b"{}", b'{"op":"c","after":{"id":1},"source":{"db":"shop","table":"items"}}'],
    ids=["no JSON", "no envelope", "no position"],
)
def test_a_record_that_is_no_change_stops_the_job(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, value: bytes
) -> None:
    wrong = [(b"k", value, "shop.shop.items", 1, offset) for offset in (7, 9)]
    batch = records(spark, record(0, seq(1), "c", row(1)), *wrong)
    with pytest.raises(LakeError, match=r"2 record\(s\).*topic shop\.shop\.items, partition 1, offset 7"):
        Landing(spark, pipeline, lake)._batch(batch, 0, "q")
    assert not lake.is_table(lake.changes) or landed(spark, lake) == []


def test_records_of_another_pipeline_in_the_topic_are_left_to_it(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    theirs = [record(n, seq(900 + n), "c", row(100 + n), pipeline="other") for n in (0, 2)]
    ours = [record(n, seq(n), "c", row(n)) for n in (1, 3)]
    Landing(spark, pipeline, lake)._batch(records(spark, *theirs, *ours), 0, "q")
    assert landed(spark, lake) == [(1, 0), (3, 0)]


def test_tombstones_are_no_changes(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    batch = records(spark, record(0, seq(1), "d", None, row(1)), (b'{"id":1}', None, "shop.shop.items", 0, 1))
    Landing(spark, pipeline, lake)._batch(batch, 0, "q")
    assert landed(spark, lake) == [(1, 0)]


def read_up_to(lake: Lake, offset: int) -> Path:
    """The checkpoint of a query that has read the topic of items so far."""
    checkpoint = Path(lake.checkpoint("changes"))
    for name, text in (("commits", "v1\n{}"), ("offsets", f'v1\n{{}}\n{{"shop.shop.items":{{"0":{offset}}}}}')):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text(text)
    return checkpoint


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({("shop.shop.items", 0): 300}, "ends at 300 and was read up to 5000: the topic was made again or cut"),
        ({("shop.shop.items", 0): 0}, "ends at 0 and was read up to 5000"),
        ({("shop.shop.lines", 0): 7}, "partition 0 of shop.shop.items is gone"),
        ({}, "partition 0 of shop.shop.items is gone"),
    ],
    ids=["made again", "made again and empty", "gone", "all gone"],
)
def test_a_topic_that_lost_what_was_read_stops_the_job(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, ends: Ends, said: str
) -> None:
    checkpoint = read_up_to(lake, 5000)
    landing = Landing(spark, pipeline, lake)
    with pytest.raises(LakeError, match=f"deleted from Kafka.*{said}.*Move {checkpoint} away.*DAG shop.snapshot"):
        landing.run(ends, {})
    landing.run({("shop.shop.items", 0): 5000}, {})


@pytest.mark.parametrize("end", [0, 3], ids=["empty", "with records"])
def test_one_made_again_of_which_nothing_was_read_may_have_had_records(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    """They are noted as lost, once: a snapshot that began behind them brings them."""
    Path(lake.changes).parent.mkdir(parents=True)
    read_up_to(lake, 5000)
    monkeypatch.setattr(Broker, "begins", lambda _, partitions: dict.fromkeys(partitions, 0))
    monkeypatch.setattr(Broker, "first", lambda *_: [0, 1, 70, 0, 0] if end else None)
    monkeypatch.setattr(Landing, "_short", lambda *_: [])
    items, lines = "shop.shop.items", "shop.shop.lines"
    landing, ends = Landing(spark, pipeline, lake), {(items, 0): 5000, (lines, 0): 0}
    landing.run(ends, {items: "one", lines: "two"}, checkpoint(90))
    assert Losses(lake).known == {}
    landing.run({(items, 0): 5000}, {items: "one"}, checkpoint(91))  # while it is not there
    for pos in (95, 99):
        landing.run({**ends, (lines, 0): end}, {items: "one", lines: "three"}, checkpoint(pos))
        [loss] = Losses(lake).known.values()
        assert (loss.topic, loss.partition, loss.until) == (lines, 0, [0, 1, 70, 0, 0] if end else [0, 1, 95, -1, -1])
    assert Losses(lake).of([items], None, {}) is None


def test_a_topic_made_again_is_told_by_its_id_though_its_end_is_past_the_old_offsets(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    Path(lake.changes).parent.mkdir(parents=True)
    checkpoint = read_up_to(lake, 5000)
    landing = Landing(spark, pipeline, lake)
    ends = {("shop.shop.items", 0): 5000, ("shop.shop.lines", 0): 0}
    landing.run(ends, {"shop.shop.items": "one"})  # a lake of before ids were kept takes those that it finds
    landing.run(ends, {"shop.shop.items": "one", "shop.shop.lines": "two"})
    landing.run(ends, {})  # a broker without ids
    ends["shop.shop.items", 0] = 9000
    with pytest.raises(LakeError, match=r"shop\.items was deleted and made again.*Move .* away.*DAG shop\.snapshot"):
        landing.run(ends, {"shop.shop.items": "other", "shop.shop.lines": "two"})
    checkpoint.rename(checkpoint.with_name("away"))
    assert TopicIds(lake, str(checkpoint)).made_again({"shop.shop.items": "other"}, {}) is None
