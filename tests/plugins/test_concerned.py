"""A task of some tables: its failure names them, and a run that went well for others says nothing of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from contract.pipeline_maintenance import STEPS
from headrace import progress
from headrace.alerts import Alert, AllClear
from headrace.concerned import NOT_DONE
from headrace.run_conf import UnknownParameter
from headrace.spark_job import JobFailed
from headrace.standing import EVERY, LEFT
from headrace.waiting import NOT_THERE, SnapshotApplied
from tests.plugins.failures_by_hand import pipeline_file

AWAY = AirflowFailException("MySQL is away")


class Runs:
    """Tasks of a DAG that end, each of a run with a conf; `told` is what was posted of the last one, if anything."""

    def __init__(self, file: str, received: Any, dag: str) -> None:
        self.file, self.received, self.dag = file, received, dag

    def _context(self, task: str, conf: dict[str, Any], run: str, report: Any = None) -> dict[str, Any]:
        facts: dict[str, Any] = {"dag_id": self.dag, "task_id": task, "run_id": run, "log_url": ""}
        ti = SimpleNamespace(**facts, xcom_pull=lambda task_ids, **_: report)
        return {"ti": ti, "dag_run": SimpleNamespace(conf=conf)}

    def fails(self, task: str, error: Exception, run: str = "r", **conf: Any) -> dict[str, Any]:
        Alert(self.file)({**self._context(task, conf, run), "exception": error})
        told: dict[str, Any] = self.received.bodies[-1]
        return told

    def works(self, task: str, report: dict[str, Any], run: str = "r", **conf: Any) -> str | None:
        before = len(self.received.bodies)
        AllClear(self.file)(self._context(task, conf, run, report))
        return self.received.bodies[-1]["message"] if len(self.received.bodies) > before else None


@pytest.fixture
def runs(tmp_path: Path, received: Any) -> Any:
    return lambda dag: Runs(pipeline_file(tmp_path, received.url), received, f"shop.{dag}")


def staged(*tables: str, job: str = "snapshot", **passed_by: str) -> dict[str, Any]:
    left = {f"shop.{name}": why for name, why in passed_by.items()}
    told = {"job": job, "ok": not left, "tables": {f"shop.{name}": {"rows": 1} for name in tables}}
    return {**told, "error": "; ".join(left.values()), "snapshot": "s1", "passed_by": left}


def test_a_table_that_was_left_out_is_clear_when_a_run_has_it(runs: Any) -> None:
    snapshot = runs("snapshot")
    alert = snapshot.fails("all_staged", JobFailed(staged("b", a="no key")), tables=["shop.a", "shop.b"])
    assert (alert["tables"], alert["since"]) == ({"shop.a": "no key"}, {"shop.a": alert["at"]})
    assert snapshot.works("all_staged", staged("b"), tables=["shop.b"]) is None
    assert snapshot.works("all_staged", staged("a"), tables=[" shop.a "]) == "all clear: shop.a"


def test_a_run_of_all_clears_what_it_did_not_leave_out(runs: Any) -> None:
    snapshot = runs("snapshot")
    snapshot.fails("all_staged", JobFailed(staged(a="no key", b="no key", c="no key")))
    alert = snapshot.fails("all_staged", JobFailed(staged("b", a="no key", c="no key")))
    assert (alert["mended"], {*alert["since"]}) == (["shop.b"], {"shop.a", "shop.c"})
    assert snapshot.works("stage", staged("b", a="no key")) is None, "of another task"
    assert snapshot.works("all_staged", staged("a", "b")) == f"all clear: shop.a; {LEFT}: shop.c"


def test_a_run_of_others_clears_no_table_that_could_not_be_read(runs: Any) -> None:
    for dag, job in (("snapshot", "snapshot"), ("repair", "repair")):
        one = runs(dag)
        assert one.fails("stage", AWAY, tables=["shop.a"])["tables"] == {"shop.a": NOT_DONE}
        assert one.works("stage", staged("b", job=job), tables=["shop.b"]) is None
        assert one.works("stage", staged("b", job=job, a="no key"), tables=["shop.a", "shop.b"]) is None
        assert one.works("stage", staged("a", job=job), tables=["shop.a"]) == "all clear: shop.a"


def test_a_failed_run_of_all_is_clear_behind_another_one_of_all(runs: Any) -> None:
    snapshot = runs("snapshot")
    assert snapshot.fails("stage", AWAY)["tables"] == {EVERY: NOT_DONE}
    assert snapshot.works("stage", staged("b"), tables=["shop.b"]) is None
    assert snapshot.works("stage", staged("b")) == f"all clear: {EVERY}"
    assert snapshot.fails("stage", UnknownParameter("no parameter 'tabels'"), tabels=["shop.b"])["tables"] == {}


def test_a_repair_of_all_clears_tables_that_differ_no_more(runs: Any) -> None:
    repair = runs("repair")
    repair.fails("all_staged", JobFailed(staged("b", job="repair", a="waits for a snapshot")))
    assert repair.works("all_staged", staged("b", job="repair")) == "all clear: shop.a"


def test_of_a_wait_in_vain_the_tables_that_the_lake_lacks_are_at_fault(
    runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, report = runs("snapshot"), staged("a", "b")
    monkeypatch.setattr(progress, "_missing", lambda known, report: ["shop.a"])
    monkeypatch.setattr(progress, "_lake", lambda pipeline: None)
    wait = SnapshotApplied(task_id="applied", pipeline_file=snapshot.file, stage="stage")
    ti = SimpleNamespace(xcom_pull=lambda task_ids: report)
    with pytest.raises(AirflowFailException, match="not done after 3600 s") as error:
        wait.resume({"ti": ti}, {"missing": "shop.a is not there"})
    assert snapshot.fails("applied", error.value)["tables"] == {"shop.a": NOT_THERE}
    assert snapshot.works("applied", staged("b"), tables=["shop.b"]) is None
    assert snapshot.works("applied", staged("b", a="no key")) is None
    assert snapshot.works("applied", report) == "all clear: shop.a"
    monkeypatch.undo()
    assert progress.lacking("/none.yaml", report) == ["shop.a", "shop.b"], "who knows which"


def test_a_maintenance_of_other_tables_or_of_some_steps_clears_none(runs: Any) -> None:
    maintenance = runs("maintenance")
    report = {"job": "maintain", "error": "shop.a: a file is gone", "failed": {"shop.a": "shop.a: a file is gone"}}
    alert = maintenance.fails("maintain", JobFailed({**report, "tables": {"shop.a": {}, "shop.b": {}}}))
    assert [*alert["tables"]] == ["shop.a"]
    assert maintenance.works("maintain", {"tables": {"shop.b": {}}}, tables=["shop.b"], steps=["vacuum"]) is None
    both: dict[str, Any] = {"tables": {"shop.a": {}, "shop.b": {}}}
    assert maintenance.works("maintain", both, steps=["vacuum"]) is None, "another step may have failed"
    assert maintenance.works("maintain", both, steps=[*STEPS]) == "all clear: shop.a"
    assert [*maintenance.fails("maintain", JobFailed({"job": "maintain", "error": "no Spark"}))["tables"]] == [EVERY]
    assert maintenance.works("maintain", both, steps=["vacuum"]) is None
    assert maintenance.works("maintain", both) == f"all clear: {EVERY}"


def test_an_erasure_says_nothing_of_another_one(runs: Any) -> None:
    """Of another person's rows, as it may be, in the same table."""
    erase, report = runs("erase"), {"tables": {"shop.users": {"rows": 1}}}
    alert = erase.fails("erase", AWAY, run="r7", table="shop.users", keys=["7"])
    assert alert["tables"] == {"shop.users": NOT_DONE}
    assert "7" not in str(alert["tables"])
    assert erase.works("erase", report, run="r8", table="shop.users", keys=["8"]) is None
    erase.fails("erase", AWAY, run="r9", table="shop.users", keys=["9"])
    assert len(erase.received.bodies) == 2, "not the same again"
    assert erase.works("erase", report, run="r7", table="shop.users", keys=["7"]) == "all clear: shop.users"
    assert erase.works("erase", report, run="r7", table="shop.users", keys=["7"]) is None
