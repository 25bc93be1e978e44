"""The DAGs in a real Airflow, driven by its REST API, over a real MySQL and a real Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from stack.airflow import Airflow
from stack.demo.airflow_api import Airflow as Api
from stack.demo.airflow_api import Run
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port

PIPELINE = """
format: 1
name: {name}
source: {{host: 127.0.0.1, port: {mysql}, user: headrace, password: "${{HEADRACE_MYSQL_PASSWORD}}", server_id: 7001}}
tables: {{include: ["{db}.*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 2}}
lake: {{path: {lake}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipelines")


def write(folder: Path, mysql: MySQL, kafka: str, name: str, db: str) -> None:
    text = PIPELINE.format(name=name, db=db, mysql=mysql.port, kafka=kafka, lake=folder.parent / "lake")
    (folder / f"{name}.yaml").write_text(text)


@pytest.fixture(scope="module")
def airflow(folder: Path, mysql: MySQL, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with mysql.connect() as connection, connection.cursor() as cursor:
        for db in ("air1", "air2"):
            cursor.execute(f"CREATE DATABASE {db}")
            cursor.execute(f"CREATE TABLE {db}.orders (id INT PRIMARY KEY, state ENUM('new', 'paid'))")
            cursor.execute(f"CREATE TABLE {db}.items (id INT PRIMARY KEY)")
    write(folder, mysql, kafka.address, "air-one", "air1")
    write(folder, mysql, kafka.address, "air-two", "air2")
    write(folder, mysql, "127.0.0.1:9", "air-three", "air1")
    (folder / "wrong.yaml").write_text("format: 1\nname: wrong\nsorce: {}\n")
    settings = {"HEADRACE_PIPELINES": str(folder), "HEADRACE_MYSQL_PASSWORD": mysql.password}
    server = Airflow(tmp_path_factory.mktemp("airflow"), free_port(), settings)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def api(airflow: Airflow) -> Api:
    client = Api(airflow.url)
    client.wait_for([f"air-one.{purpose}" for purpose in ("topics", "snapshot", "compaction", "quality")])
    return client


def ended(api: Api, dag: str, seconds: float = 120.0) -> Run:
    """Triggers the DAG and follows the run to its end, good or bad."""
    run = api.trigger(dag)
    deadline = time.monotonic() + seconds
    while run.state not in ("success", "failed"):
        assert time.monotonic() < deadline, f"{dag} is {run.state} after {seconds} s"
        time.sleep(1)
        run = api.run(run)
    return run


def log_of(airflow: Airflow, run: Run, task: str) -> str:
    path = f"{airflow.url}/api/v2/dags/{run.dag}/dagRuns/{run.id}/taskInstances/{task}/logs/1"
    return httpx.get(path, headers={"Accept": "application/x-ndjson"}, timeout=30).text


def test_a_wrong_file_is_an_import_error_and_the_others_have_their_dags(airflow: Airflow, api: Api) -> None:
    dags = httpx.get(f"{airflow.url}/api/v2/dags", params={"limit": 100}).json()["dags"]
    found = {dag["dag_id"].partition(".")[0]: dag for dag in dags}
    assert set(found) == {"air-one", "air-two", "air-three"}
    assert not any(dag["has_import_errors"] for dag in dags)
    errors = httpx.get(f"{airflow.url}/api/v2/importErrors").json()["import_errors"]
    assert [error["filename"] for error in errors] == ["headrace_pipeline_files.py"]
    assert "did you mean source?" in errors[0]["stack_trace"]
    assert "Traceback" not in errors[0]["stack_trace"]


def test_topics_are_made_once_and_then_are_as_wanted(api: Api, kafka: Kafka) -> None:
    names = {f"air-one.{name}" for name in ("air1.items", "air1.orders", "commit-log", "ddl", "schemas")}
    first = ended(api, "air-one.topics")
    assert first.state == "success"
    assert set(api.result(first, "provision")["created"]) == names
    topics = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=10).topics
    assert len(topics["air-one.air1.orders"].partitions) == 2
    again: dict[str, Any] = api.result(ended(api, "air-one.topics"), "provision")
    assert set(again["as_wanted"]) == names
    assert again["created"] == []


def test_a_topic_with_other_settings_fails_the_task_and_says_so(airflow: Airflow, api: Api, kafka: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic("air-two.air2.orders", 5, 1)])["air-two.air2.orders"].result(30)
    run = ended(api, "air-two.topics")
    assert run.state == "failed"
    log = log_of(airflow, run, "provision")
    assert "air-two.air2.orders: partitions is 5, the pipeline file wants 2" in log
    assert "ALERT air-two.topics provision" in log
    assert "air-two.air2.orders" in api.result(run, "provision")["differing"]


def test_a_broker_that_is_away_fails_with_the_next_step(airflow: Airflow, api: Api, folder: Path) -> None:
    run = ended(api, "air-three.topics")
    assert run.state == "failed"
    log = log_of(airflow, run, "provision")
    assert "127.0.0.1:9" in log
    assert "kafka.bootstrap" in log
    assert (folder.parent / "lake" / "air-three" / "_quality" / "alerts.jsonl").exists()
