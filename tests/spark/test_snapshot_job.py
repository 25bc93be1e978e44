"""What the snapshot job tells of tables that were left out."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.job import JobFailedError
from spark.jobs import snapshot as job
from spark.snapshot.snapshot import GONE
from tests.checkpoints import checkpoint


def test_a_table_that_is_gone_is_no_failure_and_one_that_the_lake_cannot_have_is_one(
    spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = SimpleNamespace(id="1", p0=checkpoint(), p1="", counts={"shop.items": 3})
    asked: list[dict[str, Any]] = []
    staging = SimpleNamespace(refused={"shop.report": GONE}, gone={"shop.report"})
    staging.run = lambda tables, **more: asked.append(more) or manifest  # type: ignore[func-returns-value]
    source = SimpleNamespace(pipeline=pipeline, tables=lambda: [("shop", "items")])
    monkeypatch.setattr(job, "Broker", lambda _: SimpleNamespace(checkpoint=checkpoint))
    monkeypatch.setattr(job, "streamed", lambda *_: nullcontext(source))
    monkeypatch.setattr(job, "reading", lambda _: nullcontext(None))
    for name in ("chosen", "seen", "_places"):
        monkeypatch.setattr(job, name, lambda *_: [])
    monkeypatch.setattr(job, "Staging", lambda *_, **more: staging)
    assert job.snapshot(spark, pipeline, [])["tables"] == {"shop.items": {"rows": 3}}
    job.snapshot(spark, pipeline, ["shop.items"])
    job.snapshot(spark, pipeline, ["shop.items"], existing="yes")
    assert [(one["named"], one["all"]) for one in asked] == [(False, True), (True, False), (False, False)]
    staging.refused["shop.lines"] = "shop.lines: no key"
    with pytest.raises(JobFailedError, match=r"^shop\.lines was left out: .*1 other table staged") as error:
        job.snapshot(spark, pipeline, [])
    assert error.value.facts["passed_by"] == {"shop.lines": "no key"}
