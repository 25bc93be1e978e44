"""Records that Kafka removed before the lake read them: a table that lacks some says so until a snapshot behind them
has brought its rows, and the others stay clear. What the streamer would write is written by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.lake.lake import Lake
from stack.kafka import Kafka
from tests.integration.by_hand import pipeline_of
from tests.integration.test_lake_topics import made_again
from tests.integration.written import TABLES, Written, lacking

NAME = "removed"


class KilledError(Exception):
    pass


def kill_at(point: str) -> Any:
    def hook(reached: str) -> None:
        if reached == point:
            raise KilledError

    return hooked(hook)


@pytest.mark.soak
def test_tables_that_lack_what_kafka_removed_say_so_until_a_snapshot(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    written = Written(kafka, NAME)
    pipeline = pipeline_of(tmp_path, kafka, NAME)
    lake = Lake(spark, pipeline)
    for n in range(3):
        written.change("early", 10 + n, n)
    written.remove("early", 3)  # before the snapshot looks, which has them
    written.change("quiet", 20, 1)
    written.snapshot(spark, lake, "1", 60)
    written.remove("quiet", 1)  # since, and the snapshot has it all the same
    for n in range(3):
        written.change("late", 70 + n, 7 + n)
    written.change("early", 75, 7)
    written.remove("late", 2)
    written.statement("nothing", 76, "create")
    written.released(90)
    for point in ("loss noted", "landed"):
        with kill_at(point), pytest.raises(KilledError):
            compact(spark, pipeline)
    compact(spark, pipeline)
    assert lacking(pipeline) == ["late"]

    # The statement that was read has gone with its topic, and others have its offset.
    made_again(kafka, f"{NAME}.ddl", 1)
    written.statement("whole", 91)
    written.statement("nothing", 92, "create")
    written.released(95)
    for point in ("loss noted", "statements begun anew"):
        with kill_at(point), pytest.raises(KilledError):
            compact(spark, pipeline)
    told = compact(spark, pipeline)["tables"]
    assert lacking(pipeline) == sorted(TABLES)
    assert f"{NAME}.ddl" in told[f"{NAME}.early"]["unread"]
    assert "partition of whole" in told[f"{NAME}.whole"]["stale"]
    written.snapshot(spark, lake, "2", 100)
    compact(spark, pipeline)
    assert lacking(pipeline) == []

    # What was read of a topic is gone with it, and so is what was not; the way back, without its snapshot.
    made_again(kafka, f"{NAME}.{NAME}.early", 1)
    for n in range(9):
        written.change("early", 120 + n, 20 + n)
    written.released(130)
    with pytest.raises(LakeError, match="was deleted and made again"):
        compact(spark, pipeline)
    Path(lake.checkpoint("changes")).rename(tmp_path / "away")
    compact(spark, pipeline)
    assert lacking(pipeline) == ["early"]

    made_again(kafka, f"{NAME}.schemas", 1)
    written.schemas("late", "quiet", "whole")
    with pytest.raises(LakeError, match=rf"{NAME}\.schemas lacks version 1 of {NAME}\.early.*Bring its records back"):
        compact(spark, pipeline)
    written.schemas("early")
    compact(spark, pipeline)
