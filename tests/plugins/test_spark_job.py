"""The operator of a Spark job: what it submits, what it gives back, and what a failure says."""

from __future__ import annotations

import json
import stat
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from headrace import CHECKOUT
from headrace.spark_job import JobFailed, JobFailedForNow, SparkJob, cause
from headrace.waiting import AllStaged

FAKE = "#!{python}\nimport sys, os\nsys.path.insert(0, {checkout!r})\nfrom contract.jobs import report\n{body}\n"

STARTED = {"dag": SimpleNamespace(dag_id="shop.compaction", params={}), "dag_run": SimpleNamespace(conf={})}


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the operator against a spark-submit that does `body`; `arguments` are what it was given."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.setenv("HEADRACE_SPARK_MEMORY", "3g")
    monkeypatch.setenv("HEADRACE_SPARK_JAVA", "-XX:TieredStopAtLevel=1")
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "given.jar").touch()
    monkeypatch.setenv("HEADRACE_SPARK_JARS", str(tmp_path / "given"))

    def run(body: str, **kwargs: Any) -> Any:
        script = tmp_path / "spark-submit"
        script.write_text(FAKE.format(python=sys.executable, checkout=str(CHECKOUT), body=body))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        task = SparkJob(task_id="t", job="compact", **{"pipeline_file": "/p/shop.yaml", **kwargs})
        return task.execute({"ti": run.ti, **STARTED})

    run.ti = MagicMock()
    return run


def test_the_report_of_the_job_is_the_result_of_the_task(submit: Any) -> None:
    body = "report(job='compact', pipeline='shop', argv=sys.argv[1:], cwd=os.getcwd(), path=os.environ['PYTHONPATH'],"
    body += "ip=os.environ['SPARK_LOCAL_IP'])"
    result = submit(body)
    assert result["ok"] is True
    assert result["cwd"] == result["path"] == str(CHECKOUT)
    assert result["ip"] == "127.0.0.1"
    argv = result["argv"]
    assert argv[-3:] == [f"{CHECKOUT}/spark/jobs/compact.py", "--pipeline", "/p/shop.yaml"]
    assert argv[argv.index("--master") + 1] == "local[2]"
    assert argv[argv.index("--driver-memory") + 1] == "3g"
    logging = f"-Dlog4j2.configurationFile={(CHECKOUT / 'spark' / 'log4j2.properties').as_uri()}"
    [java] = [one for one in argv if one.startswith("spark.driver.extraJavaOptions=")]
    assert java.endswith(f"{logging} -Duser.timezone=UTC -XX:TieredStopAtLevel=1")


def test_chosen_tables_are_passed_on_and_all_are_by_default(submit: Any) -> None:
    body = "report(job='snapshot', pipeline='shop', argv=sys.argv[1:])"
    assert submit(body, tables="shop.a,shop.b")["argv"][-1] == "--tables=shop.a,shop.b"
    assert submit(body, tables="-old.a")["argv"][-1] == "--tables=-old.a"
    assert "--tables" not in " ".join(submit(body)["argv"])


def test_options_are_passed_on_as_they_are_and_empty_ones_are_not(submit: Any) -> None:
    body = "report(job='snapshot', pipeline='shop', argv=sys.argv[1:])"
    options = {"from": "-1", "to": "", "existing": "yes"}
    assert submit(body, options=options)["argv"][-3:] == ["/p/shop.yaml", "--from=-1", "--existing=yes"]


def test_keys_are_passed_on_in_a_file_that_goes(submit: Any) -> None:
    keys = json.dumps([f"key {n}" for n in range(20_000)])
    body = "file = sys.argv[-1].removeprefix('--keys-file=')\n"
    body += "report(job='erase', pipeline='shop', file=file, size=os.path.getsize(file))"
    told = submit(body, options={"keys": keys})
    assert told["size"] == len(keys) > 128 * 1024
    assert not Path(told["file"]).exists()


def test_jars_come_from_the_folder(submit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("HEADRACE_SPARK_JARS", str(tmp_path / "jars"))
    body = "report(job='compact', pipeline='shop', argv=sys.argv[1:])"
    with pytest.raises(AirflowFailException, match=r"holds no \.jar file"):
        submit(body)
    for name in ("b.jar", "a.jar"):
        (tmp_path / "jars" / name).touch()
    argv = submit(body)["argv"]
    assert argv[argv.index("--jars") + 1] == f"{tmp_path}/jars/a.jar,{tmp_path}/jars/b.jar"


def test_jars_are_by_default_those_that_make_fetched(
    submit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_SPARK_JARS")
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    file = tmp_path / "shop.yaml"
    file.write_text(
        "format: 1\nname: shop\nsource: {host: h, user: u, password: '${NOT_SET}', server_id: 7}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: 'h:9092'}\nlake: {path: 's3a://lakes/shop'}\n"
    )
    body = "report(job='compact', pipeline='shop', argv=sys.argv[1:])"
    with pytest.raises(AirflowFailException, match="Run `make spark-jars`"):
        submit(body)
    made = [tmp_path / f"spark-jars-{metadata.version('pyspark')}-1" / "a.jar", tmp_path / "spark-s3-jars-1" / "b.jar"]
    for jar in made:
        jar.parent.mkdir()
        jar.touch()
    argv = submit(body)["argv"]
    assert argv[argv.index("--jars") + 1] == str(made[0])
    argv = submit(body, pipeline_file=str(file))["argv"]
    assert argv[argv.index("--jars") + 1] == f"{made[0]},{made[1]}"


def test_a_reported_failure_becomes_the_tasks_error_and_is_not_retried(submit: Any) -> None:
    body = (
        "report(job='verify', pipeline='shop', error='shop.orders: rows 5 in the source, 4 in the lake',"
        " tables={'shop.orders': {'equal': False, 'source_count': 5, 'lake_count': 4}})\nsys.exit(1)"
    )
    with pytest.raises(JobFailed) as caught:
        submit(body)
    assert isinstance(caught.value, AirflowFailException)
    assert str(caught.value) == "shop.orders: rows 5 in the source, 4 in the lake"
    assert caught.value.result["tables"]["shop.orders"]["lake_count"] == 4
    submit.ti.xcom_push.assert_called_once_with(key="return_value", value=caught.value.result)


@pytest.mark.parametrize(("tables", "partly"), [({"shop.b": {"rows": 3}}, True), ({}, True), ({"shop.b": {}}, False)])
def test_what_was_had_of_some_tables_goes_on_where_the_task_says_so(submit: Any, tables: Any, partly: bool) -> None:
    told = "shop.a was left out: it has no key. 1 other table staged, for the next compaction"
    body = f"report(job='snapshot', pipeline='shop', error={told!r}, tables={tables!r})\nsys.exit(1)"
    if not (tables and partly):
        with pytest.raises(JobFailed, match="left out"):
            submit(body, partly=partly)
        return
    report = submit(body, partly=True)
    assert report["tables"] == tables
    rest = AllStaged(task_id="all_staged", stage="stage")
    submit.ti.xcom_pull.side_effect = lambda task_ids: {"stage": report}[task_ids]
    with pytest.raises(JobFailed) as caught:
        rest.execute({"ti": submit.ti})
    assert str(caught.value) == told
    submit.ti.xcom_pull.side_effect = lambda task_ids: {**report, "ok": True, "error": None}
    rest.execute({"ti": submit.ti})
    submit.ti.xcom_pull.side_effect = lambda task_ids: None
    with pytest.raises(AirflowFailException, match="the task stage left no report: clear it"):
        rest.execute({"ti": submit.ti})


def test_a_failure_that_may_be_over_by_the_next_run_is_retried(submit: Any) -> None:
    told = "after 600 s the lake is complete up to u:1-5, the check needs u:1-9"
    with pytest.raises(JobFailedForNow) as caught:
        submit(f"report(job='verify', pipeline='shop', error={told!r}, again=True)\nsys.exit(1)")
    assert not isinstance(caught.value, AirflowFailException)
    assert str(caught.value) == told
    assert caught.value.result["again"] is True


def test_a_job_that_dies_says_its_last_error_and_may_be_retried(submit: Any) -> None:
    body = "print('starting'); raise MemoryError('Java heap space')"
    with pytest.raises(AirflowException, match="the compact job died: MemoryError: Java heap space") as caught:
        submit(body)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_job_that_was_killed_says_so_and_not_its_last_line(submit: Any) -> None:
    body = "import os; print('shop.orders: 800,000 rows', flush=True); os.kill(os.getpid(), 9)"
    told = r"job died: it was killed from outside \(exit code (137|-9)\).*HEADRACE_SPARK_MEMORY.*clear this task"
    with pytest.raises(AirflowException, match=told) as caught:
        submit(body)
    assert "800,000" not in str(caught.value)


def test_what_the_job_waits_for_is_known_while_it_runs(submit: Any) -> None:
    submit("from contract.jobs import waits_for\nwaits_for('uuid:1-5')\nreport(job='verify', pipeline='shop')")
    submit.ti.xcom_push.assert_called_once_with(key="waits_for_1", value="uuid:1-5")


def test_a_job_that_ends_in_silence_is_a_failure(submit: Any) -> None:
    with pytest.raises(AirflowException, match="without its result"):
        submit("print('bye')")


def test_no_spark_submit_and_no_connection_say_what_to_do(submit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AirflowFailException, match="spark-submit was not found"):
        submit("")
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(AirflowFailException, match="AIRFLOW_CONN_SPARK_DEFAULT="):
        submit("")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["a", "ValueError: one", "\tat x.y(Z.java:1)", "bye"], "ValueError: one"),
        (["java.lang.OutOfMemoryError: Java heap space", "\tat x"], "java.lang.OutOfMemoryError: Java heap space"),
        (["Caused by: java.net.ConnectException: refused", "more"], "Caused by: java.net.ConnectException: refused"),
        (["first", "last", ""], "last"),
        ([], ""),
    ],
)
def test_the_cause_is_found_among_the_last_words(said: list[str], told: str) -> None:
    assert cause(said) == told
