"""Where a read of a table is in the binlog, of one with snapshot reads and of one without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from spark.proof.boundary import match
from spark.proof.checksum import Total
from spark.proof.chunk_reads import ChunkReads
from spark.proof.rewind import Step
from spark.proof.splits import Buckets, Ranges, Split
from spark.source.servers import Place
from tests.spark.test_verification import SCHEMA, UUID

SHOWN = Columns().show(SCHEMA)
WRITES = [Step((0, 1, pos), f"{UUID}:{pos}", {0: Total(1, pos)}) for pos in (100, 200, 300)]


class Server:
    """Each statement that reads the table comes behind one more of WRITES; within a snapshot nothing of it shows."""

    def __init__(self, pipeline: Pipeline, mvcc: bool, exact: bool) -> None:
        self.pipeline, self.mvcc = pipeline, mvcc
        self.server = SimpleNamespace(exact=exact, lets_alter=False)
        self.written, self.begun, self.statements = 1, 0, 0

    def snapshots(self, db: str, table: str) -> bool:
        return self.mvcc

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None: ...

    def again(self) -> Server:
        return self

    def awake(self) -> None: ...

    def let_alter(self) -> None: ...

    def seen(self) -> str:
        return "" if self.server.exact else f"{UUID}:1-{WRITES[self.written - 1].at[2]}"

    def position(self) -> Place:
        return "binlog.000001", WRITES[self.written - 1].at[2] + 50

    @contextmanager
    def consistent(self) -> Iterator[Place]:
        self.begun = self.written
        yield self.position()
        self.begun = 0

    def row(self, sql: str) -> tuple[int, ...] | None:
        if "sha2" not in sql:  # a boundary: of one chunk there is none
            return None
        self.statements, self.written = self.statements + 1, self.written + 1
        shows = self.begun if self.mvcc else self.written
        return shows, sum(step.at[2] for step in WRITES[:shows])

    def rows(self, sql: str) -> list[tuple[int, ...]]:
        row = self.row(sql)
        assert row is not None
        return [(0, *row)]


@pytest.mark.parametrize(
    "split", [Ranges((SCHEMA.columns[0],), []), Buckets(SHOWN, "mysql", 1)], ids=["ranges", "buckets"]
)
@pytest.mark.parametrize("exact", [False, True], ids=["mysql", "mariadb"])
@pytest.mark.parametrize("snapshots", [False, True], ids=["MyISAM", "InnoDB"])
def test_a_boundary_fits_whatever_is_written_meanwhile(
    pipeline: Pipeline, split: Split, exact: bool, snapshots: bool
) -> None:
    server: Any = Server(pipeline, snapshots, exact)
    none: Any = None
    [read] = ChunkReads(none, pipeline, server, 0, lambda line: None).reads(SHOWN, split, [0])
    assert server.statements == 1
    assert read.total.rows == (1 if snapshots else 2), "it shows what was written behind its begin"
    now = {0: Total(3, sum(step.at[2] for step in WRITES))}
    found = match(read, now, [*WRITES[: server.written], *(Step(step.at, None, step.deltas) for step in WRITES[2:])])
    assert (found.wrong, found.gtid) == (frozenset(), f"{UUID}:{100 * read.total.rows}")
    assert read.seen == ("" if exact or not snapshots else f"{UUID}:1-100"), "of a lock's hold nobody can tell"
