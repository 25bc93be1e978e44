"""What grows over months grows in number, not in depth: hundreds of erasures, tables with old changes, truncations, and
statements over which no past goes on. One condition within the next, they would be deeper than Spark's stack."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from contract.breaks import Break
from contract.kept_history import KeptHistory
from contract.sequence import SPARK_TYPE
from spark.history.going import going
from spark.history.history import History
from spark.history.past_parts import PART, Parts
from spark.lake.erasures import Erased, Erasures, Known
from spark.lake.lake import Lake
from tests import checkpoints
from tests.spark.changes_by_hand import change, changes
from tests.spark.lake_by_hand import item, seq
from tests.spark.test_history import CHANGES, make

MANY = 700
DAY = datetime(2026, 11, 23, tzinfo=UTC)


def erased(lake: Lake, key: str, until: int, gtid_set: str) -> Erased:
    return Erased(
        tbl="shop.items", hash=Erasures(lake).hash_of("shop.items", key), until=(0, 1, until), gtid_set=gtid_set
    )


def test_erasures(spark: SparkSession, lake: Lake) -> None:
    """Row 1: erased behind its change. 2: before it. 3: before it, which an older epoch had sent already. 4: of another
    server's transactions. 5: of none."""
    lake.write(lake.at("_erasures.json"), Known(salt="s").model_dump(mode="json"))
    mine, other = checkpoints.SOURCE, "00000000-0000-0000-0000-000000000001"
    facts = {
        1: (9_000, f"{mine}:1-2"),
        2: (4_000, f"{mine}:1-2"),
        3: (4_000, f"{mine}:1-9:5003"),
        4: (4_000, f"{other}:1-9999"),
    }
    known = [erased(lake, f'{{"id":{n}}}', until, gtids) for n, (until, gtids) in facts.items()]
    known += [erased(lake, f'{{"id":{n}}}', n, f"{mine}:1-{n}") for n in range(100, 100 + MANY)]
    lake.write(lake.at("_erasures.json"), Known(salt="s", erased=known).model_dump(mode="json"))
    landed = changes(spark, *[change(seq(5000 + n), "c", item(n)) for n in range(1, 6)])
    landed = landed.selectExpr("*", f"concat('{mine}:', _seq.pos) as gtid")
    left = Erasures(lake).without(landed)
    assert left.columns == landed.columns
    assert sorted(row["key"] for row in left.collect()) == [f'{{"id":{n}}}' for n in (2, 4, 5)]


@pytest.mark.soak  # half a minute
def test_tables_with_old_changes(spark: SparkSession) -> None:
    """Of each an old change, and one that came behind a new one and stays with it."""
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    rows = [
        (f"shop.t{n}", ts.date(), (0, file, n, 0, 0), ts)
        for n in range(MANY)
        for file, ts in ((1, old), (2, new), (3, old))
    ]
    frame = spark.createDataFrame(rows, f"tbl string, day date, _seq {SPARK_TYPE}, ts timestamp")
    cuts = {f"shop.t{n}": date(2026, 10, 1) for n in range(MANY)}
    gone, found = going(frame, cuts, date(2026, 11, 25), KeptHistory())
    assert {(one.all, one.last[:2]) for one in found.values()} == {(1, (0, 1))}
    assert len(found) == frame.where(gone).count() == MANY


@pytest.mark.soak
def test_truncations(spark: SparkSession, lake: Lake) -> None:
    cuts = [
        ("shop", "shop.items", None, "t", None, None, None, (0, 2, n, 0, 0), f"u:{n}", DAY + timedelta(minutes=n))
        for n in range(MANY)
    ]
    found = make(spark, lake, [*CHANGES, *cuts]).versions()
    assert {row["valid_to"].astimezone(UTC) for row in found.where("valid_to >= '2026-11-23'").collect()} == {DAY}
    assert History(spark, lake, "shop", "items").changes().where("op = 't'").count() == MANY


@pytest.mark.soak
def test_statements_over_which_no_past_goes_on(spark: SparkSession) -> None:
    broken = [Break(db="shop", table="items", seq=(0, 1, 10 * n), ts_ms=1_000 * n) for n in range(1, MANY + 1)]
    parts = Parts(broken, lambda place: None)
    places = ((0, 1, 5, 0, 0), (0, 1, 15, 0, 0), (0, 1, 10 * MANY, 0, 0))
    rows = spark.createDataFrame(
        [(one, datetime.fromtimestamp(0, UTC)) for one in places], f"_seq {SPARK_TYPE}, ts timestamp"
    )
    found = parts.numbered(rows).select(PART, parts.ended.alias("ended"), parts.last.alias("last")).collect()
    ends = [row["ended"] and row["ended"].timestamp() for row in found]
    assert [(row[PART], row["last"]) for row in found] == [(0, False), (1, False), (MANY, True)]
    assert ends == [1.0, 2.0, None]
