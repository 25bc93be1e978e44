"""A job that compacts by itself: until the lake has what was staged, or has not in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.status import AppliedSnapshot, LakeStatus, PartStatus, TableStatus
from spark.compaction import compacting
from spark.compaction.compacting import lacking, take_in
from spark.errors import PassingError
from spark.job import JobFailedError
from tests import checkpoints
from tests.spark.sessions import pipeline_in

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
END = f"{SERVER}:1-9"
SNAPSHOT = {"snapshot": "s2", "p1": END, "tables": {"shop.a": {"rows": 1}}}
PARTS = {"p1": "", "parts": {"p7": "shop.a"}, "tables": {"shop.a": {"part": "id 7"}}}


def status(pos: int, snapshot: str = "", stopped: str | None = None, **parts: PartStatus) -> LakeStatus:
    applied = AppliedSnapshot(id=snapshot, p0="", p1=END, rows=1, applied_at=1) if snapshot else None
    table = TableStatus(db="shop", table="a", rows=1, changes=0, snapshot=applied, stopped=stopped)
    known: dict[str, Any] = {"pipeline": "shop", "run": 1, "written_at": 1, "seconds": 1, "changes_version": 1}
    at = checkpoints.checkpoint(pipeline="shop", server_uuid=SERVER, gtid_set=f"{SERVER}:1-{pos}", ts_ms=1)
    return LakeStatus(checkpoint=at, tables={"shop.a": table}, parts=parts, **known)


def part(refused: str | None = None) -> PartStatus:
    return PartStatus(db="shop", table="a", job="repair", at=1, refused=refused)


def test_what_the_lake_lacks_is_named() -> None:
    assert lacking(SNAPSHOT, status(9, "s1")) == "the lake has not taken in shop.a"
    assert lacking(SNAPSHOT, status(8, "s2")) == f"the lake is not complete up to {END}, where the snapshot ended"
    assert lacking(SNAPSHOT, status(9, "s2")) == ""
    assert lacking(SNAPSHOT, status(9, "s3")) == "", "somebody has taken another one since"
    assert lacking(PARTS, status(9)) == "the lake has not taken in shop.a"
    assert lacking(PARTS, status(9, p7=part())) == ""


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes in what is staged; each compaction leaves the next of the statuses, the last one again and again."""

    def run(staged: dict[str, Any], *left: LakeStatus, patience: float = 600) -> tuple[dict[str, Any], int]:
        runs = list[int]()

        class Lake:
            status = "_status.json"

            def __init__(self, *_: object) -> None:
                pass

            def text(self, path: str) -> str:
                return left[min(len(runs), len(left)) - 1].model_dump_json()

        def compact(*_: object) -> None:
            runs.append(1)
            if len(runs) == 1:
                raise JobFailedError("shop.b is stopped", {})

        monkeypatch.setattr(compacting, "Lake", Lake)
        monkeypatch.setattr(compacting, "compact", compact)
        monkeypatch.setattr(compacting, "POLL", 0.0)
        spark: Any = None
        return take_in(spark, pipeline_in(tmp_path), staged, patience), len(runs)

    return run


def test_it_compacts_until_the_lake_has_it_and_tells_of_tables_that_are_stopped(
    taken: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    facts, runs = taken(SNAPSHOT, status(7), status(8, "s2"), status(9, "s2"))
    assert runs == 3
    assert facts == {**SNAPSHOT, "compacted_seconds": facts["compacted_seconds"]}
    assert capsys.readouterr().out.count("shop.b is stopped") == 1


def test_where_the_streamer_does_not_come_so_far_it_ends_with_the_next_step(taken: Any) -> None:
    with pytest.raises(
        PassingError, match=r"the lake is not complete up to .*:1-9.*`headrace status .*What was staged"
    ):
        taken(SNAPSHOT, status(8, "s2"), patience=0)


WHY = "shop.a: the snapshot s2 read 2 rows, and its folder has 1: something removed the others"


@pytest.mark.parametrize("staged", [SNAPSHOT, PARTS])
def test_where_the_table_is_stopped_it_ends_with_the_reason(taken: Any, staged: dict[str, Any]) -> None:
    with pytest.raises(PassingError) as caught:
        taken(staged, status(9, "s1", WHY), patience=0)
    why = WHY.removeprefix("shop.a: ")
    told = f"after 0 s of compactions the lake has not taken in shop.a: shop.a is stopped: {why}. `headrace status "
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("staged", [SNAPSHOT, {**PARTS, "p1": END}])
def test_it_does_not_wait_for_a_table_that_stays_stopped(taken: Any, staged: dict[str, Any]) -> None:
    """But for the streamer, and for what the next run takes in."""
    with pytest.raises(PassingError) as caught:
        taken(staged, status(8, "s1", WHY), status(9, "s1"), status(9, "s1", WHY))
    why = WHY.removeprefix("shop.a: ")
    told = f"the lake has not taken in shop.a: shop.a is stopped: {why}. What was staged stays, and the next "
    assert str(caught.value).startswith(told)


def test_why_a_table_is_stopped_that_has_its_rows_is_not_told(taken: Any) -> None:
    with pytest.raises(PassingError) as caught:
        taken(SNAPSHOT, status(8, "s2", WHY), patience=0)
    assert "is stopped" not in str(caught.value)


def test_what_was_mended_is_told_and_counted(taken: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = part().model_copy(update={"rows": {"changed": 1200, "missing": 1}})
    facts, _ = taken(PARTS, status(9, p7=done))
    assert facts["mended"] == {"shop.a": {"changed": 1200, "missing": 1}}
    assert "shop.a: mended (changed: 1,200, missing: 1)\n" in capsys.readouterr().out
    assert taken(PARTS, status(9, p7=part()))[0]["mended"] == {"shop.a": {}}
    assert "shop.a: nothing was to be mended\n" in capsys.readouterr().out


def test_a_part_that_was_refused_is_a_failure(taken: Any) -> None:
    with pytest.raises(JobFailedError, match="was altered meanwhile") as caught:
        taken(PARTS, status(9, p7=part("shop.a was altered meanwhile")))
    assert caught.value.facts["parts"] == {"p7": "shop.a"}
