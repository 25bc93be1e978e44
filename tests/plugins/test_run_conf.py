"""A conf that a DAG does not know ends its run before any of its work, without a second try, and says what it knows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, DagRunTriggerException

from contract.pipeline import load
from headrace import factory
from headrace.rereading import RereadStale

FILE = """
format: 1
name: shop
source: {host: localhost, user: u, password_file: p, server_id: 7}
tables: {include: ['shop.*']}
kafka: {bootstrap: 'localhost:9092'}
lake: {path: /srv/lake}
"""
FIRST = {
    "topics": "provision",
    "snapshot": "stage",
    "compaction": "compact",
    "quality": "verify",
    "maintenance": "maintain",
    "erase": "erase",
    "repair": "stage",
    "backfill": "stage",
}
Started = Any


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """Runs the task of a DAG that begins its work, and gives the error that it ends with. There is no Spark, no broker
    and no pipeline file any more: whatever asks for one of them says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.delenv("HEADRACE_SPARK_JARS", raising=False)
    (tmp_path / "shop.yaml").write_text(FILE)
    dags = {dag.dag_id: dag for dag in factory.dags(load(tmp_path / "shop.yaml"))}
    (tmp_path / "shop.yaml").unlink()

    def of(purpose: str, conf: dict[str, Any] | None) -> str:
        dag = dags[f"shop.{purpose}"]
        with pytest.raises(AirflowFailException) as caught:
            dag.get_task(FIRST[purpose]).execute({"dag": dag, "dag_run": SimpleNamespace(conf=conf), "ti": None})
        return str(caught.value)

    return of


def test_every_dag_has_its_first_task_here(started: Started, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(FILE)
    assert {dag.dag_id for dag in factory.dags(load(tmp_path / "shop.yaml"))} == {f"shop.{one}" for one in FIRST}


@pytest.mark.parametrize("purpose", FIRST)
def test_a_name_that_the_dag_does_not_know_is_refused_before_anything_is_done(started: Started, purpose: str) -> None:
    told = started(purpose, {"tabels": ["shop.orders"], "polish": True})
    assert told.startswith(f"shop.{purpose} has no parameter 'polish'")
    assert "'tabels'" in told
    assert told.endswith("Nothing was done")


def test_the_nearest_name_and_all_that_there_are_are_told(started: Started) -> None:
    assert started("snapshot", {"Tabels": ["shop.orders"], "existing": True}) == (
        "shop.snapshot has no parameter 'Tabels' (did you mean 'tables'?): it has existing, tables. Nothing was done"
    )
    assert "'key' (did you mean 'keys'?)" in started("repair", {"tables": ["shop.orders"], "key": ["1"]})
    assert "'table' (did you mean 'tables'?)" in started("quality", {"table": "shop.orders"})


@pytest.mark.parametrize("purpose", ["topics", "compaction"])
def test_a_dag_without_a_form_takes_no_conf(started: Started, purpose: str) -> None:
    told = f"shop.{purpose} has no parameter 'tables': it takes no conf. Nothing was done"
    assert started(purpose, {"tables": ["shop.orders"]}) == told


@pytest.mark.parametrize(
    ("purpose", "conf"),
    [
        *((purpose, conf) for purpose in FIRST for conf in (None, {})),
        ("snapshot", {"tables": ["shop.orders"], "existing": False}),
        ("repair", {"tables": ["shop.orders"], "keys": None, "from": "1", "to": ""}),
        ("erase", {"table": "shop.orders", "keys": ["7"], "present": False, "now": False}),
    ],
)
def test_what_the_form_has_and_what_a_schedule_gives_goes_on_to_the_work(
    started: Started, purpose: str, conf: dict[str, Any] | None
) -> None:
    assert "parameter" not in (told := started(purpose, conf))
    assert ("shop.yaml" if purpose == "topics" else "spark-submit was not found") in told


def test_what_our_own_tasks_start_is_known(started: Started, variables: dict[str, Any]) -> None:
    report = {"tables": {"shop.a": {"stale": "since an ALTER"}}}
    ti = SimpleNamespace(
        xcom_pull=lambda task_ids: report,
        get_dr_count=lambda **_: 0,
        get_dag=lambda dag: SimpleNamespace(is_paused=False),
    )
    with pytest.raises(DagRunTriggerException) as run:
        RereadStale(task_id="reread", pipeline="shop").execute({"ti": ti})
    assert "spark-submit was not found" in started("snapshot", run.value.conf)
