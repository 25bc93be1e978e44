"""The source's clock is set back by an hour, over midnight: rows, days and freshness are what they are to be, the past
is one of states that the source had, and what a retention has removed is missed by nobody in silence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from readers.errors import LakeReadError
from readers.lake import query
from spark.compaction import compaction
from spark.errors import LakeError
from spark.history.history import History
from spark.history.retention import Retention, today
from spark.jobs import backfill as job
from spark.jobs.backfill import backfill
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.unfinished import Plan, Progress, Unfinished
from spark.landing.changes import Landing
from tests.spark.changes_by_hand import ITEMS, record, records
from tests.spark.lake_by_hand import checkpoint, executed, item, stage

Compact = Callable[[], dict[str, Any]]
DAYS = 5
MIDNIGHT = datetime.combine(today(), datetime.min.time(), UTC) - timedelta(DAYS)


def at(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def place(pos: int, row: int = 0) -> tuple[int, ...]:
    """The clock goes back inside a binlog file, and is back in the one behind it."""
    return 0, 1 if pos < 40 else 2, pos, 0, row


def sent(pos: int, minute: int, op: str, n: int, before: str | None, after: str, row: int = 0) -> tuple[Any, ...]:
    image, ts_ms = None if before is None else item(n, before), int(at(minute).timestamp() * 1000)
    return record(pos * 10 + row, place(pos, row), op, item(n, after), image, ts_ms=ts_ms)


BEFORE = [sent(10, -30, "c", 1, None, "a"), sent(10, -30, "c", 2, None, "a", 1), sent(20, 10, "u", 1, "a", "b")]
SET_BACK = [
    sent(30, -35, "u", 1, "b", "c"), sent(30, -35, "u", 2, "a", "c", 1),
    sent(40, -10, "u", 2, "c", "d"),
    sent(50, 5, "c", 3, None, "a"),
    sent(60, 30, "u", 1, "c", "e"),
]  # fmt: skip
STATES = {
    -30: [(1, "a"), (2, "a")],
    9: [(1, "a"), (2, "a")],
    10: [(1, "c"), (2, "d"), (3, "a")],
    29: [(1, "c"), (2, "d"), (3, "a")],
    30: [(1, "e"), (2, "d"), (3, "a")],
}


@pytest.fixture
def lake(spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact) -> Lake:
    """What a streamer sent again, behind a kill, is in it once."""
    stage(spark, lake, "s", 5)
    landing = Landing(spark, pipeline, lake)
    landing._batch(records(spark, *BEFORE, *SET_BACK[:2]), 0, "q")
    again = [(*one[:4], 1000 + n) for n, one in enumerate([*BEFORE[2:], *SET_BACK])]
    landing._batch(records(spark, *again), 1, "q")
    assert landing.landed == 8
    compact()
    return lake


def names(rows: list[Any]) -> list[tuple[int, str]]:
    return sorted((row[0], row[1]) for row in rows)


def past(lake: Lake, minute: int) -> list[tuple[int, str]]:
    """By both readers."""
    found = names(History(lake.spark, lake, "shop", "items").as_of(at(minute)).collect())
    assert names(list(query(lake.pipeline, f"SELECT id, name FROM items_as_of('{at(minute)}')").rows())) == found
    return found


def refused(lake: Lake, minute: int, told: str) -> None:
    with pytest.raises(LakeError, match=told):
        History(lake.spark, lake, "shop", "items").as_of(at(minute))
    with pytest.raises(LakeReadError, match=told):
        list(query(lake.pipeline, f"SELECT * FROM items_as_of('{at(minute)}')").rows())


def cut(lake: Lake, days: int = DAYS) -> list[int]:
    """The places of the changes that stay."""
    standing = status.parse(lake.text(lake.status) or "")
    assert standing.checkpoint is not None
    now = standing.checkpoint.model_copy(update={"ts_ms": int(datetime.now(UTC).timestamp() * 1000)})
    Retention(lake.spark, lake, standing.model_copy(update={"checkpoint": now}), days).run()
    return sorted(row[0] for row in lake.spark.read.format("delta").load(lake.changes).select("_seq.pos").collect())


def applied(lake: Lake, place: tuple[int, ...], moment: datetime) -> None:
    """The snapshot had begun there."""
    snapshots = AppliedSnapshots(lake)
    facts = {"floor": [*place[:3], -1, -1], "p0_ms": int(moment.timestamp() * 1000)}
    snapshots.note(("shop", "items"), snapshots.tables["shop", "items"].model_copy(update=facts))


def test_rows_go_by_their_place_and_changes_lie_in_the_day_that_the_clock_told(lake: Lake) -> None:
    assert names(History(lake.spark, lake, "shop", "items").now().collect()) == STATES[30]
    found = lake.spark.read.format("delta").load(lake.changes).select("day", "_seq.pos").collect()
    days: dict[date, list[int]] = {}
    for row in sorted(found, key=lambda row: row["pos"]):
        days.setdefault(row["day"], []).append(row["pos"])
    assert days == {at(-1).date(): [10, 10, 30, 30, 40], at(0).date(): [20, 50, 60]}


def test_freshness_is_what_the_clock_told_at_last(
    lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, hour = checkpoint(1000), 3_600_000
    back = checkpoint(1001).model_copy(update={"ts_ms": first.ts_ms - hour, "gtid_set": executed(1001)})

    class Later(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.checkpoint = lambda: back  # type: ignore[method-assign]

    monkeypatch.setattr(compaction, "Broker", Later)
    compact()
    told = status.parse(lake.text(lake.status) or "")
    assert told.checkpoint == back
    assert told.tables["shop.items"].freshness_ms == first.ts_ms - hour


def test_the_past_is_a_state_that_the_source_had(lake: Lake) -> None:
    assert {minute: past(lake, minute) for minute in STATES} == STATES
    refused(lake, -31, r"the history of shop\.items begins .*T23:30:00")
    versions = History(lake.spark, lake, "shop", "items").versions()
    for minute, state in STATES.items():
        valid = f"valid_from <= '{at(minute)}' AND coalesce(valid_to > '{at(minute)}', true)"
        assert names(versions.where(valid).collect()) == state
        assert names(list(query(lake.pipeline, f"SELECT id, name FROM items_history WHERE {valid}").rows())) == state


@pytest.mark.soak
def test_a_clock_that_was_ahead_gives_no_old_rows_for_those_of_now(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    Landing(spark, pipeline, lake)._batch(records(spark, sent(70, 10**8, "u", 2, "d", "x")), 2, "q")
    assert past(lake, 29) == STATES[29]
    refused(lake, 31, r"shop\.items: the source's clock was ahead: u:70 says that it was committed at 2")


@pytest.mark.soak  # most of a minute
def test_a_change_goes_no_sooner_than_those_that_came_before_it(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broker:
        def __init__(self, pipeline: Pipeline) -> None:
            self.schemas = lambda: [ITEMS]
            self.checkpoint = lambda: checkpoint(1000)

    monkeypatch.setattr(job, "Broker", Broker)
    assert cut(lake) == [20, 30, 30, 40, 50, 60]
    refused(lake, -1, r"the history of shop\.items begins .*T00:00:00")
    for minute in (0, 9, 10, 29, 30):
        assert past(lake, minute) == STATES[max(minute, 9)]
    applied(lake, place(25), at(10))
    [part] = backfill(spark, pipeline, ["shop.items"])["parts"]
    assert compact()["parts"][part]["rows"] == {}, "of the changes since the snapshot all are there"

    assert cut(lake, DAYS - 1) == []
    applied(lake, place(25), at(2 * 1440))
    with pytest.raises(LakeError, match=r"changes behind the snapshot s were removed .*take the rows from MySQL"):
        backfill(spark, pipeline, ["shop.items"])


@pytest.mark.soak  # half a minute
def test_a_day_that_is_to_come_holds_no_change_back(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    key, value, topic, _, offset = sent(8, 10**8, "c", 9, None, "a")
    Landing(spark, pipeline, lake)._batch(records(spark, (key, value, topic, 1, offset)), 2, "q")
    assert cut(lake) == [8, 20, 30, 30, 40, 50, 60]


def test_what_a_snapshot_under_way_needs_stays(lake: Lake) -> None:
    under_way = Unfinished(lake, "20990101T000000000Z")
    under_way.begin(Plan(tables=["shop.items"], began=datetime.now(UTC).timestamp(), landing=None))
    under_way.note(Progress(shape=ITEMS, made="", p0=checkpoint(25)))
    assert cut(lake) == [10, 10, 20, 30, 30, 40, 50, 60]
