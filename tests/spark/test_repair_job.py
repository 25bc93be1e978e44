"""A repair of several tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark.errors import LakeError, TableError
from spark.jobs import repair as repairing
from spark.jobs.repair import _stage
from spark.mending.from_source import SourceParts
from spark.merging.parts import Chosen
from spark.proof.differences import MISSING, Difference

WHOLE = Chosen("the whole table")


def staged(*tables: str) -> dict[str, Any]:
    def stage(db: str, table: str, choose: object) -> tuple[Any, int]:
        if table.startswith("filtered"):
            raise TableError(f"the replica leaves changes of {db}.{table} out")
        if table.startswith("away"):
            raise LakeError("the server is away")
        return SimpleNamespace(id=f"part-{table}", p1="p1", told="2 keys"), 2

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


def test_what_was_staged_before_all_of_it_failed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It is taken in, though no report of the job names it."""
    with pytest.raises(LakeError, match=r"^the server is away$"):
        staged("a", "filtered", "b", "away", "c")
    assert capsys.readouterr().out.endswith("\nstaged already, for the next compaction: shop.a, shop.b\n")
    with pytest.raises(LakeError, match=r"^the server is away$"):
        staged("away")
    assert "staged" not in capsys.readouterr().out


@pytest.mark.parametrize("left", [["a"], ["a", "b"]], ids=["none", "another one"])
def test_tables_that_differ_and_all_wait_for_a_snapshot_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, left: list[str]
) -> None:
    """A repair of all tables that mends none of what was found has not done its work."""
    found = Difference(db="shop", table="a", kind=MISSING, key='{"id":1}')
    monkeypatch.setattr(repairing, "names_of", lambda *_: [])
    # The status lists a table that the pipeline leaves out by now until the next compaction.
    tables = {f"shop.{table}": SimpleNamespace(db="shop", table=table) for table in (*left, "excluded")}
    pipeline: Any = SimpleNamespace(tables=SimpleNamespace(match=lambda _, table: table != "excluded"))
    monkeypatch.setattr(repairing, "standing", lambda *_: SimpleNamespace(tables=tables))
    asked: list[object] = []

    def found_last(*given: object) -> dict[tuple[str, str], list[Difference]]:
        asked.append(given)
        return {("shop", table): [found] for table in (*left, "excluded")}

    monkeypatch.setattr(repairing, "found_last", found_last)
    monkeypatch.setattr(repairing, "blocked", lambda _lake, _status, name: "shop.a waits" if name[1] == "a" else None)
    passed_by: dict[str, str] = {}
    nothing: Any = None
    if left == ["a"]:
        with pytest.raises(LakeError, match=r"^shop\.a waits$"):
            repairing._found(nothing, pipeline, nothing, [], passed_by)
    else:
        assert [*repairing._found(nothing, pipeline, nothing, [], passed_by)] == [("shop", "b")]
    assert passed_by == {"shop.a": "shop.a waits"}
    assert len(asked) == 1, "not once for each of hundreds of tables, which takes seconds each"
