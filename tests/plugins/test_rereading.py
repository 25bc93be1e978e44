"""Stale tables start the snapshot DAG once: each for what made it stale, and no other table with it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk import DagRunState
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException

from headrace import forms
from headrace.rereading import RereadStale

pytestmark = pytest.mark.usefixtures("variables")
STALE = {"shop.a": {"rows": 1, "stale": "stale since an ALTER"}, "shop.b": {"rows": 2, "stale": None}}


def no_run(**_: Any) -> int:
    return 0


def switched_on(_: str) -> SimpleNamespace:
    return SimpleNamespace(is_paused=False)


def triggered(report: dict[str, Any] | None) -> DagRunTriggerException:
    task = RereadStale(task_id="reread", pipeline="shop")
    reports = {"compact": report}
    ti = SimpleNamespace(xcom_pull=lambda task_ids: reports.get(task_ids), get_dr_count=no_run, get_dag=switched_on)
    with pytest.raises(DagRunTriggerException) as caught:
        task.execute({"ti": ti})
    return caught.value


def test_the_stale_tables_are_read_again() -> None:
    run = triggered({"tables": STALE})
    assert run.trigger_dag_id == "shop.snapshot"
    assert run.conf == {"tables": ["shop.a"], "existing": True}
    assert run.skip_when_already_exists
    assert not run.wait_for_completion


def test_a_table_whose_name_no_form_takes_keeps_no_other_from_being_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MagicMock()
    monkeypatch.setattr(RereadStale, "log", log)
    told = {"stale": "stale since an ALTER"}
    run = triggered({"tables": {"shop.a": told, "shop.b,c": told, "shop.d.e": told}})
    assert run.conf == {"tables": ["shop.a", "shop.d.e"], "existing": True}
    for name in run.conf["tables"]:
        assert forms.SNAPSHOT.params["tables"].resolve([name])
    text, *names = log.warning.call_args.args
    assert (text % tuple(names)).startswith("shop.b,c is not read again: a name with a comma cannot be given")
    ti = SimpleNamespace(xcom_pull=lambda task_ids: {"tables": {"shop.b,c": told}})
    with pytest.raises(AirflowSkipException, match="no table is stale that can be named"):
        RereadStale(task_id="reread", pipeline="shop").execute({"ti": ti})


def test_behind_a_check_its_own_report_says_which_are_stale() -> None:
    task = RereadStale(task_id="reread", pipeline="shop", of="verify")
    report = {"tables": {"shop.a": {"equal": True, "stale": "stale since an ALTER"}, "shop.b": {"equal": True}}}
    pull = {"verify": report}.get
    ti = SimpleNamespace(xcom_pull=lambda task_ids: pull(task_ids), get_dr_count=no_run, get_dag=switched_on)
    with pytest.raises(DagRunTriggerException) as caught:
        task.execute({"ti": ti})
    assert caught.value.conf == {"tables": ["shop.a"], "existing": True}
    assert caught.value.dag_run_id == triggered({"tables": STALE}).dag_run_id, "whichever of both is the first"


def test_the_same_staleness_has_one_run_and_another_one_its_own() -> None:
    first, again = triggered({"tables": STALE}), triggered({"tables": STALE})
    later = triggered({"tables": {"shop.a": {"stale": "stale since a later ALTER"}}})
    assert first.dag_run_id == again.dag_run_id != later.dag_run_id


class Runs:
    """Those of the snapshot DAG: `states` by id, `tables` in the order in which they were started."""

    def __init__(self) -> None:
        self.states: dict[str, DagRunState] = {}
        self.tables: list[list[str]] = []
        self.paused = False

    def get_dr_count(self, dag_id: str, run_ids: list[str]) -> int:
        return sum(dag_id == "shop.snapshot" and run in self.states for run in run_ids)

    def get_dagrun_state(self, dag_id: str, run_id: str) -> DagRunState:
        return self.states[run_id]

    def behind(self, **stale: str) -> str | None:
        """The run that a compaction has started whose report says that these tables of `shop` are stale."""
        tables = {f"shop.{name}": {"stale": stale.get(name)} for name in "abc"}
        ti = SimpleNamespace(
            xcom_pull=lambda task_ids: {"tables": tables},
            get_dr_count=self.get_dr_count,
            get_dagrun_state=self.get_dagrun_state,
            get_dag=lambda dag: SimpleNamespace(is_paused=self.paused and dag == "shop.snapshot"),
        )
        try:
            RereadStale(task_id="reread", pipeline="shop").execute({"ti": ti})
        except AirflowSkipException:
            return None
        except DagRunTriggerException as run:
            if run.dag_run_id in self.states:
                return None
            self.states[run.dag_run_id] = DagRunState.QUEUED
            self.tables.append(run.conf["tables"])
            return run.dag_run_id
        raise AssertionError("it ended without a run and was not skipped")


def test_tables_that_become_stale_one_after_the_other_are_read_once_each() -> None:
    runs = Runs()
    runs.behind(a="since 1")
    runs.behind(a="since 1", b="since 2")
    runs.behind(a="since 1", b="since 2")
    runs.behind(b="since 2", a="since 1")
    assert runs.tables == [["shop.a"], ["shop.b"]]


@pytest.mark.parametrize("state", [DagRunState.QUEUED, DagRunState.RUNNING, DagRunState.SUCCESS])
def test_a_table_that_stays_stale_as_its_source_has_it_no_more_is_in_no_other_run(state: DagRunState) -> None:
    runs = Runs()
    first = runs.behind(a="dropped at 1")
    assert first is not None
    runs.states[first] = state
    runs.behind(a="dropped at 1", b="since 2")
    assert runs.tables == [["shop.a"], ["shop.b"]]


def test_a_table_whose_run_has_failed_goes_with_the_next_and_starts_none_by_itself() -> None:
    runs = Runs()
    first = runs.behind(a="since 1")
    assert first is not None
    runs.states[first] = DagRunState.FAILED
    assert runs.behind(a="since 1") is None
    runs.behind(a="since 1", c="since 2")
    assert runs.tables == [["shop.a"], ["shop.a", "shop.c"]]
    assert runs.behind(a="since 1", c="since 2") is None


def test_a_table_that_is_altered_again_is_read_again_unless_its_run_has_not_begun() -> None:
    runs = Runs()
    first = runs.behind(a="since 1")
    assert first is not None
    assert runs.behind(a="since 1, and again at 2") is None, "the run that is queued reads it behind both"
    runs.states[first] = DagRunState.RUNNING
    assert runs.behind(a="since 1, and again at 2") is None, "it had not begun when that was told"
    runs.behind(a="since 1, and again at 3")
    assert runs.tables == [["shop.a"], ["shop.a"]]


def test_while_the_snapshot_is_paused_none_is_started_and_the_log_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    log, runs = MagicMock(), Runs()
    monkeypatch.setattr(RereadStale, "log", log)
    runs.paused = True
    assert runs.behind(a="since 1") is None
    text, *told = log.warning.call_args.args
    assert (text % tuple(told)).startswith("shop.snapshot is paused, so these are not read again: shop.a. Switch it on")
    runs.paused = False
    runs.behind(a="since 1")
    assert runs.tables == [["shop.a"]], "the run that was not there is none that was started"


def test_a_run_that_was_never_started_or_was_deleted_is_started_anew(variables: dict[str, Any]) -> None:
    runs = Runs()
    runs.behind(a="since 1")
    runs.states.clear()
    runs.behind(a="since 1")
    assert runs.tables == [["shop.a"], ["shop.a"]]
    runs.behind(b="since 2")
    assert {*json.loads(variables["headrace_shop_reread"])} == {"shop.b"}, "what is well again is forgotten"


def test_without_the_variable_each_stale_table_is_read_once_more(variables: dict[str, Any]) -> None:
    runs = Runs()
    first = last = runs.behind(a="since 1")
    for n, state in enumerate((DagRunState.FAILED, DagRunState.SUCCESS), 2):
        variables.clear()
        assert runs.behind(a="since 1") is None, "by another task meanwhile it is the one that is under way"
        runs.states[str(last)] = state
        variables.clear()
        last = runs.behind(a="since 1")
        assert last == f"{first}-{n}"
        assert runs.behind(a="since 1") is None
    assert runs.tables == [["shop.a"]] * 3


@pytest.mark.parametrize("report", [None, {"tables": {"shop.b": {"stale": None}}}, {"error": "died"}])
def test_without_a_stale_table_nothing_is_started(report: dict[str, Any] | None) -> None:
    ti = SimpleNamespace(xcom_pull=lambda task_ids: report)
    with pytest.raises(AirflowSkipException, match="no table is stale"):
        RereadStale(task_id="reread", pipeline="shop").execute({"ti": ti})
