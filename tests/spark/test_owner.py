"""Another server's rows get into no lake: each job looks whose it is before it reads or writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.status import LakeStatus
from spark.errors import LakeError
from spark.jobs import backfill, erase, snapshot, verify
from spark.lake.lake import Lake
from spark.lake.owner import refuse_staged
from spark.mending import choice
from spark.mending.choice import source_of
from tests.spark.lake_by_hand import checkpoint, item, stage

OTHERS = checkpoint(5000).model_copy(update={"server_uuid": "other"})  # a copy of the file, for another server


def files(lake: Lake) -> set[Path]:
    return {path for path in Path(lake.root).rglob("*") if path.is_file()}


@pytest.fixture
def owned(lake: Lake) -> Lake:
    """A lake that a compaction of server u has written."""
    status = LakeStatus(
        pipeline="shop", run=1, written_at=1, seconds=1, checkpoint=checkpoint(1000), changes_version=None, tables={}
    )  # fmt: skip
    lake.write(lake.status, status.model_dump(mode="json"))
    return lake


def begin_repair(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    with source_of(spark, pipeline, lake, [("shop", "items")], "the repair"):
        raise AssertionError("it reads the source")


@pytest.mark.parametrize(
    ("of", "run"),
    [
        (snapshot, lambda spark, pipeline, lake: snapshot.snapshot(spark, pipeline, [])),
        (verify, lambda spark, pipeline, lake: verify.verify(spark, pipeline, [])),
        (backfill, lambda spark, pipeline, lake: backfill.backfill(spark, pipeline, ["shop.items"], source="kafka")),
        (erase, lambda spark, pipeline, lake: erase.erase(spark, pipeline, ["shop.items"], keys="[1]")),
        (choice, begin_repair),
    ],
    ids=["snapshot", "verify", "backfill", "erase", "repair"],
)
def test_a_job_with_the_commit_log_of_another_server_does_nothing(
    spark: SparkSession, pipeline: Pipeline, owned: Lake, of: ModuleType, run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(of, "Broker", lambda _: SimpleNamespace(checkpoint=lambda: OTHERS))
    before = files(owned)
    with pytest.raises(LakeError, match=r"was not made from this commit log.*is of the server other"):
        run(spark, pipeline, owned)
    assert files(owned) == before


def test_what_another_server_has_staged_in_a_lake_that_is_new_is_not_applied(spark: SparkSession, lake: Lake) -> None:
    asked: list[int] = []

    def newest(at: Checkpoint) -> Callable[[], Checkpoint]:
        return lambda: asked.append(1) or at  # type: ignore[func-returns-value]

    refuse_staged(lake, newest(OTHERS))
    assert asked == [], "where nothing is staged Kafka is not asked"
    manifest = stage(spark, lake, "20260101T000000000Z", 100, item(1))
    refuse_staged(lake, newest(checkpoint(100)))
    with pytest.raises(LakeError, match=rf"{manifest.id} were not read from this commit log.*of the server other"):
        refuse_staged(lake, newest(OTHERS))
