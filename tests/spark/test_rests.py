"""A connection that rested while others worked is asked whether it is still there before it is used again: servers hang
up, and what is in between does.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from spark.erasing import source as erasing
from spark.mending import from_source
from spark.mending.from_source import SourceParts
from spark.proof import reading
from spark.proof.answer import Answer
from spark.proof.splits import Ranges
from spark.snapshot import table_read
from spark.snapshot.load import Load
from spark.snapshot.snapshot import Staging
from spark.snapshot.table_read import TableRead
from tests.checkpoints import checkpoint
from tests.spark.changes_by_hand import ITEMS

SHOWN = Columns().show(ITEMS)
ANSWER = Answer(SHOWN, Ranges((ITEMS.columns[0],), []), [])


class Server:
    """Hangs up in each rest."""

    replica = None

    def __init__(self, pipeline: Pipeline) -> None:
        rules = pipeline.snapshot.model_copy(update={"max_threads_running": 9})
        self.pipeline, self.there = pipeline.model_copy(update={"snapshot": rules}), True

    def rest(self) -> None:
        self.there = False

    def awake(self) -> None:
        self.there = True

    def used(self, *_: Any) -> None:
        if not self.there:
            raise pymysql.OperationalError(4031, "The client was disconnected by the server because of inactivity")

    wait_for = used

    def rounded(self, *_: Any) -> frozenset[str]:
        return frozenset()

    refuse_short_years = used

    def row(self, *_: Any) -> tuple[str, int]:
        self.used()
        return "Threads_running", 1

    def rows(self, *_: Any) -> list[Any]:
        self.used()
        return []

    def schema(self, db: str, table: str) -> Any:
        self.used()
        return ITEMS

    def made(self, db: str, table: str) -> str:
        self.used()
        return "2026-01-01 00:00:00"

    def snapshots(self, db: str, table: str) -> bool:
        self.used()
        return True

    def seen(self) -> str:
        self.used()
        return ""

    def position(self) -> tuple[str, int]:
        self.used()
        return "binlog.000001", 4


@pytest.fixture
def server(pipeline: Pipeline) -> Any:
    return Server(pipeline)


def places(*resting: Any) -> Any:
    """A wait for the streamer."""

    def now() -> Any:
        for server in resting:
            server.rest()
        return checkpoint()

    return SimpleNamespace(job="the snapshot", now=now)


def reading_of(server: Any) -> reading.Reading:
    none: Any = None
    return reading.Reading(none, server.pipeline, server, 0, none, lambda line: None)


def test_behind_the_reads_of_a_table_by_other_connections(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> Answer:
        server.rest()
        return ANSWER

    monkeypatch.setattr(reading.Reading, "_read", read)
    assert reading_of(server)._unless_altered(ITEMS, server.made("shop", "items")) is ANSWER


def test_behind_the_count_of_the_rows_of_chunks_that_differ(server: Any) -> None:
    rows = SimpleNamespace(persist=lambda _: rows, unpersist=lambda: None, count=lambda: server.rest() or 1)
    mine = reading_of(server)
    mine.chunks.rows = lambda *_, **__: rows  # type: ignore[assignment, method-assign]
    opened = mine.open(ANSWER, [0])
    assert opened is not None
    assert opened.high == (0, 1, 4)


def test_behind_the_wait_for_the_streamer(server: Any) -> None:
    replica: Any = Server(server.pipeline)
    for asked in (server, replica):
        staging = Staging.__new__(Staging)
        staging.source, staging.reading, staging.places = server, asked, places(server, replica)
        assert staging.begin() == checkpoint()


def test_rows_are_read_behind_all_that_was_sent(server: Any) -> None:
    """Not where a start goes on: of MariaDB's GTIDs that is before an open XA transaction, for a replica too soon."""
    sent, asked = checkpoint(gtid_set="0-1-99", seen_set="0-1-500"), list[str]()
    staging = Staging.__new__(Staging)
    staging.source, staging.places = server, SimpleNamespace(job="", now=lambda: sent)  # type: ignore[assignment]
    reader: Any = SimpleNamespace(awake=lambda: None, replica=True, wait_for=lambda set, *_: asked.append(set))
    staging.reading = reader
    assert staging.begin() == sent
    assert asked == ["0-1-500"]


def test_behind_that_of_an_erasure(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "streamed", lambda *_: nullcontext(server))
    monkeypatch.setattr(erasing, "Places", lambda *_, **__: places(server))
    keys: Any = [SimpleNamespace(values={"id": 1}, text='{"id":1}')]
    broker: Any = SimpleNamespace(checkpoint=checkpoint)
    assert erasing.place_without(server.pipeline, broker, "shop", "items", keys) == checkpoint()


def test_before_each_group_of_a_snapshot(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Any] = []
    monkeypatch.setattr(TableRead, "_groups", lambda _: (group for group in [("a", None), ("b", None)]))
    monkeypatch.setattr(TableRead, "_part", lambda _, *group: (parts.append(group), server.rest()))
    monkeypatch.setattr(TableRead, "_told", lambda *_: server.rest())
    job: Any = SimpleNamespace(lake=None, folder="", id="1", prove_own=lambda: None, note=lambda _: None)
    progress: Any = SimpleNamespace(shape=ITEMS, version=0, whole=False, rows=0, parts=[])
    staged = SimpleNamespace(back_to=lambda _: None, begin=lambda _: None)
    monkeypatch.setattr(table_read, "StagedRows", lambda *_: staged)
    server.rest()  # while the table before was read
    none: Any = None
    TableRead(none, server, Load(server.pipeline.snapshot, server), none, job, progress, print).run()
    assert parts == [("a", None), ("b", None)]


def test_before_each_group_of_a_part(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame: Any = SimpleNamespace(
        coalesce=lambda _: frame, mode=lambda _: frame, parquet=lambda _: server.rest() or frame
    )
    frame.write, frame.schema, frame.read, frame.count = frame, lambda _: frame, frame, lambda: 7
    monkeypatch.setattr(from_source, "rows_of", lambda *_: frame)
    monkeypatch.setattr(SourceParts, "_conditions", lambda *_: iter([(["a"], ""), (["b"], "")]))
    load = Load(server.pipeline.snapshot, server)
    staging: Any = SimpleNamespace(
        pipeline=server.pipeline, spark=frame, reading=server, load=load, tell=lambda line: None
    )
    chosen: Any = SimpleNamespace(told="its rows")
    none: Any = None
    assert SourceParts(staging, "repair", "me", none)._rows(SHOWN, chosen, "folder") == 7
