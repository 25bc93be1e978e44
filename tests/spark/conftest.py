"""Spark, a lake in a temporary folder, and changes made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import LakeStatus
from spark.compaction import compaction
from spark.lake.lake import Lake
from spark.tables import merge
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import checkpoint
from tests.spark.sessions import pipeline_in


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process tells once, each test may see."""
    monkeypatch.setattr(merge, "TOLD", set())


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return pipeline_in(tmp_path)


@pytest.fixture
def lake(spark: SparkSession, pipeline: Pipeline) -> Lake:
    return Lake(spark, pipeline)


@pytest.fixture
def maintained(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake without tables, whose maintenance makes no pauses."""
    monkeypatch.setattr("spark.maintenance.maintenance.BETWEEN", 0)
    status = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=None, changes_version=None, tables={}
    )  # fmt: skip
    lake.write(lake.status, status.model_dump(mode="json"))


@pytest.fixture
def compact(spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """A whole run over what is in `_changes`; the broker has nothing new."""

    class Broker:
        def __init__(self, pipeline: Pipeline) -> None:
            self.checkpoint = lambda: checkpoint(1000)
            self.topics = self.topic_ids = self.ends = lambda *_: {}
            self.schemas = lambda: [ITEMS]
            self.ddl = lambda read: ([], {})
            self.bounds = lambda topic: {}

    monkeypatch.setattr(compaction, "Broker", Broker)
    return lambda: compaction.compact(spark, pipeline)
