"""Rounds of compaction: their pauses, what is told of them, and what a failure does; the round itself is a fake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from contract import jobs
from spark.compaction import compaction, looping
from spark.compaction.looping import Loop
from spark.compaction.report import FAULTS
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.lake import lease, swaps
from spark.lake.slot import writing
from tests.spark.away import Away
from tests.spark.sessions import pipeline_in

Outcome = dict[str, Any] | Exception
NOTHING = {"changes": 0, "seconds": 0.1, "complete_to_ms": 1, "tables": {}}
SOME = {**NOTHING, "changes": 3}


class Stop(threading.Event):
    """Ends the loop behind so many rounds; notes their pauses."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.left, self.pauses = rounds, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(round(timeout or 0))
        self.left -= 1
        if self.left == 0:
            self.set()
        return self.is_set()


@pytest.fixture
def rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[dict[str, Any], list[float]]]:
    def run(*outcomes: Outcome) -> tuple[dict[str, Any], list[float]]:
        left = iter(outcomes)

        def compact(*_: Any) -> dict[str, Any]:
            outcome = next(left)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(compaction, "compact", compact)
        monkeypatch.setattr(looping, "ended", lambda spark: False)
        spark: Any = None
        stop = Stop(len(outcomes))
        return Loop(spark, pipeline_in(tmp_path), stop).run(), stop.pauses

    return run


def told(output: str) -> list[dict[str, Any]]:
    return [found for line in output.splitlines() if (found := jobs.read(line))]


def test_a_round_begins_every_few_seconds_and_tells_what_it_did(
    rounds: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rounds(SOME, NOTHING, SOME) == ({"rounds": 3, "changes": 6}, [5, 5, 5])
    lines = told(capsys.readouterr().out)
    assert [(line["round"], line["changes"]) for line in lines] == [(1, 3), (3, 3)]  # nothing of nothing
    assert all(line["ok"] and line["freshness_seconds"] > 0 for line in lines)


def test_a_failure_is_told_and_tried_again_behind_a_pause_that_doubles(
    rounds: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    away = LakeError("Kafka at h:1 does not answer")
    result, pauses = rounds(*[away] * 7, SOME, away, NOTHING)
    assert result == {"rounds": 10, "changes": 3}
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 5, 2, 5]
    out = capsys.readouterr().out
    assert "round 1 failed, tried again in 2 s: Kafka at h:1 does not answer" in out
    assert out.count("all is well again") == 2
    failed = [line for line in told(out) if not line["ok"]]
    assert [line["failures"] for line in failed] == [1, 2, 3, 4, 5, 6, 7, 1]
    assert failed[0]["error"] == str(away)


def test_it_goes_on_however_often_it_failed(rounds: Any) -> None:
    _, pauses = rounds(*[LakeError("Kafka is away for a weekend")] * 2000, SOME)
    assert pauses[-2:] == [60, 5]


def test_each_round_goes_by_the_pipeline_file_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One with a mistake is told once, and another lake is for another session."""
    pipeline, seen = pipeline_in(tmp_path), list[bool]()
    text, spark = pipeline.path.read_text(), cast(Any, None)
    more = text.replace('"shop.*"', '"shop.*", "crm.*"')
    wrong, other = more.replace("include", "inclde"), text.replace("lake: {", "lake: {readers: compatible, ")
    texts = iter((text, more, wrong, more, other))

    def compact(spark: Any, pipeline: Any) -> dict[str, Any]:
        seen.append(pipeline.tables.match("crm", "items"))
        pipeline.path.write_text(next(texts))
        return NOTHING

    monkeypatch.setattr(compaction, "compact", compact)
    with pytest.raises(LakeError, match=r"shop\.yaml has another name or `lake` than at the start: start this again"):
        Loop(spark, pipeline, Stop(9)).run()
    assert seen == [False, False, True, True, True]
    out = capsys.readouterr().out
    assert (out.count("inclde"), out.count("go on by the file as it was"), out.count("was edited")) == (1, 1, 1)


def test_what_an_edit_names_may_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline, seen, script = pipeline_in(tmp_path), list[int](), tmp_path / "upper.py"
    more = pipeline.path.read_text() + 'transforms: [{script: upper.py, tables: ["shop.*"]}]\n'

    def compact(spark: Any, pipeline: Any) -> dict[str, Any]:
        seen.append(len(pipeline.transforms))
        pipeline.path.write_text(more)
        if len(seen) == 3:
            script.write_text("def transform(event):\n    return event\n")
        return NOTHING

    monkeypatch.setattr(compaction, "compact", compact)
    Loop(cast(Any, None), pipeline, Stop(4)).run()
    assert seen == [0, 0, 0, 1]
    assert capsys.readouterr().out.count("go on by the file as it was") == 1


def test_it_ends_where_the_file_feeds_the_lake_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = pipeline_in(tmp_path)
    away = "checkpoints: {type: file, path: away}\n"

    def compact(spark: Any, pipeline: Any) -> dict[str, Any]:
        pipeline.path.write_text(pipeline.path.read_text() + away)
        return NOTHING

    monkeypatch.setattr(compaction, "compact", compact)
    with pytest.raises(LakeError, match=r"shop\.yaml:7: checkpoints: the pipeline feeds no lake"):
        Loop(cast(Any, None), pipeline, Stop(2)).run()


def test_a_stopped_table_is_told_once_and_holds_nothing_up(rounds: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = JobFailedError("shop.items: a column's type changed", SOME)
    result, pauses = rounds(stopped, stopped, SOME, stopped)
    assert (result, pauses) == ({"rounds": 4, "changes": 12}, [5, 5, 5, 5])
    assert capsys.readouterr().out.count("shop.items: a column's type changed") == 2


def table(changes: int = 0, **faults: str) -> dict[str, Any]:
    return {"rows": 5, "changes": changes, "snapshot": True, **dict.fromkeys(FAULTS), **faults}


def test_of_many_tables_a_line_has_those_with_changes_or_a_fault(
    rounds: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {f"shop.t{n}": table() for n in range(200)} | {"shop.busy": table(3)}
    faults = {f"shop.{fault}": table(**{fault: "it is so"}) for fault in FAULTS}
    rounds({**SOME, "tables": tables}, JobFailedError("shop.stopped: it is so", {**SOME, "tables": tables | faults}))
    well, ill = told(capsys.readouterr().out)
    assert (well["tables"], well["other_tables"]) == ({"shop.busy": table(3)}, 200)
    assert (ill["tables"], ill["other_tables"]) == ({"shop.busy": table(3), **faults}, 200)


def test_where_spark_has_ended_so_does_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compact(*_: Any) -> dict[str, Any]:
        raise RuntimeError("py4j is gone")

    monkeypatch.setattr(compaction, "compact", compact)
    spark: Any = None  # of which nobody answers, as of a Java that has died
    stop = Stop(3)
    with pytest.raises(LakeError, match=r"Spark has ended: RuntimeError: py4j is gone.*Start this again"):
        Loop(spark, pipeline_in(tmp_path), stop).run()
    assert stop.pauses == []


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Away:
    """The lake, on which a loop that starts has no rounds."""
    lake = Away(pipeline_in(tmp_path))
    for place, name, seconds in (
        (lease, "BEAT", 0.2), (lease, "LEASE", 0.4), (lease.Lease, "poll", 0.02), (swaps, "SETTLED", 0.01),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, seconds)
    monkeypatch.setattr(looping, "Lake", lambda *_: lake)
    monkeypatch.setattr(looping.signal, "signal", lambda *_: None)
    monkeypatch.setattr(Loop, "run", lambda self: {"rounds": 0, "changes": 0})
    return lake


def test_in_no_folder_one_starts_behind_one_that_was_killed(away: Away, capsys: pytest.CaptureFixture[str]) -> None:
    """What that had says nothing of its end: it only stands still."""
    spark: Any = None
    dead = {"job": "compact --loop", "host": "there", "pid": 7, "since": "2026-01-01", "token": "t", "beat": 3}
    away.write(away.at("_loop.json"), dead)
    assert looping.loop(spark, away.pipeline) == {"rounds": 0, "changes": 0}
    assert away.files == {}
    assert capsys.readouterr().err == "Spark has started: the first round begins\n"


def test_in_no_folder_a_second_one_ends_while_the_first_one_lives(away: Away) -> None:
    spark, lake = cast(Any, None), cast(Any, away)
    with (
        writing(lake, "compact --loop", name="_loop"),
        pytest.raises(LakeError, match="being changed by the job compact --loop"),
    ):
        looping.loop(spark, away.pipeline)
