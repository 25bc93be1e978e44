"""Stale tables start the snapshot DAG once: for the tables that the compaction names, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException

from headrace import forms
from headrace.rereading import RereadStale

STALE = {"shop.a": {"rows": 1, "stale": "stale since an ALTER"}, "shop.b": {"rows": 2, "stale": None}}


def triggered(report: dict[str, Any] | None) -> DagRunTriggerException:
    task = RereadStale(task_id="reread", pipeline="shop")
    ti = SimpleNamespace(xcom_pull=lambda task_ids: report if task_ids == "compact" else None)
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
    ti = SimpleNamespace(xcom_pull=lambda task_ids: report if task_ids == "verify" else None)
    with pytest.raises(DagRunTriggerException) as caught:
        task.execute({"ti": ti})
    assert caught.value.conf == {"tables": ["shop.a"], "existing": True}
    assert caught.value.dag_run_id == triggered({"tables": STALE}).dag_run_id, "whichever of both is the first"


def test_the_same_staleness_has_one_run_and_another_one_its_own() -> None:
    first, again = triggered({"tables": STALE}), triggered({"tables": STALE})
    later = triggered({"tables": {"shop.a": {"stale": "stale since a later ALTER"}}})
    assert first.dag_run_id == again.dag_run_id != later.dag_run_id


@pytest.mark.parametrize("report", [None, {"tables": {"shop.b": {"stale": None}}}, {"error": "died"}])
def test_without_a_stale_table_nothing_is_started(report: dict[str, Any] | None) -> None:
    ti = SimpleNamespace(xcom_pull=lambda task_ids: report)
    with pytest.raises(AirflowSkipException, match="no table is stale"):
        RereadStale(task_id="reread", pipeline="shop").execute({"ti": ti})
