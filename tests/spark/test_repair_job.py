"""A repair of several tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark.errors import LakeError, TableError
from spark.jobs.repair import _stage
from spark.mending.from_source import SourceParts
from spark.merging.parts import Chosen

WHOLE = Chosen("the whole table")


def staged(*tables: str) -> dict[str, Any]:
    def stage(db: str, table: str, choose: object) -> tuple[Any, int]:
        if table.startswith("filtered"):
            raise TableError(f"the replica leaves changes of {db}.{table} out")
        return SimpleNamespace(id=f"part-{table}", p1="p1", told="2 key(s)"), 2

    facts: dict[str, Any] = {"p1": "", "parts": {}, "tables": {}, "passed_by": {}}
    parts = cast(SourceParts, SimpleNamespace(stage=stage))
    _stage(parts, {("shop", table): lambda _: WHOLE for table in tables}, facts, by_keys=False)
    return facts


def test_a_table_that_cannot_be_read_there_keeps_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    facts = staged("a", "filtered", "b")
    assert facts["parts"] == {"part-a": "shop.a", "part-b": "shop.b"}
    assert facts["passed_by"] == {"shop.filtered": "the replica leaves changes of shop.filtered out"}
    assert capsys.readouterr().out == "passed by: the replica leaves changes of shop.filtered out\n"


def test_where_none_can_be_read_all_reasons_are_told() -> None:
    with pytest.raises(LakeError, match=r"shop\.filtered1 out; .*shop\.filtered2 out"):
        staged("filtered1", "filtered2")
