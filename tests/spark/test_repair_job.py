"""A repair of several tables."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract.pipeline import Pipeline
from spark.errors import LakeError, TableError
from spark.job import JobFailedError
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
    parts = cast(SourceParts, SimpleNamespace(stage=stage, unfound=SimpleNamespace(facts={})))
    _stage(parts, {("shop", table): lambda _: WHOLE for table in tables}, facts)
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


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline) -> Any:
    """A repair of a lake with these tables, by what the last checks `differ` in; `a` waits for a snapshot. `asked`: how
    often what was found was."""
    pipeline = pipeline.model_copy(update={"tables": SimpleNamespace(match=lambda _, table: table != "excluded")})
    asked: list[object] = []

    def run(*tables: str, differ: str = "ab", named: tuple[str, ...] = ()) -> dict[str, Any]:
        # The status lists a table that the pipeline leaves out by now until the next compaction.
        known = {f"shop.{table}": SimpleNamespace(db="shop", table=table) for table in (*tables, "excluded")}
        kept = {("shop", one): [Difference("shop", one, MISSING, '{"id":1}')] for one in (*differ, "excluded")}
        monkeypatch.setattr(repairing, "standing", lambda *_: SimpleNamespace(tables=known))
        monkeypatch.setattr(repairing, "found_last", lambda *given: asked.append(given) or kept)
        return repairing.repair(None, pipeline, [*named])  # type: ignore[arg-type]

    def stage(parts: SourceParts, chosen: Any, facts: dict[str, Any]) -> None:
        facts["tables"] = {".".join(name): {"read": 1} for name in chosen}

    lake = SimpleNamespace(prove_writable=lambda: None)
    for name, given in (("Lake", lake), ("source_of", nullcontext()), ("numbers", [])):
        monkeypatch.setattr(repairing, name, lambda *_, given=given: given)
    monkeypatch.setattr(repairing, "blocked", lambda _lake, _status, name: "shop.a waits" if name[1] == "a" else None)
    monkeypatch.setattr(repairing, "_stage", stage)
    return SimpleNamespace(run=run, asked=asked)


NAMED = ("shop.a", "shop.b")


@pytest.mark.parametrize("named", [(), NAMED], ids=["all", "named"])
def test_a_table_that_waits_for_a_snapshot_keeps_no_other_and_is_a_failure(found: Any, named: tuple[str, ...]) -> None:
    """A repair of all tables that mends not all of what was found has not done its work."""
    with pytest.raises(JobFailedError, match=r"^shop\.a waits\. What was asked of shop\.b is staged") as error:
        found.run("a", "b", named=named)
    facts = error.value.facts
    assert (facts["passed_by"], [*facts["tables"]]) == ({"shop.a": "shop.a waits"}, ["shop.b"])
    assert len(found.asked) == 1, "not once for each of hundreds of tables, which takes seconds each"


@pytest.mark.parametrize("named", [(), NAMED], ids=["all", "named"])
def test_where_nothing_can_be_mended_the_tables_are_told(found: Any, named: tuple[str, ...]) -> None:
    with pytest.raises(JobFailedError, match=r"^shop\.a waits$") as error:
        found.run("a", "b", differ="a", named=named)
    assert (error.value.facts["passed_by"], error.value.facts["tables"]) == ({"shop.a": "shop.a waits"}, {})


def test_a_table_of_which_nothing_was_found_and_that_nobody_named_is_no_failure(found: Any) -> None:
    """That it waits for a snapshot the check and the compaction tell."""
    assert [*found.run("a", "b", differ="b")["tables"]] == ["shop.b"]
    assert found.run("a", "b", differ="")["passed_by"] == {}
