"""What all checkpoints do, wherever they are kept.

A subclass says how they are opened; where a class of the user's has the port `Documents`:

    class TestMyPositions(CheckpointsSuite):
        def checkpoints(self): return DocumentCheckpoints(PIPELINE, "my table", MyPositions({...}, pipeline))
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator

import pytest

from contract.checkpoint import Checkpoint
from contract.schema import Column, TableSchema
from contract.sequence import Sequence
from streamer.checkpoints.port import Checkpoints

PIPELINE = "suite"
SECONDS = 30.0
SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def checkpoint(number: int) -> Checkpoint:
    """Of a growing place."""
    return Checkpoint(
        pipeline=PIPELINE,
        connector_id=f"headrace-{PIPELINE}",
        server_id=1,
        server_uuid=SOURCE,
        epoch=0,
        file="binlog.000001",
        pos=100 * number,
        gtid_set=f"{SOURCE}:1-{number}",
        ts_ms=number,
        events=number,
        written_at=number,
    )


def schema(table: str, version: int, db: str = "shop") -> TableSchema:
    columns = (Column(name="id", type="int"), Column(name="ä 'quoted' €", type="enum", members=("a,b", "c\n")))
    return TableSchema(
        db=db, table=table, version=version, columns=columns[:version], key=("id",), since=Sequence(0, 1, 4)
    )


class CheckpointsSuite:
    """Each test has a place of its own, which begins empty."""

    @abstractmethod
    def checkpoints(self) -> Checkpoints:
        """New ones over the place of the test, of the pipeline PIPELINE."""

    def turn(self) -> None:
        """What else has to happen so that an offer becomes durable."""

    @pytest.fixture
    def opened(self) -> Iterator[Checkpoints]:
        opened = self.checkpoints()
        yield opened
        opened.close()

    def test_there_is_none_at_first(self, opened: Checkpoints) -> None:
        assert opened.load() is None
        assert opened.durable is None
        assert opened.schemas() == []
        assert opened.settled()
        assert opened.failure is None
        assert opened.title

    def test_what_is_settled_is_there_for_the_next_one(self, opened: Checkpoints) -> None:
        opened.load()
        opened.offer(checkpoint(1))
        self.settle(opened)
        assert opened.durable == checkpoint(1)
        opened.close()
        again = self.checkpoints()
        assert again.load() == checkpoint(1)
        assert again.durable == checkpoint(1)
        again.close()

    def test_of_several_the_last_one_counts(self, opened: Checkpoints) -> None:
        opened.load()
        for number in range(1, 50):
            opened.offer(checkpoint(number))
        self.settle(opened)
        assert opened.durable == checkpoint(49)
        opened.close()
        again = self.checkpoints()
        assert again.load() == checkpoint(49)
        again.close()

    def test_durable_is_never_ahead_of_the_place(self, opened: Checkpoints) -> None:
        opened.load()
        for number in range(1, 20):
            opened.offer(checkpoint(number))
            if opened.durable is not None:
                assert opened.durable.pos <= 100 * number
        self.settle(opened)

    def test_schemas_are_kept(self, opened: Checkpoints) -> None:
        opened.load()
        wanted = [
            schema("orders", 1),
            schema("orders", 2),
            schema("a.b", 1),
            schema("b", 1, "shop.a"),
            schema("c d", 1),
        ]
        for one in wanted:
            self.keep(opened, one)
        opened.offer(checkpoint(1))
        self.settle(opened)
        opened.close()
        again = self.checkpoints()
        assert again.load() == checkpoint(1)
        found = again.schemas()
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
        again.close()

    def test_a_schema_kept_twice_is_one(self, opened: Checkpoints) -> None:
        opened.load()
        for _ in range(2):
            self.keep(opened, schema("orders", 1))
        assert opened.schemas() == [schema("orders", 1)]

    def keep(self, opened: Checkpoints, one: TableSchema) -> None:
        """As a stream does, once every sink has it."""
        opened.keep(one)

    def settle(self, opened: Checkpoints) -> None:
        until = time.monotonic() + SECONDS
        while not opened.settled():
            assert time.monotonic() < until, opened.failure or opened.last_error or "it was never settled"
            self.turn()
