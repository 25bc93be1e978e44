"""A failure is logged, kept and posted, with table and difference; a webhook that is away hides nothing."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import pipeline_files
from headrace.alerts import Alert, AllClear
from headrace.run_conf import UnknownParameter
from headrace.spark_job import JobFailed
from quality import folder

RESULT = {
    "job": "verify",
    "pipeline": "shop",
    "ok": False,
    "error": "1 of 2 tables differ",
    "tables": {
        "shop.orders": {
            "equal": False,
            "source_count": 5,
            "lake_count": 4,
            "source_checksum": "1",
            "lake_checksum": "2",
        },
        "shop.items": {"equal": True, "source_count": 9, "lake_count": 9},
    },
}


def pipeline_file(tmp_path: Path, webhook: str = "") -> str:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "format: 1\nname: shop\nsource: {host: localhost, user: u, password_file: p, server_id: 7}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: 'localhost:9092'}\n"
        f"lake: {{path: {tmp_path}/lake}}\n" + (f"quality: {{webhook: '{webhook}'}}\n" if webhook else "")
    )
    return str(file)


def failed() -> dict[str, Any]:
    ti = SimpleNamespace(dag_id="shop.quality", task_id="verify", run_id="r1", log_url="http://a/log")
    return {"ti": ti, "exception": JobFailed(RESULT)}


def succeeded(task: str = "verify", *tables: str) -> dict[str, Any]:
    """`tables`: those that it was started for; none: all."""
    report = {"named": [*tables]} if tables else None
    facts: dict[str, Any] = {"dag_id": "shop.quality", "task_id": task, "run_id": "r2", "log_url": "http://a/log"}
    return {"ti": SimpleNamespace(**facts, xcom_pull=lambda task_ids: report)}


def test_all_clear_is_said_once_behind_a_failure(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    AllClear(file)(succeeded())
    assert received.bodies == [], "it had not failed"
    Alert(file)(failed())
    AllClear(file)(succeeded("other"))
    for _ in range(2):
        AllClear(file)(succeeded())
    alert, clear = received.bodies
    assert clear["clear"]
    assert clear["message"] == "all clear: shop.orders"
    assert clear["tables"]["shop.orders"] == f"all clear, at fault since {alert['since']['shop.orders']}"
    assert clear["since"] == alert["since"]
    Alert(file)(failed())
    assert len(received.bodies) == 3, "the same failure is news again"


def verified(**tables: Any) -> dict[str, Any]:
    ti = SimpleNamespace(dag_id="shop.quality", task_id="verify", run_id="r3", log_url="http://a/log")
    return {"ti": ti, "exception": JobFailed({**RESULT, "tables": {f"shop.{name}": t for name, t in tables.items()}})}


def test_an_alert_says_since_when_and_what_to_do(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    pipeline = pipeline_files.load(file)
    long_ago = "2026-01-0{}T00:00:00+00:00".format
    kept: dict[str, Any] = {"dag": "shop.quality", "task": "verify", "message": "earlier", "posted": True, "tables": {}}
    folder.append_alert(pipeline, {**kept, "at": long_ago(4), "since": {"shop.orders": long_ago(3)}})
    Alert(file)(failed())
    assert received.bodies[-1]["since"] == {"shop.orders": long_ago(3)}
    assert "Start the DAG shop.repair" in received.bodies[-1]["next_step"]
    Alert(file)({**failed(), "exception": RuntimeError("the server is away")})
    assert received.bodies[-1]["since"] == {"shop.orders": long_ago(3)}, "nobody said that it is well again"
    Alert(file)(verified(orders={"equal": False, "since": long_ago(5)}))
    assert received.bodies[-1]["since"] == {"shop.orders": long_ago(5)}, "the check knows better"
    folder.append_alert(pipeline, {**kept, "at": long_ago(6), "clear": True, "since": {"shop.orders": long_ago(3)}})
    Alert(file)(failed())
    assert received.bodies[-1]["since"] == {"shop.orders": received.bodies[-1]["at"]}, "a fault of its own"


def next_step(file: str, received: Any, exception: Exception) -> str:
    Alert(file)({**failed(), "exception": exception})
    return str(received.bodies[-1]["next_step"])


def test_a_repair_is_the_next_step_only_where_there_is_a_difference_for_it(tmp_path: Path, received: Any) -> None:
    file, equal = pipeline_file(tmp_path, received.url), {"shop.orders": {"equal": True, "source_count": 5}}
    uncompared = {"equal": False, "source_count": None, "reason": "it could not be compared: no right"}
    unmet = {"tables": {"shop.orders": {"failed": [{"expectation": "not null"}]}}}

    def step(**report: Any) -> str:
        return next_step(file, received, JobFailed({**RESULT, **report}))

    mend = "Mend the rows in the source, or the suite file; then start the DAG shop.quality"
    assert step(tables=equal, expectations=unmet) == mend
    assert step(tables=equal, expectations={"files": ["shop.orders.json: cannot be read"]}) == mend
    assert step(expectations=unmet).startswith("Start the DAG shop.repair"), "one table differs"
    for nothing_found in ({"tables": {}}, {"tables": {"shop.orders": uncompared}, "expectations": unmet}):
        assert step(**nothing_found).startswith("Do as the message says")
    away = next_step(file, received, JobFailed({"ok": False, "error": "the commit log of shop is empty"}))
    assert away.startswith("Do as the message says")
    assert next_step(file, received, RuntimeError("the verify job died")) == away


def test_an_error_that_knows_its_next_step_tells_that(tmp_path: Path, received: Any) -> None:
    """A check that was started with a misspelled name has found nothing that a repair could mend."""
    Alert(pipeline_file(tmp_path, received.url))({**failed(), "exception": UnknownParameter("no parameter 'tabels'")})
    assert received.bodies[-1]["next_step"] == "Start the DAG again, with a conf of the names that it has"


def test_what_another_check_is_to_tell_asks_for_that(tmp_path: Path, received: Any) -> None:
    context = verified(orders={"equal": False, "reason": "a snapshot of it was applied meanwhile: verify again"})
    context["exception"].result["again"] = True
    Alert(pipeline_file(tmp_path, received.url))(context)
    assert received.bodies[-1]["next_step"].startswith("Start the DAG shop.quality: ")


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
    assert clear["tables"] == {"shop.orders": "dropped, renamed or excluded since"}
    assert clear["message"] == "all clear; dropped, renamed or excluded since: shop.orders"
    Alert(file)(verified(orders=wrong, items=wrong))
    context["ti"].xcom_pull = lambda task_ids: {"named": [], "tables": {"shop.items": {**well, "clears": False}}}
    AllClear(file)(context)
    message = "dropped, renamed or excluded since: shop.orders; not looked at, and at fault since it was: shop.items"
    assert (received.bodies[-1]["message"], received.bodies[-1]["clear"]) == (message, False)


def test_a_suite_file_at_fault_leaves_no_pipeline(tmp_path: Path, received: Any) -> None:
    file, found = pipeline_file(tmp_path, received.url), {"tables": {"shop.orders": {"equal": False}}, "named": []}
    files = {"expectations": {"files": ["shop.items.json: cannot be read"]}}
    for report in ({**found, **files}, found):
        Alert(file)({**failed(), "exception": JobFailed({**RESULT, **report})})
    assert (received.bodies[-1]["left"], len(received.bodies[-1]["since"])) == ([], 2)


def test_a_table_that_left_is_told_again_until_the_webhook_takes_it(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    report = {"named": [], "tables": {"shop.items": {"equal": False}}}
    left = (Alert, {**failed(), "exception": JobFailed({**RESULT, **report})})
    taken(received, 200, (Alert, failed()), file=file)
    taken(received, 500, left, file=file)
    [alert] = taken(received, 200, left, left, file=file)
    assert alert["left"] == ["shop.orders"]


def taken(received: Any, status: int, *told: tuple[Any, dict[str, Any]], file: str) -> list[dict[str, Any]]:
    """What was sent to the webhook, which answers so, of each notifier and its context."""
    received.status = status
    received.bodies.clear()
    for notifier, context in told:
        notifier(file)(context)
    return [*received.bodies]


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


def of_dag(context: dict[str, Any], dag: str) -> dict[str, Any]:
    context["ti"].dag_id = dag
    return context


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


def test_it_is_logged_kept_and_posted(tmp_path: Path, received: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = pipeline_file(tmp_path, received.url)
    Alert(file)(failed())
    kept = folder.read_alerts(pipeline_files.load(file))[0]
    assert kept["tables"] == {
        "shop.orders": "rows 5 in the source, 4 in the lake, checksum 1 in the source, 2 in the lake",
    }
    assert (kept["dag"], kept["task"], kept["message"]) == ("shop.quality", "verify", "1 of 2 tables differ")
    assert kept.pop("posted") is True
    assert received.bodies == [kept]
    logged = capsys.readouterr().out
    assert "ALERT shop.orders: rows 5 in the source, 4 in the lake" in logged
    assert "next step: Start the DAG shop.repair" in logged


@pytest.fixture
def garbage() -> Any:
    """The URL of a server that answers one request, with what is no HTTP."""

    def answer() -> None:
        with server.accept()[0] as caller:
            caller.recv(65_536)
            caller.sendall(b"garbage\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/secret"


def test_a_webhook_that_refuses_or_is_away_is_only_logged(
    tmp_path: Path, received: Any, garbage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    received.status = 500
    urls = (received.url, "http://127.0.0.1:9/secret", "http://127.0.0.1:9/se cret", garbage)
    for url in urls:
        Alert(pipeline_file(tmp_path, url))(failed())
    assert len(folder.read_alerts(pipeline_files.load(pipeline_file(tmp_path)))) == len(urls)
    logged = capsys.readouterr().out
    for cause in ("HTTPError 500", "ConnectionRefusedError Connection refused", "InvalidURL", "BadStatusLine"):
        assert f"quality.webhook (127.0.0.1) did not take the alert: {cause}" in logged
    assert "cret" not in logged, "a webhook's path is a secret"


def test_any_other_failure_is_told_too(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path)
    Alert(file)({**failed(), "exception": RuntimeError("no broker")})
    kept = folder.read_alerts(pipeline_files.load(file))[0]
    assert (kept["message"], kept["tables"]) == ("no broker", {})


def test_newest_first(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path)
    for text in ("one", "two", "three"):
        Alert(file)({**failed(), "exception": RuntimeError(text)})
    assert [alert["message"] for alert in folder.read_alerts(pipeline_files.load(file), last=2)] == ["three", "two"]


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
