"""A snapshot of all tables does not fail whole because of one that the lake cannot have, and tells of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from spark.errors import LakeError
from spark.jobs.snapshot import _left_out
from spark.snapshot.snapshot import Staging

HEAP = TableSchema(db="shop", table="heap", columns=(Column(name="v", type="int"),), key=())
ITEMS = HEAP.model_copy(update={"table": "items", "key": ("v",)})
BOTH = [("shop", "heap"), ("shop", "items")]


def staging(pipeline: Pipeline, told: list[str]) -> Staging:
    known = {"heap": HEAP, "items": ITEMS}
    source: Any = SimpleNamespace(
        awake=lambda: None, schema=lambda db, table: known[table], made=lambda *_: None, replica=None
    )  # fmt: skip
    found = Staging.__new__(Staging)
    found.pipeline, found.reading, found.tell = pipeline, source, told.append
    found.refused, found.gone = {}, set()
    return found


def test_the_others_are_read_and_the_one_left_out_is_told_with_what_mends_it(pipeline: Pipeline) -> None:
    told = list[str]()
    snapshot = staging(pipeline, told)
    assert [one.schema for one in snapshot.planned(BOTH, named=False)] == [ITEMS]
    [line] = told
    assert line.startswith("shop.heap is left out: shop.heap has no primary key")
    why = {name: text.removeprefix(f"{name}: ") for name, text in snapshot.refused.items()}
    facts: dict[str, Any] = {"tables": {"shop.items": {}}, "passed_by": why}
    at_the_end = _left_out(pipeline, facts)
    assert "shop.heap was left out: shop.heap has no primary key" in at_the_end
    by_hand = f"run the DAG shop.compaction, or `headrace compact {pipeline.path}`, which takes that in"
    assert at_the_end.endswith(f"1 other table staged: {by_hand}")
    rules = pipeline.compaction.model_copy(update={"schedule": "@daily"})
    scheduled = pipeline.model_copy(update={"compaction": rules})
    by_itself = _left_out(scheduled, facts)
    assert by_itself.endswith("1 other table staged, for the next compaction")
    compacted = _left_out(pipeline, {**facts, "compacted_seconds": 1.0})
    assert compacted.endswith("1 other table in the lake")


def test_one_that_was_named_or_is_the_only_one_is_refused_at_once(pipeline: Pipeline) -> None:
    with pytest.raises(LakeError, match=r"shop\.heap has no primary key"):
        staging(pipeline, []).planned(BOTH, named=True)
    with pytest.raises(LakeError, match=r"shop\.heap has no primary key"):
        staging(pipeline, []).planned(BOTH[:1], named=False)
