"""A snapshot job that is killed under writes is gone on with by the next one, and the lake equals the source."""

from __future__ import annotations

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.snapshot import snapshot
from spark.lake import unfinished
from spark.lake.lake import Lake
from stack.mysql import MySQL
from tests.integration.spark_jobs import kill
from tests.integration.streaming import Make, execute, insert, rows

ROWS = 4000


@pytest.mark.soak
def test_a_killed_job_is_gone_on_with(
    make: Make, mysql: MySQL, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    monkeypatch.setattr(unfinished, "SILENT", unfinished.BEATS + 1)
    streamer = make("cutoff").started()
    insert(mysql, "cutoff", 0, ROWS)
    streamer.file.write_text(streamer.file.read_text() + "snapshot: {chunk_rows: 100, parallelism: 1}\n")
    streamer.wait_until_released()
    lake = Lake(spark, load(streamer.file))

    def reached() -> bool:
        progress = [one.progress("cutoff", "t") for one in unfinished.unfinished(lake)]
        return any(one is not None and len(one.parts) >= 2 for one in progress)

    kill("snapshot", streamer.file, {"TEST_PASSWORD": mysql.password}, reached)
    [left] = unfinished.unfinished(lake)
    changed = "UPDATE cutoff.t SET v = v + 1 WHERE id % 3 = 0", "DELETE FROM cutoff.t WHERE id % 7 = 0"
    execute(mysql, *changed, "UPDATE cutoff.t SET id = id + 100000 WHERE id % 11 = 0")
    insert(mysql, "cutoff", 200_000, 50)
    facts = snapshot(spark, load(streamer.file), [])
    assert facts["snapshot"] == left.id
    assert "cutoff.t: goes on behind its first " in capsys.readouterr().out
    streamer.wait_until_released()
    compact(spark, load(streamer.file))
    path = streamer.file.parent / "lake" / "cutoff" / "cutoff" / "t"
    found = pl.scan_delta(str(path)).select("id", "v", "name").collect().rows()
    assert sorted(found) == sorted(rows(mysql, "cutoff.t").values())
