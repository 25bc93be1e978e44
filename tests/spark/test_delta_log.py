"""For how long Delta keeps the commits of the lake's tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark.lake.delta_log import FILES, LOG, kept_for, shorten
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import change
from tests.spark.lake_by_hand import AT, NAME, item, land, seq, stage
from tests.spark.test_foreign import Compact


def test_delta_forgets_what_it_knew_where_another_process_wrote_the_lake_meanwhile(
    spark: SparkSession, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hand-off puts another table, with another log, in a table's place."""
    stage(spark, lake, "1", AT, item(1))
    compact()
    forgotten: list[str] = []
    monkeypatch.setattr(Lake, "forget_logs", lambda self: forgotten.append(self.root))
    compact()
    assert forgotten == []
    status = dict(lake.read(lake.status) or {})
    lake.write(lake.status, {**status, "run": status["run"] + 1})
    compact()
    assert forgotten == [lake.root]


def test_of_every_table_that_is_made_it_is_little_more_than_a_week(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """Of `_changes`, and of a table whose place the rows of a snapshot took."""
    land(spark, lake, change(seq(10), "c", item(2)))
    compact()
    first = kept_for(spark, lake.table(*NAME))
    staged = stage(spark, lake, "1", AT, item(1))
    compact()
    assert staged.id in str(spark.sql(f"SHOW TBLPROPERTIES delta.`{lake.table(*NAME)}`").collect())
    assert [one.days for one in (first, kept_for(spark, lake.table(*NAME)), kept_for(spark, lake.changes))] == [8] * 3


@pytest.mark.parametrize("said", [f"'{LOG}' = 'interval 40 days'", f"'{FILES}' = 'interval 20 days'"])
def test_what_somebody_else_said_of_a_table_stays(spark: SparkSession, lake: Lake, said: str) -> None:
    path = lake.at("t")
    spark.range(1).write.format("delta").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{LOG}')")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({said})")
    before = lake.version(path), kept_for(spark, path)
    shorten(spark, path)
    assert (lake.version(path), kept_for(spark, path)) == before
