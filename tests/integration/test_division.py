"""An edit between a kill and the start after it, by which the same changes become other records: the lake, which takes
what is sent for the first time for what it has, says so until a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.checkpoint import Checkpoint
from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.snapshot import snapshot
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.streaming import Make, Streamer, execute, rows
from tests.integration.test_seek import last
from tests.integration.topic_records import records

EVENTS = "events: [{{tables: ['{name}.t'], drop: [update]}}]\n"
MORE = """records: {{partition_by: single}}
transforms: [{{tables: ["{name}.gate"], script: gate.py}}]
"""
GATE = """\
import os, time

def transform(event):
    while os.path.exists({hold!r}):
        time.sleep(0.05)
    return event
"""


def killed_halfway(
    make: Make, mysql: MySQL, kafka: Kafka, folder: Path, name: str, delivery: str,
    before: Callable[[Streamer], object] = lambda streamer: None,
) -> Streamer:  # fmt: skip
    """In the middle of a transaction of which an update was dropped, and an insert behind that is in Kafka."""
    hold = folder / "hold"
    (folder / "gate.py").write_text(GATE.format(hold=str(hold)))
    streamer = make(name, delivery=delivery)
    streamer.file.write_text(streamer.file.read_text() + (MORE + EVENTS).format(name=name))
    execute(mysql, f"CREATE TABLE {name}.gate (id INT PRIMARY KEY)", f"INSERT INTO {name}.t VALUES (1, 1, 'old')")
    streamer.started()
    execute(mysql, f"INSERT INTO {name}.t VALUES (2, 1, 'old')")
    streamer.wait_until_released()
    before(streamer)
    hold.touch()
    run(
        mysql,
        "BEGIN",
        "UPDATE t SET name = 'new' WHERE id = 2",
        "INSERT INTO t VALUES (3, 1, 'first')",
        "INSERT INTO gate VALUES (1)",
        "COMMIT",
        database=name,
    )
    return streamer


def edited(streamer: Streamer, folder: Path) -> None:
    text = streamer.file.read_text().replace(EVENTS.format(name=streamer.name), "")
    streamer.file.write_text(text)
    (folder / "hold").unlink()


def lake(folder: Path, name: str) -> dict[int, tuple[object, ...]]:
    found = pl.scan_delta(str(folder / "lake" / name / name / "t")).select("id", "v", "name").collect().rows()
    return {row[0]: row for row in found}


@pytest.mark.soak
def test_the_lake_wants_a_snapshot_and_is_equal_by_it(
    make: Make, mysql: MySQL, kafka: Kafka, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    name = "dividing"

    def read(streamer: Streamer) -> None:
        snapshot(spark, load(streamer.file), [f"{name}.t"])

    streamer = killed_halfway(make, mysql, kafka, tmp_path, name, "at_least_once", read)
    streamer.wait_for(lambda status: len(records(kafka, f"{name}.{name}.t")) == 2)
    streamer.kill()
    compact(spark, load(streamer.file))
    assert lake(tmp_path, name)[2] == (2, 1, "old"), "updates are left out"

    edited(streamer, tmp_path)
    execute(mysql, f"UPDATE {name}.t SET v = 2 WHERE id = 1")
    streamer.started().wait_until_released()
    assert "by other rules than before" in streamer.log()
    pipeline = load(streamer.file)
    compact(spark, pipeline)
    told = status.read(pipeline)
    assert told is not None
    table = told.tables[f"{name}.t"]
    assert (table.snapshot, table.freshness_ms) == (None, None)
    execute(mysql, f"INSERT INTO {name}.t VALUES (4, 1, 'later')")
    streamer.wait_until_released()
    snapshot(spark, pipeline, [f"{name}.t"])
    execute(mysql, f"INSERT INTO {name}.t VALUES (5, 1, 'last')")
    streamer.wait_until_released()
    compact(spark, pipeline)
    told = status.read(pipeline)
    assert told is not None
    assert told.tables[f"{name}.t"].snapshot is not None
    assert lake(tmp_path, name) == rows(mysql, f"{name}.t")


def test_of_exactly_once_delivery_nothing_is_visible_that_would_be_lacking(
    make: Make, mysql: MySQL, kafka: Kafka, tmp_path: Path
) -> None:
    name = "dividingonce"
    streamer = killed_halfway(make, mysql, kafka, tmp_path, name, "exactly_once")
    streamer.wait_for(lambda status: status["queue"]["events"])
    streamer.kill()
    edited(streamer, tmp_path)
    streamer.started().wait_until_released()
    assert "by other rules" not in streamer.log()
    found: Checkpoint = last(kafka, name)
    assert found.since(name, "t") is None
    assert [(one.key["id"], one.value["op"]) for one in records(kafka, f"{name}.{name}.t")] == [
        (2, "c"), (2, "u"), (3, "c"),
    ]  # fmt: skip
