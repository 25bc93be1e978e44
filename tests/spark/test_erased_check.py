"""A check during which rows were erased: with a row its deletion goes, too, so that the lake cannot be led back to what
the source answered.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.pipeline_columns import Columns
from contract.status import parse
from spark.compaction import compaction
from spark.lake.erasures import Begun, Erased, Erasures
from spark.lake.lake import Lake
from spark.proof.answer import Answer, Opened
from spark.proof.boundary import Read
from spark.proof.checksum import totals
from spark.proof.differences import CHUNK, EXTRA, MISSING, Difference, found_last, latest
from spark.proof.noted import keep
from spark.proof.splits import Ranges
from spark.proof.verification import Verification
from spark.tables.schema import Schemas
from tests import checkpoints
from tests.spark.changes_by_hand import ITEMS
from tests.spark.changes_by_hand import record as kafka_record
from tests.spark.lake_by_hand import stage
from tests.spark.test_erasing import checkpoint, erasing, item, land, stats

__all__ = ["stats"]

OTHER = ITEMS.model_copy(update={"table": "others"})
LOW, READ, GONE, UNTIL = 20, 25, 30, 900  # the check begins, reads, and row 1 is deleted; then it is erased


def answered(spark: SparkSession, *ids: int, seen: int = LOW, high: int = READ) -> Answer:
    """The source's, of a table of these rows."""
    rows = spark.createDataFrame([(n, "a", "1.00") for n in ids], "id int, name string, price string")
    split = Ranges((ITEMS.columns[0],), [])
    [total] = totals(rows.withColumn("price", fn.col("price").cast("decimal(10,2)")), ITEMS, fn.lit(0)).values()
    read = Read({0: total}, f"{checkpoints.SOURCE}:1-{seen}", (0, 1, high))
    return Answer(Columns().show(ITEMS), split, [read])


@pytest.fixture
def check(stats: None, spark: SparkSession, lake: Lake) -> Verification:
    """Of a table of which row 1 was deleted and erased behind its beginning."""
    stage(spark, lake, "1", 5, item(1), item(2), item(3))
    land(spark, lake, kafka_record(0, (0, 1, 11, 0, 0), "c", item(4), None))
    compaction.compact(spark, lake.pipeline)
    land(spark, lake, kafka_record(1, (0, 1, GONE, 0, 0), "d", None, item(1)))
    made = erasing(spark, lake, hours=168, pos=UNTIL)
    made.erasures.end(made.run())
    source: Any = SimpleNamespace(executed=lambda: "")
    return Verification(spark, lake.pipeline, lake, source, checkpoint(LOW), lambda line: None)


def test_a_row_that_was_erased_while_it_was_checked_is_no_alarm(check: Verification, spark: SparkSession) -> None:
    status = parse(check.lake.text(check.lake.status) or "")
    schemas = Schemas([ITEMS])
    assert check.compare(answered(spark, 2, 3, 4), status, schemas).boundary is not None
    found = check.compare(answered(spark, 1, 2, 3, 4), status, schemas)
    assert (found.boundary, check.lost) == (None, {"shop.items"})
    assert found.reason == "rows were erased while it was checked: verify again"
    check.lost.clear()
    later = answered(spark, 1, 2, 3, 4, seen=UNTIL, high=950)
    assert check.compare(later, status, schemas).reason is None, "what was read behind the erasure is as ever"
    check.low = checkpoint(UNTIL)
    assert check.compare(answered(spark, 1, 2, 3, 4), status, schemas).reason is None, "so is another check"
    assert check.lost == set()


@pytest.mark.soak
def test_of_an_erased_row_no_difference_has_the_key(check: Verification, spark: SparkSession) -> None:
    status = parse(check.lake.text(check.lake.status) or "")
    rows = spark.createDataFrame([(n, "a", "1.00") for n in (1, 2, 3, 4)], "id int, name string, price string")
    rows = rows.withColumn("price", fn.col("price").cast("decimal(10,2)"))
    opened = Opened(answered(spark, 1, 2, 3, 4), [0], rows, f"{checkpoints.SOURCE}:1-{LOW}", (0, 1, READ))
    [told] = check._pinned(opened, status, Schemas([ITEMS]))
    assert (told.kind, told.key) == (CHUNK, None)
    [told] = check._pinned(replace(opened, seen=f"{checkpoints.SOURCE}:1-{UNTIL}"), status, Schemas([ITEMS]))
    assert (told.kind, told.key) == (MISSING, '{"id":1}')


def test_nothing_is_taken_up_of_what_was_read_before_it(lake: Lake) -> None:
    erased = Erased(tbl="shop.items", hash="h", until=(0, 1, 900), gtid_set=checkpoint(900).gtid_set)
    Erasures(lake).begin(Begun(id="x", tbl="shop.items", hashes=["h"]), [erased])
    kept = SimpleNamespace(drop_if=Mock(), low=checkpoint(LOW))
    made: Any = SimpleNamespace(lake=lake, pipeline=lake.pipeline, low=kept.low, reading=SimpleNamespace(kept=kept))
    Verification._drop_altered(made, [("shop", "items"), ("shop", "other")])
    [dropped] = kept.drop_if.mock_calls
    name, lost = dropped.args
    assert (name, lost(Read({}, "", (0, 1, 950)))) == ("shop.items", True)
    kept.low = checkpoint(900)
    Verification._drop_altered(made, [("shop", "items")])
    assert len(kept.drop_if.mock_calls) == 1, "all of it was read behind the erasure"


@pytest.mark.soak
def test_what_it_found_is_noted_without_what_was_erased_meanwhile(stats: None, spark: SparkSession, lake: Lake) -> None:
    """The erasure had the lake's slot while the check waited for it, to note what it had found."""
    stage(spark, lake, "1", 5, item(1), item(2))
    compaction.compact(spark, lake.pipeline)
    source: Any = SimpleNamespace(executed=lambda: "")
    check = Verification(spark, lake.pipeline, lake, source, checkpoint(LOW), lambda line: None)
    answers = [answered(spark, 1, 2), replace(answered(spark, 1), shown=Columns().show(OTHER))]
    found = [Difference("shop", "items", EXTRA, f'{{"id":{n}}}') for n in (1, 2)]
    found += [Difference("shop", table, CHUNK, None, (), "id < 1", "id < 1") for table in ("items", "others")]
    made = erasing(spark, lake, hours=168, pos=UNTIL)
    made.erasures.end(made.run())
    facts: dict[str, Any] = {"tables": {one.name: {"equal": False} for one in answers}, "expectations": {}}
    keep(check, datetime.now(UTC), facts, answers, found)
    assert [(one.kind, one.key) for one in latest(spark, lake, "shop", "items")] == [(EXTRA, '{"id":2}')]
    assert len(latest(spark, lake, "shop", "others")) == 1
    check.reading.found = found_last(spark, lake)
    keep(check, datetime.now(UTC), facts, answers, [one for one in found if one.key != '{"id":2}'])
    assert latest(spark, lake, "shop", "items") == []
    assert facts["tables"]["shop.items"]["reason"] == "rows were erased while it was checked: verify again"
    assert check.lost == {"shop.items"}
