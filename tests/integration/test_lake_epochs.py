"""What the streamer's checkpoints and epochs mean to the lake, with Kafka's records made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Tables
from contract.shown_by import Rule
from spark.compaction.compaction import compact
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from stack.kafka import Kafka
from streamer import joined
from streamer.lake import Lake as SeenByStreamer
from tests import checkpoints
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.spark.changes_by_hand import ITEMS, record

NAME = "newepoch"
TABLE = ITEMS.model_copy(update={"db": NAME})
ROWS = [{"id": 1, "name": f"v{n}", "price": "1.00"} for n in range(4)]


def change(epoch: int, n: int) -> tuple[bytes, bytes]:
    """Transaction n: an insert, updates, and in the end a delete."""
    before, after = ROWS[n - 1] if n > 1 else None, ROWS[n] if n < len(ROWS) else None
    op = "c" if before is None else "d" if after is None else "u"
    key, value, *_ = record(0, (epoch, 9 - epoch, n, 0, 0), op, after, before, TABLE, pipeline=NAME)
    return key, value


def test_what_comes_again_moves_no_row_back(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Pitfall "Duplicates after a crash": the streamer was killed behind its last checkpoint, and went on from another
    server. Neither does a run in the middle of it see an older row, nor has history a change twice."""
    pipeline, topic, schemas = pipeline_of(tmp_path, kafka, NAME), f"{NAME}.{NAME}.items", f"{NAME}.schemas"
    make_topics(kafka, topic, schemas)
    send(kafka, schemas, (b"1", TABLE.model_dump_json().encode()))

    def lake() -> tuple[list[Any], list[Any], int]:
        """The rows' names, the history's, and how many changes the status tells of."""
        told = compact(spark, pipeline)["tables"][f"{NAME}.items"]
        root = tmp_path / "lake" / NAME
        history = pl.scan_delta(str(root / "_changes")).select("gtid", "_seq").collect().rows()
        rows = pl.scan_delta(str(root / NAME / "items")).select("name").collect().rows()
        return [name for (name,) in rows], sorted((gtid, seq["epoch"]) for gtid, seq in history), told["changes"]

    send(kafka, topic, *(change(0, n) for n in (1, 2, 3)))
    first = [("u:1", 0), ("u:2", 0), ("u:3", 0)]
    assert lake() == (["v3"], first, 3)
    send(kafka, topic, change(1, 2))
    assert lake() == (["v3"], first, 0)
    send(kafka, topic, change(1, 3), change(1, 4))
    assert lake() == ([], [*first, ("u:4", 1)], 1)


def test_a_table_that_was_excluded_for_a_time_counts_as_not_snapshotted(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    pipeline = pipeline_of(tmp_path, kafka, "regained")
    make_topics(kafka, "regained.commit-log")
    applied = AppliedSnapshots(Lake(spark, pipeline))
    facts = {"p0": "", "p1": "", "rows": 0, "applied_at": 1}
    for table in ("kept", "left"):
        applied.note(("regained", table), Applied(id="1", floor=[0, 1, 50, -1, -1], **facts))
    both = Tables(include=("regained.*",))
    checkpoint = checkpoints.checkpoint(pipeline="regained", pos=20, ts_ms=1_700_000_000_000, tables=both)

    def unread() -> dict[str, str]:
        found = status.read(pipeline)
        return {t.table: t.unread for t in found.tables.values() if t.unread} if found else {}

    def at(pos: int, tables: Tables) -> dict[str, tuple[bool, bool]]:
        """A run, when the streamer has come to a place from which it follows these tables: which have a snapshot, and
        are complete up to some time."""
        nonlocal checkpoint
        checkpoint = checkpoint.model_copy(update={"pos": pos}).following(tables)
        send(kafka, "regained.commit-log", (b"regained", checkpoint.model_dump_json().encode()))
        compact(spark, pipeline)
        found = status.read(pipeline)
        assert found is not None
        return {t.table: (t.snapshot is not None, t.freshness_ms is not None) for t in found.tables.values()}

    assert at(60, both) == {"kept": (True, True), "left": (True, True)}
    checkpoint = checkpoint.model_copy(update={"pos": 70}).following(Tables(include=("regained.kept",)))
    assert at(80, both) == {"kept": (True, True), "left": (False, False)}
    assert unread().keys() == {"left"}
    checkpoint = checkpoint.model_copy(update={"earlier": ()})  # it keeps no more than the last lists
    # One that nobody has changed since it joined; and another table's rows under a name that has a snapshot.
    checkpoint = checkpoint.joining({"regained.new": True, "regained.kept": True}, (0, 1, 85))
    assert at(90, both) == {"kept": (True, False), "left": (False, False), "new": (False, False)}
    assert "followed since binlog file 1, position 85" in unread()["new"]
    assert "run the snapshot DAG" in unread()["kept"]
    assert joined.unread(checkpoint, SeenByStreamer(pipeline).read).keys() == {"regained.new", "regained.kept"}
    for table, floor in (("left", 90), ("kept", 84), ("new", 85)):
        applied = Applied(id="2", floor=[0, 1, floor, -1, -1], **facts)
        AppliedSnapshots(Lake(spark, pipeline)).note(("regained", table), applied)
    assert at(99, both) == {"kept": (True, False), "left": (True, True), "new": (True, True)}
    assert joined.over(checkpoint, SeenByStreamer(pipeline).read) == ["regained.new"], "the streamer hears of it"


def test_a_table_whose_rules_changed_behind_its_snapshot_says_so_until_the_next(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    pipeline = pipeline_of(tmp_path, kafka, "reruled")
    make_topics(kafka, "reruled.commit-log")
    applied = AppliedSnapshots(Lake(spark, pipeline))
    facts = {"p0": "", "p1": "", "rows": 0, "applied_at": 1}
    for table in ("masked", "plain"):
        applied.note(("reruled", table), Applied(id="1", floor=[0, 1, 50, -1, -1], rules="old", **facts))
    first = checkpoints.checkpoint(pipeline="reruled", pos=60, ts_ms=1_700_000_000_000).showing("old", ())
    begun = first.showing("new", (Rule(tables=("reruled.masked",), mark="m"),)).model_copy(update={"pos": 70})

    def outdated() -> dict[str, str | None]:
        send(kafka, "reruled.commit-log", (b"reruled", begun.model_dump_json().encode()))
        told = compact(spark, pipeline)["tables"]
        found = status.read(pipeline)
        assert found is not None
        assert {t.table: t.outdated for t in found.tables.values()} == {
            name.removeprefix("reruled."): facts["outdated"] for name, facts in told.items()
        }
        return {t.table: t.outdated for t in found.tables.values()}

    told = outdated()
    assert told["plain"] is None
    assert "up to 2023-11-14 22:13:20 UTC are shown by other columns, keys, transforms or events" in str(told["masked"])
    AppliedSnapshots(Lake(spark, pipeline)).note(
        ("reruled", "masked"), Applied(id="2", floor=[0, 1, 60, -1, -1], rules="new", **facts)
    )
    assert outdated() == {"masked": None, "plain": None}
