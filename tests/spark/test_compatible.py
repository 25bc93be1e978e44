"""`readers: compatible`: whatever job writes a table, it has no deletion vectors, which some readers refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.compaction import compaction
from spark.erasing import topics
from spark.lake.lake import Lake
from spark.maintenance.maintenance import Maintaining
from tests.spark.changes_by_hand import compact_json
from tests.spark.changes_by_hand import record as kafka_record
from tests.spark.lake_by_hand import part, stage
from tests.spark.test_erasing import Broker, Producer, erasing, item, land

NAME = ("shop", "items")
MORE = ("c", item(51), None)


@pytest.fixture
def compatible(spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(topics, "Producer", Producer)
    asked = pipeline.lake.model_copy(update={"readers": "compatible"})
    return Lake(spark, pipeline.model_copy(update={"lake": asked}))


def landed(at: int, *changes: tuple[str, dict[str, Any] | None, dict[str, Any] | None]) -> list[tuple[Any, ...]]:
    return [kafka_record(at + n, (0, 1, at + n, 0, 0), *change) for n, change in enumerate(changes)]


def cut(at: int) -> tuple[Any, ...]:
    """The record of a TRUNCATE."""
    told = {"name": "shop", "db": NAME[0], "table": NAME[1], "ts_ms": 1_700_000_000_000, "seq": [0, 1, at, 0, 0]}
    value = compact_json({"before": None, "after": None, "source": told, "op": "t"})
    return None, value.encode(), "shop.shop.items", 0, at


def test_no_job_gives_a_table_deletion_vectors(spark: SparkSession, compatible: Lake) -> None:
    lake, path = compatible, compatible.table(*NAME)
    many = [item(n) for n in range(1, 30)]

    def merged(*rows: tuple[Any, ...]) -> None:
        land(spark, lake, *rows)
        compaction.compact(spark, lake.pipeline)

    steps: list[tuple[str, Callable[[], Any], list[int]]] = [
        ("a snapshot", lambda: (stage(spark, lake, "1", 100, *many), merged()), [*range(1, 30)]),
        ("changes", lambda: merged(*landed(200, ("d", None, item(1)), ("u", item(2), item(2)))), [*range(2, 30)]),
        ("a repair", lambda: (part(spark, lake, "2", 300, item(3, "b"), keys=[item(3), item(4)]), merged()),
         [2, 3, *range(5, 30)]),
        ("an erasure", lambda: erasing(spark, lake, "[5]", pos=350).run(), [2, 3, *range(6, 30)]),
        ("a maintenance", lambda: Maintaining(spark, lake).run(), [2, 3, *range(6, 30)]),
        ("another snapshot", lambda: (stage(spark, lake, "3", 380, *many[:9]), merged()), [*range(1, 10)]),
        ("a truncation", lambda: merged(*landed(400, ("c", item(50), None)), cut(450), *landed(460, MORE)), [51]),
    ]  # fmt: skip
    for name, step, ids in steps:
        step()
        table = DeltaTable(path)
        assert "deletionVectors" not in (table.protocol().reader_features or []), name
        assert sorted(table.to_pyarrow_table(columns=["id"])["id"].to_pylist()) == ids, name
