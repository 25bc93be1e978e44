"""Records that are no change, put aside: each once through kills, counted, their tables unequal until a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract import status
from contract.pipeline import Compaction, Pipeline
from readers import noted
from spark.compaction import compaction
from spark.failpoints import hooked
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.landing.changes import Landing
from spark.snapshot.resume import Resume
from tests import checkpoints
from tests.spark.changes_by_hand import ITEMS, record, records
from tests.spark.lake_by_hand import executed, staged

TOPIC = "shop.shop.items"
AT = checkpoints.checkpoint(
    pipeline="shop", server_uuid="u", ts_ms=1_700_000_000_000, pos=1000, gtid_set=executed(1000)
)


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(update={"compaction": Compaction(unreadable="dead_letter")})


@pytest.fixture
def compact(spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """A whole run over what has landed; the broker has nothing new."""

    class Broker:
        def __init__(self, pipeline: Pipeline) -> None:
            self.checkpoint = lambda: AT
            self.topics = self.topic_ids = self.ends = lambda *_: {}
            self.schemas = lambda: [ITEMS]
            self.ddl = lambda read: ([], {})
            self.bounds = lambda topic: {}

    monkeypatch.setattr(compaction, "Broker", Broker)
    return lambda: compaction.compact(spark, pipeline)


def good(n: int) -> tuple[Any, ...]:
    return record(n, (0, 1, n, 0, 0), "c", {"id": n, "name": "a", "price": None})


def bad(offset: int, value: bytes, partition: int = 1, topic: str = TOPIC) -> tuple[Any, ...]:
    return b"\xff key", value, topic, partition, offset


def in_nanoseconds(n: int) -> bytes:
    """A change whose time is no time."""
    value = json.loads(good(n)[1])
    value["source"]["ts_ms"] *= 1_000_000
    return json.dumps(value).encode()


LATE = in_nanoseconds(4)


def poisoned(spark: SparkSession, *more: tuple[Any, ...]) -> Any:
    return records(spark, good(1), bad(7, b"no change \xfe"), good(2), bad(9, b"{}"), good(3), *more)


def put_aside(lake: Lake) -> list[tuple[int, bytes, bytes]]:
    letters = pl.read_delta(lake.at("_dead_letters"))
    assert letters.columns == [*noted.COLUMNS["_dead_letters"]]
    found = letters.select("offset", "record_key", "value").rows()
    return sorted((offset, bytes(key), bytes(value)) for offset, key, value in found)


def positions(lake: Lake) -> list[int]:
    return sorted(seq["pos"] for (seq,) in pl.read_delta(lake.changes).select("_seq").rows())


class CrashError(Exception):
    pass


def crash_at(point: str) -> Callable[[str], None]:
    def crash(reached: str) -> None:
        if reached == point:
            raise CrashError

    return crash


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("records put aside", marks=pytest.mark.soak),
        "changes written",
        pytest.param("marks written", marks=pytest.mark.soak),
    ],
)
def test_each_is_kept_once_as_it_came_and_counted_once_through_a_kill(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Callable[[], dict[str, Any]], point: str
) -> None:
    with hooked(crash_at(point)), pytest.raises(CrashError):
        Landing(spark, pipeline, lake)._batch(poisoned(spark, bad(11, LATE)), 0, "q")
    Landing(spark, pipeline, lake)._batch(poisoned(spark, bad(11, LATE)), 0, "q")
    with hooked(crash_at("letters counted")), pytest.raises(CrashError):
        compact()
    told = compact()
    kept = [(7, b"\xff key", b"no change \xfe"), (9, b"\xff key", b"{}"), (11, b"\xff key", LATE)]
    assert put_aside(lake) == kept
    assert positions(lake) == [1, 2, 3]
    assert (told["unreadable"], told["tables"]["shop.items"]["rows"]) == (3, 3)
    assert compact()["unreadable"] == 0
    standing = status.read(pipeline)
    assert standing is not None
    assert standing.unreadable == 3


def test_its_table_is_unequal_until_a_snapshot_that_began_behind_it(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    older = Resume(lake, AT, print).job(["shop.items"]).plan
    landing = Landing(spark, pipeline, lake)
    landing._batch(poisoned(spark), 0, "q")
    landing._batch(records(spark, bad(4, b"", topic="shop.shop.only_bad")), 1, "q")
    tables = compact()["tables"]
    assert "put aside" in tables["shop.items"]["unequal"]
    assert "run the snapshot DAG, or `headrace snapshot`, for the table" in tables["shop.only_bad"]["unequal"]
    newer = Resume(lake, AT, print).job(["shop.lines"]).plan
    assert older is not None
    assert newer is not None
    stage(spark, lake, "20990101", older.letters)
    assert compact()["tables"]["shop.items"]["unequal"] is not None
    stage(spark, lake, "20990102", newer.letters)
    tables = compact()["tables"]
    assert tables["shop.items"]["unequal"] is None
    assert tables["shop.only_bad"]["unequal"] is not None
    Landing(spark, pipeline, lake)._batch(records(spark, bad(11, b"again")), 2, "q")
    again = compact()
    assert (again["unreadable"], again["tables"]["shop.items"]["unequal"] is None) == (1, False)


def test_each_is_there_once_where_the_topics_are_read_again_and_an_erased_one_stays_empty(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    """By another query, as behind a checkpoint that was moved away. Others may have the places of some by then: of the
    erased one nobody can tell, so it is noted again, by which its table counts as unequal."""
    Landing(spark, pipeline, lake)._batch(poisoned(spark), 0, "q")
    letters = DeltaTable.forPath(spark, lake.at("_dead_letters"))
    letters.update("offset = 9", {"record_key": fn.lit(None), "value": fn.lit(None)})
    again = records(spark, bad(7, b"no change \xfe"), bad(9, b"{}"), bad(7, b"of another topic"), bad(12, b"new"))
    Landing(spark, pipeline, lake)._batch(again, 0, "other")
    found = pl.read_delta(lake.at("_dead_letters")).select("offset", "value").rows()
    known = [(7, b"no change \xfe"), (7, b"of another topic"), (9, None), (9, None), (12, b"new")]
    assert sorted(found, key=str) == sorted(known, key=str)


def stage(spark: SparkSession, lake: Lake, id: str, letters: int) -> None:
    counts, row = {"shop.items": 1}, {"id": 1, "name": "read", "price": None}
    manifest = Manifest(id=id, pipeline="shop", p0=AT, p1=AT.gtid_set, tables=[ITEMS], counts=counts, letters=letters)
    staged(spark, lake, manifest, row)


def test_a_place_with_a_hole_is_no_change_and_not_one_that_is_passed_by(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    key, value, *rest = good(1)
    told = json.loads(value)
    told["source"]["seq"][2] = None
    Landing(spark, pipeline, lake)._batch(records(spark, (key, json.dumps(told).encode(), *rest)), 0, "q")
    assert [offset for offset, _, _ in put_aside(lake)] == [1]
