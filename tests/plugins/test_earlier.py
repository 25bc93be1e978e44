"""What is news behind what was told before, and what the webhook did not take is told again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headrace import pipeline_files
from headrace.alerts import Alert, AllClear
from headrace.spark_job import JobFailed
from quality import folder
from tests.plugins.failures_by_hand import RESULT, failed, of_dag, pipeline_file, succeeded, taken, verified


def test_the_same_failure_again_and_again_is_posted_once(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)

    def fails(*texts: str, dag: str = "shop.compaction") -> list[str]:
        """What was posted of failures with these texts."""
        received.bodies.clear()
        for text in texts:
            ti = SimpleNamespace(dag_id=dag, task_id="t", run_id="r", log_url="")
            Alert(file)({"ti": ti, "exception": RuntimeError(text)})
        return [body["message"] for body in received.bodies]

    assert fails("a stopped", "a stopped", "a stopped") == ["a stopped"]
    assert fails("a stopped", dag="shop.quality") == ["a stopped"], "of each DAG"
    assert fails("a stopped", "b stopped", "a stopped", "a stopped") == ["b stopped", "a stopped"]
    received.status = 500
    assert fails("c stopped", "c stopped") == ["c stopped"] * 2, "until the webhook has taken it"
    received.status = 200
    assert fails("c stopped", "c stopped") == ["c stopped"]
    pipeline = pipeline_files.load(file)
    assert len(folder.read_alerts(pipeline, 100)) == 12, "all are kept"


def test_a_failure_after_an_hour_without_one_is_posted(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    Alert(file)(failed())
    kept = folder.folder(pipeline_files.load(file)) / "alerts.jsonl"
    alert = json.loads(kept.read_text())
    for minutes in (50, 70):
        then = datetime.now(UTC) - timedelta(minutes=minutes)
        kept.write_text(json.dumps({**alert, "at": then.isoformat(timespec="seconds")}) + "\n")
        Alert(file)(failed())
    assert len(received.bodies) == 2


def test_a_fault_that_comes_back_behind_another_dags_all_clear_is_news(tmp_path: Path, received: Any) -> None:
    file, wrong = pipeline_file(tmp_path, received.url), {"equal": False}

    def posted(notify: Any, context: dict[str, Any]) -> int:
        before = len(received.bodies)
        notify(file)(context)
        return len(received.bodies) - before

    for clears in (("shop.orders",), ()):
        Alert(file)(verified(orders=wrong, items=wrong))
        assert posted(AllClear, of_dag(succeeded("verify", *clears), "shop.repair")) == 1
        assert posted(Alert, verified(orders=wrong, items=wrong)) == 1
        assert posted(Alert, verified(orders=wrong, items=wrong)) == 0
    Alert(file)(of_dag(verified(lines=wrong), "shop.backfill"))
    assert posted(AllClear, of_dag(succeeded("verify", "shop.lines"), "shop.repair")) == 1
    assert posted(Alert, verified(orders=wrong, items=wrong)) == 0, "of another table"
    mends = {"orders": {"equal": True}, "lines": wrong}
    assert posted(Alert, of_dag(verified(**mends), "shop.backfill")) == 1
    assert posted(Alert, verified(orders=wrong, items=wrong)) == 1, "a check that failed found it well"


def test_a_fault_of_no_table_is_news_behind_another_dags_all_clear(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    away = {**failed(), "exception": RuntimeError("MySQL is away")}
    Alert(file)(away)
    AllClear(file)(of_dag(succeeded(), "shop.repair"))
    Alert(file)(away)
    assert [body["message"] for body in received.bodies] == ["MySQL is away", "all clear", "MySQL is away"]
    other = {"dag_id": "shop.repair", "task_id": "stage", "run_id": "r", "log_url": ""}
    Alert(file)({"ti": SimpleNamespace(**other), "exception": RuntimeError("MySQL is away")})
    AllClear(file)({"ti": SimpleNamespace(**other, xcom_pull=lambda task_ids: None)})
    Alert(file)(away)
    assert len(received.bodies) == 5, "of another task"


def test_an_all_clear_that_the_webhook_did_not_take_is_sent_again(tmp_path: Path, received: Any) -> None:
    file, well = pipeline_file(tmp_path, received.url), (AllClear, succeeded())
    taken(received, 200, (Alert, failed()), file=file)
    refused = taken(received, 500, well, well, file=file)
    assert len(refused) == 2
    assert len(folder.read_alerts(pipeline_files.load(file))) == 2, "kept once, however often it is tried"
    [clear] = taken(received, 200, well, well, well, file=file)
    assert (clear["message"], clear["clear"]) == ("all clear: shop.orders", True)
    assert clear == {key: value for key, value in refused[0].items() if key != "posted"}
    assert [kept["posted"] for kept in folder.read_alerts(pipeline_files.load(file))] == [True, False, True]


def test_a_webhook_gets_no_all_clear_from_before_it_was_there(tmp_path: Path, received: Any) -> None:
    without = pipeline_file(tmp_path)
    Alert(without)(failed())
    AllClear(without)(succeeded())
    assert taken(received, 200, (AllClear, succeeded()), file=pipeline_file(tmp_path, received.url)) == []


def test_mended_tables_that_the_webhook_did_not_take_are_told_by_the_next_alert(tmp_path: Path, received: Any) -> None:
    file, wrong, well = pipeline_file(tmp_path, received.url), {"equal": False}, {"equal": True}
    all_wrong, one_left = (Alert, verified(orders=wrong, items=wrong)), (Alert, verified(orders=wrong, items=well))
    for last, told in ((one_left, ["shop.items"]), ((Alert, failed()), ["shop.items"]), (all_wrong, [])):
        taken(received, 200, all_wrong, file=file)
        taken(received, 500, one_left, file=file)
        [alert] = taken(received, 200, last, last, file=file)
        assert alert["mended"] == told
    taken(received, 500, (AllClear, succeeded("verify", "shop.items")), one_left, file=file)
    [clear] = taken(received, 200, (AllClear, succeeded()), file=file)
    assert (clear["message"], clear["clear"]) == ("all clear: shop.items, shop.orders", True)
    taken(received, 200, all_wrong, file=file)
    taken(received, 500, (AllClear, succeeded()), file=file)
    [alert] = taken(received, 200, one_left, file=file)
    assert (alert["mended"], [*alert["since"]]) == (["shop.items"], ["shop.orders"])


def test_what_is_mended_is_posted_beside_a_fault_that_was_told(tmp_path: Path, received: Any) -> None:
    file, wrong = pipeline_file(tmp_path, received.url), {"equal": False}
    mends = verified(orders=wrong, items={"equal": True})
    Alert(file)(mends)
    Alert(file)(of_dag(verified(items=wrong), "shop.backfill"))
    [alert] = taken(received, 200, (Alert, mends), (Alert, mends), file=file)
    assert (alert["mended"], [*alert["since"]]) == (["shop.items"], ["shop.orders"])


def test_a_table_that_left_is_told_again_until_the_webhook_takes_it(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    report = {"named": [], "tables": {"shop.items": {"equal": False}}}
    left = (Alert, {**failed(), "exception": JobFailed({**RESULT, **report})})
    taken(received, 200, (Alert, failed()), file=file)
    taken(received, 500, left, file=file)
    [alert] = taken(received, 200, left, left, file=file)
    assert alert["left"] == ["shop.orders"]
