"""A scheduled compaction's second run: when there is one, and that both are told as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.status import LakeStatus
from spark.compaction import catching_up
from spark.compaction.catching_up import catch_up
from spark.errors import LakeError, LakeTakenError
from spark.job import JobFailedError
from spark.lake.slot import PATIENCE
from tests import checkpoints
from tests.spark.sessions import pipeline_in


def facts(changes: int, **more: Any) -> dict[str, Any]:
    """Of a run that had these changes of shop.a."""
    return {
        "changes": changes, "landing_seconds": 1.5, "seconds": 2.0, "unreadable": 1, "nulled": {"shop.a": 2},
        "parts": {f"p{changes}": {"db": "shop"}}, "schema_changes": [f"seen by the run of {changes}"],
        "complete_to_ms": changes, "tables": {"shop.a": {"rows": changes, "changes": changes}}, **more,
    }  # fmt: skip


Run = Any
AWAY = -1


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What catching up makes of these runs' ends, of which each leaves the lake complete up to `to` row changes; the
    streamer has released `released` of them."""

    def run(released: int, to: int, *ends: dict[str, Any] | Exception) -> tuple[dict[str, Any], int]:
        left, patience = list(ends), list[Any]()

        class Lake:
            status = "_status.json"

            def __init__(self, *_: object) -> None:
                pass

            def text(self, _: str) -> str:
                known: dict[str, Any] = {"pipeline": "shop", "run": 1, "written_at": 1, "seconds": 1}
                at = checkpoints.checkpoint(events=to)
                return LakeStatus(checkpoint=at, tables={}, changes_version=1, **known).model_dump_json()

            def close(self) -> None:
                pass

        class Broker:
            def __init__(self, *_: object) -> None:
                pass

            def checkpoint(self) -> Any:
                if released == AWAY:
                    raise LakeError("Kafka does not answer")
                return checkpoints.checkpoint(events=released)

        def compact(*given: object) -> dict[str, Any]:
            patience.append(given[-1])
            end = left.pop(0)
            if isinstance(end, Exception):
                raise end
            return end

        for name, stand_in in {"Lake": Lake, "Broker": Broker, "compact": compact}.items():
            monkeypatch.setattr(catching_up, name, stand_in)
        try:
            return catch_up(None, pipeline_in(tmp_path)), len(left)  # type: ignore[arg-type]
        finally:
            assert patience == [PATIENCE, 0][: len(patience)], "nobody waits long for what the next run can take in"

    return run


def test_two_runs_are_told_as_one(ran: Run) -> None:
    second = facts(3, nulled={"shop.a": 1, "shop.b": 4})
    second["tables"]["shop.b"] = {"rows": 9, "changes": 9}
    found, left = ran(9, 5, facts(7), second)
    assert left == 0
    assert found == {
        "changes": 10, "landing_seconds": 3.0, "seconds": 4.0, "unreadable": 2, "nulled": {"shop.a": 3, "shop.b": 4},
        "parts": {"p7": {"db": "shop"}, "p3": {"db": "shop"}},
        "schema_changes": ["seen by the run of 7", "seen by the run of 3"], "complete_to_ms": 3,
        "tables": {"shop.a": {"rows": 3, "changes": 10}, "shop.b": {"rows": 9, "changes": 9}},
    }  # fmt: skip


@pytest.mark.parametrize(("released", "changes"), [(5, 7), (9, 0)], ids=["nothing came since", "it had nothing"])
def test_one_run_is_enough(ran: Run, released: int, changes: int) -> None:
    found, left = ran(released, 5, facts(changes), facts(3))
    assert (found["changes"], left) == (changes, 1)


def test_the_other_tables_are_taken_further_beside_a_stopped_one(ran: Run) -> None:
    with pytest.raises(JobFailedError, match=r"shop\.b is stopped, still") as error:
        ran(9, 5, JobFailedError("shop.b is stopped", facts(7)), JobFailedError("shop.b is stopped, still", facts(3)))
    assert error.value.facts["changes"] == 10


def test_a_table_that_goes_on_in_the_second_run_fails_nothing(ran: Run) -> None:
    found, _ = ran(9, 5, JobFailedError("shop.b is stopped", facts(7)), facts(3))
    assert found["changes"] == 10


def test_a_table_that_stops_in_the_second_run_is_told(ran: Run) -> None:
    with pytest.raises(JobFailedError, match=r"shop\.b is stopped") as error:
        ran(9, 5, facts(7), JobFailedError("shop.b is stopped", facts(3)))
    assert error.value.facts["changes"] == 10


def test_another_job_that_has_the_lake_by_then_is_not_waited_for(ran: Run, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = ran(9, 5, facts(7), LakeTakenError("the lake is being changed by the job maintain"))
    assert found == facts(7)
    told = "what came meanwhile waits for the next compaction: the lake is being changed by the job maintain"
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("released", [9, AWAY], ids=["in it", "before it"])
def test_where_the_second_run_fails_what_the_first_has_done_is_told(ran: Run, released: int) -> None:
    with pytest.raises(JobFailedError, match="came while it ran could not be taken in: Kafka does not") as error:
        ran(released, 5, facts(7), LakeError("Kafka does not answer"))
    assert error.value.facts == facts(7)
