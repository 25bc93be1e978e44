"""A table that differs when a check compares it, and is mended before the check tells its rows: no difference is noted,
and another check is to tell."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.status import AppliedSnapshot, LakeStatus, PartStatus, TableStatus, parse
from spark.compaction import compaction
from spark.lake.lake import Lake
from spark.proof.answer import Opened
from spark.proof.differences import CHUNK, MISSING
from spark.proof.mended import GONE, PART, SNAPSHOT, mended
from spark.proof.verification import Verification
from spark.tables.schema import Schemas
from tests import checkpoints
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import stage
from tests.spark.test_erased_check import LOW, READ, answered
from tests.spark.test_erasing import checkpoint, item, stats

__all__ = ["stats"]


class Check:
    """Of a table of which the lake lacks row 3."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark, self.lake = spark, lake
        stage(spark, lake, "1", 5, item(1), item(2))
        compaction.compact(spark, lake.pipeline)
        source: Any = type("Source", (), {"executed": lambda _: ""})()
        self.check = Verification(spark, lake.pipeline, lake, source, checkpoint(LOW), lambda line: None)
        self.answer, schemas = answered(spark, 1, 2, 3), Schemas([ITEMS])
        status = self.check.wait(["shop.items"], (0, 1, READ), "", 1.0)
        self.finding = self.check.compare(self.answer, status, schemas)
        assert (self.finding.wrong, self.finding.reason) == ({0}, None)

    def pin(self, *ids: int) -> list[tuple[str, str | None]]:
        """The differences, where the source has these rows now."""
        rows = self.spark.createDataFrame([(n, "a", "1.00") for n in ids], "id int, name string, price string")
        rows = rows.withColumn("price", fn.col("price").cast("decimal(10,2)"))
        opened = Opened(self.answer, [0], rows, f"{checkpoints.SOURCE}:1-{LOW}", (0, 1, READ))
        reading: Any = self.check.reading
        reading.open = lambda *_: opened
        found = self.check.pin([(self.answer, self.finding)], lambda: Schemas([ITEMS]), 1.0)
        return [(one.kind, one.key) for one in found]


@pytest.fixture
def check(stats: None, spark: SparkSession, lake: Lake) -> Check:
    return Check(spark, lake)


def test_rows_that_a_snapshot_mended_meanwhile_are_another_checks(
    check: Check, spark: SparkSession, lake: Lake
) -> None:
    assert check.pin(1, 2, 3) == [(MISSING, '{"id":3}')]
    stage(spark, lake, "2", 6, item(1), item(2), item(3))
    compaction.compact(spark, lake.pipeline)
    assert check.pin(1, 2, 3, 4) == [(MISSING, '{"id":4}')], "what differs still is told"
    assert check.check.lost == set()
    assert check.pin(1, 2, 3) == []
    assert check.check.lost == {"shop.items"}
    assert check.check.mended == {"shop.items": "a snapshot of it was applied while it was checked: verify again"}


def test_rows_that_are_right_and_that_nothing_mended_are_told_as_their_chunk(check: Check) -> None:
    assert check.pin(1, 2) == [(CHUNK, None)]
    assert (check.check.lost, check.check.mended) == (set(), {})


def test_rows_that_cannot_be_read_or_compared_are_told_as_their_chunk(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check has found of this table and of others is not lost for it."""
    told: list[str] = []
    check.check.tell = told.append

    def fails(*given: object) -> Any:
        raise RuntimeError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(check.check, "_pinned", fails)
        assert check.pin(1, 2, 3) == [(CHUNK, None)]
    reading: Any = check.check.reading
    reading.open = fails
    found = check.check.pin([(check.answer, check.finding)], lambda: Schemas([ITEMS]), 1.0)
    assert [(one.kind, one.key) for one in found] == [(CHUNK, None)]
    line = "shop.items: which of its rows differ cannot be told: RuntimeError: the server went away"
    assert [one.partition(". ")[0] for one in told if "cannot be told" in one] == [line, line]


def test_a_table_that_the_lake_gave_up_meanwhile_ends_no_check(check: Check, lake: Lake) -> None:
    status = parse(lake.text(lake.status) or "")
    lake.write(lake.status, status.model_copy(update={"tables": {}}).model_dump(mode="json"))
    assert check.pin(1, 2, 3) == []
    assert check.check.mended == {"shop.items": "the lake gave it up while it was checked: verify again"}


def test_what_mends_a_table_is_a_snapshot_or_a_part_that_came_to_its_place() -> None:
    def status(snapshot: str | None = "1", version: int | None = 1, **parts: PartStatus) -> LakeStatus:
        applied = AppliedSnapshot(id=snapshot, p0="", p1="", rows=1, applied_at=1) if snapshot else None
        table = TableStatus(db="shop", table="items", rows=1, changes=1, version=version, snapshot=applied)
        return LakeStatus(
            pipeline="shop", run=1, written_at=1, seconds=1, checkpoint=None, changes_version=1,
            tables={"shop.items": table}, parts=parts,
        )  # fmt: skip

    one = PartStatus(db="shop", table="items", job="repair", at=1)
    told = [
        mended("shop.items", before, now)
        for before, now in (
            (status(), status()),
            (status(), status("2")),
            (status(None), status()),
            (status(), status(a=one)),
            (status(a=one), status(a=one)),
            (status(a=one, b=one), status(b=one)),
            (status(), status(a=one.model_copy(update={"refused": "why"}))),
            (status(), status(a=one.model_copy(update={"table": "lines"}))),
            (status(), status(version=None)),
        )
    ]
    assert told == [None, SNAPSHOT, SNAPSHOT, PART, None, None, None, None, GONE]
