"""Which tables are at fault, which are well again, and which are no more."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.alerts import Alert, AllClear
from headrace.spark_job import JobFailed
from headrace.standing import LEFT
from tests.plugins.failures_by_hand import RESULT, failed, pipeline_file, succeeded, verified


def test_of_several_tables_at_fault_the_mended_ones_are_told(tmp_path: Path, received: Any) -> None:
    file, wrong, well = pipeline_file(tmp_path, received.url), {"equal": False}, {"equal": True}
    Alert(file)(verified(orders=wrong, items=wrong, lines=well))
    Alert(file)(verified(orders=wrong, items=well, lines=well))
    first, second = received.bodies
    assert first["mended"] == []
    assert second["mended"] == ["shop.items"]
    assert second["since"] == {"shop.orders": first["since"]["shop.orders"]}
    AllClear(file)(succeeded())
    assert received.bodies[-1]["message"] == "all clear: shop.orders"


def test_the_tables_that_a_compaction_stops_are_told_and_told_again_when_they_are_well(
    tmp_path: Path, received: Any
) -> None:
    def compacted(**stopped: str | None) -> dict[str, Any]:
        ti = SimpleNamespace(dag_id="shop.compaction", task_id="compact", run_id="r4", log_url="http://a/log")
        tables = {f"shop.{name}": {"rows": 3, "stopped": told} for name, told in stopped.items()}
        return {"ti": ti, "exception": JobFailed({**RESULT, "tables": tables})}

    file = pipeline_file(tmp_path, received.url)
    Alert(file)(compacted(orders="its key is gone", items="no column x", lines=None))
    Alert(file)(compacted(orders="its key is gone", items=None, lines=None))
    first, second = received.bodies
    assert first["tables"] == {"shop.orders": "stopped: its key is gone", "shop.items": "stopped: no column x"}
    assert first["since"] == dict.fromkeys(("shop.orders", "shop.items"), first["at"])
    assert (second["mended"], second["since"]) == (["shop.items"], {"shop.orders": first["at"]})
    AllClear(file)({"ti": SimpleNamespace(**vars(compacted()["ti"]), xcom_pull=lambda task_ids: {"tables": {}})})
    assert received.bodies[-1]["message"] == "all clear: shop.orders"


def test_a_table_that_left_the_pipeline_is_told_once_and_neither_at_fault_nor_well(
    tmp_path: Path, received: Any
) -> None:
    file, wrong, well = pipeline_file(tmp_path, received.url), {"equal": False}, {"equal": True}

    def of_all(tables: dict[str, Any], *named: str) -> dict[str, Any]:
        context = verified(**tables)
        context["exception"].result["named"] = [*named]
        return context

    Alert(file)(verified(orders=wrong, items=wrong, lines=wrong))
    Alert(file)(of_all({"orders": wrong, "lines": wrong}, "shop.orders", "shop.lines"))
    assert {*received.bodies[-1]["since"]} == {"shop.orders", "shop.items", "shop.lines"}, (
        "of the others it says nothing"
    )
    Alert(file)(of_all({"orders": wrong, "lines": wrong}))
    told = received.bodies[-1]
    assert (told["left"], told["mended"], {*told["since"]}) == (["shop.items"], [], {"shop.orders", "shop.lines"})
    Alert(file)(of_all({"orders": wrong}))
    assert (received.bodies[-1]["left"], {*received.bodies[-1]["since"]}) == (["shop.lines"], {"shop.orders"})
    context = succeeded()
    context["ti"].xcom_pull = lambda task_ids: {"named": [], "tables": {"shop.other": well}}
    AllClear(file)(context)
    clear = received.bodies[-1]
    assert (clear["clear"], clear["mended"], clear["left"]) == (True, [], ["shop.orders"])
    assert clear["tables"] == {
        "shop.orders": "dropped, renamed, excluded, no more compared or not shown to the check's user since"
    }
    assert clear["message"] == f"all clear; {LEFT}: shop.orders"
    Alert(file)(verified(orders=wrong, items=wrong))
    context["ti"].xcom_pull = lambda task_ids: {"named": [], "tables": {"shop.items": {**well, "clears": False}}}
    AllClear(file)(context)
    message = f"{LEFT}: shop.orders; not looked at, and at fault since it was: shop.items"
    assert (received.bodies[-1]["message"], received.bodies[-1]["clear"]) == (message, False)


def test_a_suite_file_at_fault_leaves_no_pipeline(tmp_path: Path, received: Any) -> None:
    file, found = pipeline_file(tmp_path, received.url), {"tables": {"shop.orders": {"equal": False}}, "named": []}
    files = {"expectations": {"files": ["shop.items.json: cannot be read"]}}
    for report in ({**found, **files}, found):
        Alert(file)({**failed(), "exception": JobFailed({**RESULT, **report})})
    assert (received.bodies[-1]["left"], len(received.bodies[-1]["since"])) == ([], 2)


def test_a_check_of_some_tables_clears_no_other(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    Alert(file)(verified(orders={"equal": False}, items={"equal": False}))
    since = received.bodies[-1]["since"]
    AllClear(file)(succeeded("verify", "shop.lines"))
    assert len(received.bodies) == 1, "nothing is known of those at fault"
    AllClear(file)(succeeded("verify", "shop.lines", "shop.items"))
    told = received.bodies[-1]
    assert told["message"] == "all clear: shop.items; not looked at, and at fault since it was: shop.orders"
    assert (told["clear"], told["mended"], told["since"]) == (
        False,
        ["shop.items"],
        {"shop.orders": since["shop.orders"]},
    )
    AllClear(file)(succeeded("verify", "shop.orders"))
    assert received.bodies[-1]["message"] == "all clear: shop.orders"
    assert received.bodies[-1]["clear"]


def test_the_proof_of_a_repair_clears_what_a_check_found(tmp_path: Path, received: Any) -> None:
    file, wrong = pipeline_file(tmp_path, received.url), {"equal": False}

    def repaired(*tables: str, dag: str = "shop.repair") -> dict[str, Any]:
        context = succeeded("verify", *tables)
        context["ti"].dag_id = dag
        return context

    Alert(file)(verified(orders=wrong, items=wrong))
    AllClear(file)(repaired("shop.orders"))
    told = received.bodies[-1]
    assert (told["dag"], told["mended"], [*told["since"]]) == ("shop.repair", ["shop.orders"], ["shop.items"])
    failed_proof = verified(items=wrong)
    failed_proof["ti"].dag_id = "shop.backfill"
    Alert(file)(failed_proof)
    assert received.bodies[-1]["since"] == told["since"], "of the check, though another DAG tells it"
    assert len(received.bodies) == 3, "and news, of that DAG"
    AllClear(file)(repaired("shop.items", dag="shop.quality"))
    assert received.bodies[-1]["message"] == "all clear: shop.items"
    assert received.bodies[-1]["clear"]
    Alert(file)(failed())
    AllClear(file)({"ti": SimpleNamespace(**{**vars(succeeded("stage")["ti"]), "dag_id": "shop.repair"})})
    assert not received.bodies[-1].get("clear"), "another task's success says nothing"


def test_a_sample_clears_what_it_looked_at_and_no_more(tmp_path: Path, received: Any) -> None:
    file, wrong = pipeline_file(tmp_path, received.url), {"equal": False}
    sampled = {"equal": True, "chunks": 100, "chunks_compared": 1}

    def went_well(**tables: Any) -> None:
        context = succeeded()
        report = {"named": [], "tables": {f"shop.{name}": facts for name, facts in tables.items()}}
        context["ti"].xcom_pull = lambda task_ids: report
        AllClear(file)(context)

    Alert(file)(verified(orders=wrong, items=wrong))
    went_well(orders=sampled, items={**sampled, "clears": False})
    assert len(received.bodies) == 1, "other chunks are equal"
    Alert(file)(verified(orders=wrong, items=sampled))
    assert (received.bodies[-1]["mended"], {*received.bodies[-1]["since"]}) == ([], {"shop.orders", "shop.items"})
    went_well(orders={**sampled, "clears": True}, items=sampled)
    assert received.bodies[-1]["mended"] == ["shop.orders"]
    went_well(orders=sampled, items={**sampled, "chunks_compared": 100})
    assert received.bodies[-1]["message"] == "all clear: shop.items"


def test_a_suite_file_is_well_again_when_a_check_has_read_it(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)

    def went_well(unread: list[str]) -> None:
        context = succeeded()
        report = {"named": [], "tables": {"shop.items": {"equal": True}}, "expectations": {"unread": unread}}
        context["ti"].xcom_pull = lambda task_ids: report
        AllClear(file)(context)

    failed_suite = {**RESULT, "tables": {}, "expectations": {"files": ["shop.items.json: cannot be read"]}}
    Alert(file)({**failed(), "exception": JobFailed(failed_suite)})
    went_well(["shop.items.json"])
    assert len(received.bodies) == 1, "its table was not judged"
    went_well([])
    assert received.bodies[-1]["message"] == "all clear: suite files"


@pytest.mark.parametrize("named", [[], ["shop.orders"]], ids=["all", "named"])
def test_a_table_at_fault_that_the_pipeline_file_no_longer_lets_be_compared_is_not_well(
    tmp_path: Path, received: Any, named: list[str]
) -> None:
    """By transforms, or an events rule that drops rows, its lake is another than the source."""
    file, wrong = pipeline_file(tmp_path, received.url), {"equal": False}
    other: dict[str, Any] = {"equal": None, "source_count": None, "reason": "not compared: transforms change its rows"}

    def went_well(facts: dict[str, Any]) -> None:
        context = succeeded()
        context["ti"].xcom_pull = lambda task_ids: {"named": named, "tables": {"shop.orders": facts}}
        AllClear(file)(context)

    Alert(file)(verified(orders=wrong))
    went_well({**other, "reason": "not compared: dropped meanwhile", "clears": False})
    assert len(received.bodies) == 1, "one of its name may come back"
    went_well(other)
    assert (received.bodies[-1]["message"], received.bodies[-1]["mended"]) == (f"all clear; {LEFT}: shop.orders", [])
    Alert(file)(verified(orders=wrong, items=wrong))
    Alert(file)(verified(orders=other, items=wrong))
    alert = received.bodies[-1]
    assert (alert["left"], alert["mended"], [*alert["since"]]) == (["shop.orders"], [], ["shop.items"])
