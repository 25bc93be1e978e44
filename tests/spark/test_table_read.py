"""A group of chunks is walked while the one before it is read, and not before anything is read."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from spark.snapshot.load import Load
from spark.snapshot.table_read import TableRead
from spark.source.source import Source

SHAPE = TableSchema(db="shop", table="t", columns=(Column(name="id", type="int"),), key=("id",))
CHUNKS = 40  # of ten rows each, whose last is missing
SECONDS = 20.0  # far more than either side needs


class Walker:
    """The connection that walks. It answers for the second group only once the first is under way."""

    def __init__(self, pipeline: Pipeline, group: int) -> None:
        self.pipeline, self.group = pipeline, group
        self.asked = 0
        self.read_begun, self.walked_on = threading.Event(), threading.Event()

    def awake(self) -> None: ...

    def row(self, sql: str) -> Sequence[Any] | None:
        if "statistics" in sql:
            return ("A",)
        self.asked += 1
        if self.asked > self.group:
            assert self.read_begun.wait(SECONDS), "the second group was walked before the first was read"
            self.walked_on.set()
        return (str(self.asked * 10),) if self.asked < CHUNKS else None


def test_the_next_group_is_walked_while_one_is_read(pipeline: Pipeline) -> None:
    load = Load(pipeline.snapshot.model_copy(update={"chunk_rows": 10}), cast(Source, None))
    walker = Walker(pipeline, load.group)
    assert 1 < load.group < CHUNKS // 2
    progress = SimpleNamespace(shape=SHAPE, behind=None, parts=[])
    job = SimpleNamespace(lake=None, folder="", id="1")
    read = TableRead(None, walker, load, None, job, progress, print)  # type: ignore[arg-type]

    groups = read._groups()
    wanted, to = next(groups)
    walker.read_begun.set()
    assert (len(wanted), to) == (load.group, (str(load.group * 10),))
    assert walker.walked_on.wait(SECONDS), "nothing was walked while the first group was read"
    rest = [(len(wanted), to) for wanted, to in groups]
    assert sum(count for count, _ in rest) + load.group == CHUNKS
    assert rest[-1][1] is None
