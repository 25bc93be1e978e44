"""A table that is altered while it is checked is judged by what holds for the lake's rows, or not at all; any other by
all that the source says of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from contract.schema import Column, TableSchema
from spark.jobs import verify as job
from spark.proof.answer import Answer
from spark.proof.aside import Aside
from spark.proof.boundary import Read
from spark.proof.judged import ALTERED, ROWS, Judging, last_shape
from spark.proof.splits import Ranges
from spark.tables.schema import Schemas
from tests.checkpoints import checkpoint

ID = Column(name="id", type="int", nullable=False)
NAME, STATE = Column(name="name", type="varchar", length=3, nullable=False), Column(name="state", type="enum")
HIGH, END = (0, 1, 400), 900
SMALL = {"small": "`id` < 10"}


def shape(version: int, name: Column, *members: str, at: int | None = None) -> TableSchema:
    columns = (ID, name, STATE.model_copy(update={"members": members}))
    since = None if at is None else (0, 1, at, 0, 0)
    return TableSchema(db="shop", table="t", version=version, columns=columns, key=("id",), since=since)


OLD = shape(1, NAME, "new", at=100)
NEW = shape(2, NAME.model_copy(update={"length": 9, "nullable": True}), "new", "paid", at=500)
RENAMED = shape(2, NAME.model_copy(update={"name": "title"}), "new", at=500)
ROWS_OF_NEW = [(1, "abc", "new"), (2, None, "paid"), (30, "longer", "new")]


class Source(SimpleNamespace):
    """`now`, `clauses`: what it tells by now."""

    now: TableSchema | None = OLD
    clauses = SMALL

    def awake(self) -> None: ...

    def schema(self, *_: str) -> TableSchema | None:
        return self.now and self.now.model_copy(update={"version": 0, "since": None})

    def checks(self, *_: str) -> dict[str, str]:
        return self.clauses


def judged(
    spark: SparkSession, pipeline: Pipeline, known: Sequence[TableSchema], now: TableSchema | None, **clauses: str
) -> dict[str, Any]:
    """What the expectations say of these rows, which the lake has. The source has answered by the old shape; the schema
    topic has these, and the source tells `now` by now."""
    source: Any = Source()
    judging = Judging.begun(source, [("shop", "t")])
    source.now, source.clauses = now, clauses
    answer = Answer(Columns().show(OLD), Ranges((ID,), []), [Read({}, "", HIGH)])
    status: Any = SimpleNamespace(checkpoint=checkpoint(pipeline="shop", pos=END))
    frame = spark.createDataFrame(ROWS_OF_NEW, "id bigint, name string, state string")
    check: Any = SimpleNamespace(spark=spark, frames={"shop.t": frame}, made_anew=lambda name: False)
    check.reading, check.status = SimpleNamespace(unread={}), None
    check.later = {"shop.t": last_shape(answer, status, Schemas(known))}
    rules = job._rules(judging, check, [answer])
    facts: dict[str, dict[str, Any]] = {"shop.t": {"equal": True, "frame_rows": 3}}
    told = job._expectations(check, pipeline, rules, Aside(), facts, some=False)
    table: dict[str, Any] = told["tables"]["shop.t"]
    return table


@pytest.fixture(autouse=True)
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SUITES", str(tmp_path / "suites"))


def test_rows_of_a_younger_shape_are_judged_by_it(spark: SparkSession, pipeline: Pipeline) -> None:
    """The column is wider and may be NULL, the ENUM has one member more, the constraint is gone."""
    later = shape(3, NAME, "new", at=END)  # which the lake does not have yet
    table = judged(spark, pipeline, [OLD, NEW, later], NEW)
    assert (table["ok"], table["failed"]) == (True, [])
    assert table["evaluated"] > 5
    assert (table["untranslated"], table["unjudged"]) == ({}, {"CHECK small": ALTERED})


@pytest.mark.parametrize(
    ("known", "now"),
    [
        ([OLD], NEW),  # the lake may have rows of both
        ([OLD], None),
        ([OLD, RENAMED], RENAMED),  # by the DDL topic's word the lake renames without a change, and here has not yet
    ],
)
def test_of_rows_whose_shape_nobody_knows_it_is_said_that_they_are_not_judged(
    spark: SparkSession, pipeline: Pipeline, capsys: pytest.CaptureFixture[str], known: Any, now: Any
) -> None:
    table = judged(spark, pipeline, known, now, **SMALL)
    assert (table["ok"], table["evaluated"], table["failed"]) == (None, 0, [])
    assert (table["untranslated"], table["unjudged"]) == ({}, {ROWS: ALTERED})
    assert "shop.t: no expectation checks its rows: it was altered meanwhile: verify again" in capsys.readouterr().out


@pytest.mark.parametrize("known", [[OLD], [OLD, shape(2, NAME, "new", at=500)]])
def test_of_a_table_that_nobody_altered_every_fault_is_told(
    spark: SparkSession, pipeline: Pipeline, known: Any
) -> None:
    """Also where its first change since was of a version that the schema topic did not have yet."""
    table = judged(spark, pipeline, known, OLD, **SMALL)
    assert {(one["expectation"], one["column"]) for one in table["failed"]} == {
        ("expect_column_values_to_not_be_null", "name"), ("expect_column_value_lengths_to_be_between", "name"),
        ("expect_column_values_to_be_in_set", "state"), ("CHECK small", None),
    }  # fmt: skip
    assert table["untranslated"] == table["unjudged"] == {}


def test_a_constraint_that_came_or_was_altered_meanwhile_is_not_asked_for(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    table = judged(spark, pipeline, [OLD, NEW], NEW, small="`id` < 20", named="`id` < 30")
    assert table["ok"]
    assert table["unjudged"] == {"CHECK named": ALTERED, "CHECK small": ALTERED}


def test_a_source_that_went_away_behind_the_wait_fails_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Source) -> None:
        raise pymysql.OperationalError(2003, "refused")

    monkeypatch.setattr(Source, "awake", gone)
    source: Any = Source()
    answer = Answer(Columns().show(OLD), Ranges((ID,), []), [Read({}, "", HIGH)])
    rules = Judging.begun(source, [("shop", "t")]).rules(answer, None, ["id", "name", "state"])
    assert (rules.schema, rules.checks) == (None, {})
    assert "does not answer any more" in rules.unjudged[ROWS]
