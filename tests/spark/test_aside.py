"""A table that a check does not compare: the user's expectations are asked of it all the same, and none of its
schema's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.pipeline_transforms import TransformRule
from quality.report import differences
from spark.compaction import compaction
from spark.job import JobFailedError
from spark.jobs import verify as checking
from spark.jobs.verify import verify
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.proof.differences import unmet_last
from spark.proof.finding import LACKS
from spark.proof.judged import ROWS
from spark.proof.verification import Verification
from tests.checkpoints import checkpoint
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import NAME, item, stage
from tests.spark.test_erasing import stats

__all__ = ["stats"]

RULE = TransformRule(tables=("shop.*",), script="items.py")
FEW = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": 2}}


class Aside:
    """Checks of a pipeline all of whose tables a transform changes. `items`: what the lake has of one."""

    def __init__(self, spark: SparkSession, lake: Lake, suites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spark, self.lake, self.suites = spark, lake, suites / "shop"
        self.pipeline = lake.pipeline.model_copy(update={"transforms": (RULE,)})
        self.schemas = [ITEMS]
        self.source = SimpleNamespace(
            pipeline=self.pipeline, schema=lambda *_: ITEMS, awake=lambda: None, wait_for=lambda *_: None,
            row=None, server=SimpleNamespace(unordered=lambda _: None),
        )  # fmt: skip
        broker = SimpleNamespace(checkpoint=checkpoint, schemas=lambda: self.schemas)
        monkeypatch.setenv("HEADRACE_SUITES", str(suites))
        monkeypatch.setattr(checking, "Broker", lambda _: broker)
        monkeypatch.setattr(checking, "streamed", self._streamed)
        monkeypatch.setattr(checking, "refuse_other_rules", lambda *_: None)
        monkeypatch.setattr(checking, "refuse_others", lambda *_: None)
        monkeypatch.setattr(checking, "chosen", lambda *_: [NAME])
        self.suites.mkdir(parents=True)

    @contextmanager
    def _streamed(self, *_: Any) -> Iterator[Any]:
        yield self.source

    def items(self, *ids: int) -> None:
        stage(self.spark, self.lake, "1", 5, *map(item, ids))
        compaction.compact(self.spark, self.lake.pipeline)

    def expect(self, *entries: Any, name: str = "shop.items") -> None:
        (self.suites / f"{name}.json").write_text(json.dumps({"expectations": [*entries]}))

    def run(self) -> dict[str, Any]:
        try:
            return verify(self.spark, self.pipeline, [])
        except JobFailedError as error:
            return {"error": str(error), **error.facts}


@pytest.fixture
def made(
    stats: None, spark: SparkSession, lake: Lake, pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Aside:
    return Aside(spark, lake, tmp_path / "suites", monkeypatch)


def test_a_users_expectations_are_all_that_is_asked_of_a_transformed_table(made: Aside, spark: SparkSession) -> None:
    made.items(1, 2, 3)
    made.expect(FEW)
    report = made.run()
    assert report["error"].startswith("expectations of 1 table not met: shop.items: ")
    found = report["expectations"]["tables"]["shop.items"]
    assert (found["ok"], found["evaluated"], found["unjudged"]) == (False, 1, {})
    assert report["tables"]["shop.items"]["equal"] is None
    assert len(unmet_last(spark, made.lake)["shop.items"]) == 1, "it is kept for trends, too"
    made.expect({**FEW, "kwargs": {"column": "id", "max_value": 3}})
    report = made.run()
    assert (differences(report), report["expectations"]["ok"]) == ({}, True)


def test_a_file_that_fits_no_table_or_is_wrong_is_told_where_nothing_is_compared(made: Aside) -> None:
    made.items(1)
    made.expect(FEW, name="shop.itens")
    made.expect({"type": "expect_column_values_to_be_null", "kwargs": {"column": "idd"}})
    faults = made.run()["expectations"]["files"]
    assert len(faults) == 2
    assert "shop.itens is no table of pipeline shop" in faults[0]
    assert "shop.items has no column idd, did you mean id?" in faults[1]


def test_a_table_without_a_file_is_as_it_was(made: Aside) -> None:
    made.items(1)
    report = made.run()
    assert (report["expectations"]["tables"], differences(report)) == ({}, {})


def test_a_file_that_could_not_be_run_says_why_and_clears_nothing(made: Aside) -> None:
    made.expect(FEW)
    report = made.run()
    assert report["expectations"]["tables"]["shop.items"]["unjudged"] == {ROWS: LACKS}
    assert report["expectations"]["unread"] == [str(made.suites / "shop.items.json")]
    assert report["tables"]["shop.items"]["clears"] is False


def test_what_is_made_anew_meanwhile_is_judged_by_another_check(made: Aside, monkeypatch: pytest.MonkeyPatch) -> None:
    made.items(1, 2, 3)
    made.expect(FEW)
    asked = Verification.ask

    def ask(check: Verification, tables: Any) -> Any:
        there = AppliedSnapshots(made.lake)
        there.note(NAME, Applied(id="2", p0="", p1="", rows=1, applied_at=1, floor=[0, 1, 4, -1, -1]))
        return asked(check, tables)

    monkeypatch.setattr(Verification, "ask", ask)
    report = made.run()
    assert differences(report) == {}
    assert "a snapshot of it was applied meanwhile" in report["expectations"]["tables"]["shop.items"]["unjudged"][ROWS]


def test_of_a_table_without_a_change_the_source_tells_the_columns(made: Aside) -> None:
    made.items(1)
    made.schemas = []
    made.expect(FEW)
    assert made.run()["expectations"]["tables"]["shop.items"]["ok"] is True
