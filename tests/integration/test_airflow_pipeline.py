"""A pipeline run by its DAGs alone, end to end: snapshot, changes, proof, and a fault that must be found.

Compaction has no schedule here, so the snapshot and the check start the compactions that they need.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from contract.pipeline import load
from contract.status import LakeStatus, read
from stack.airflow import Airflow
from stack.demo.airflow_api import Airflow as Api
from stack.demo.airflow_api import Run
from stack.kafka import Kafka
from stack.maven import spark_jars
from stack.mysql import MySQL
from stack.ports import free_port
from stack.streamer import StreamerService

pytestmark = pytest.mark.timeout(2400)  # five Spark applications, on whatever else the machine does

PIPELINE = """
format: 1
name: dags
source: {{host: 127.0.0.1, port: {mysql}, user: headrace, password: "${{HEADRACE_MYSQL_PASSWORD}}", server_id: 7100}}
tables: {{include: ["dagshop.*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 2}}
streamer: {{http: {{port: {http}}}}}
lake: {{path: {lake}}}
quality: {{webhook: "{webhook}"}}
"""
TABLES = """
CREATE DATABASE dagshop;
CREATE TABLE dagshop.orders (id INT PRIMARY KEY, state ENUM('new', 'paid') NOT NULL, amount DECIMAL(10, 2));
CREATE TABLE dagshop.items (shop INT, id INT, name VARCHAR(20) NOT NULL, PRIMARY KEY (shop, id));
"""


@pytest.fixture(scope="module")
def webhook() -> Iterator[SimpleNamespace]:
    got = SimpleNamespace(bodies=[], url="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    got.url = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield got
    server.shutdown()
    server.server_close()


def sql(mysql: MySQL, *statements: str) -> None:
    with mysql.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(scope="module")
def world(
    mysql: MySQL, kafka: Kafka, webhook: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SimpleNamespace]:
    """`api` of a real Airflow, `status()` of the lake; the streamer runs."""
    spark_jars()
    home, http = tmp_path_factory.mktemp("dags"), free_port()
    (home / "pipelines").mkdir()
    file = home / "pipelines" / "dags.yaml"
    words = {"mysql": mysql.port, "kafka": kafka.address, "http": http, "lake": home / "lake", "webhook": webhook.url}
    file.write_text(PIPELINE.format(**words))
    orders = ", ".join(f"({n}, 'new', {n}.50)" for n in range(1000))
    items = ", ".join(f"({n % 7}, {n}, 'item {n}')" for n in range(500))
    sql(mysql, *filter(str.strip, TABLES.split(";")))
    sql(mysql, f"INSERT INTO dagshop.orders VALUES {orders}", f"INSERT INTO dagshop.items VALUES {items}")
    settings = {"HEADRACE_PIPELINES": str(file.parent), "HEADRACE_MYSQL_PASSWORD": mysql.password}
    servers = [StreamerService(home / "streamer", file, http, settings), Airflow(home, free_port(), settings)]
    try:
        for server in servers:
            server.start()
        api = Api(servers[1].url)
        api.wait_for(["dags.snapshot", "dags.compaction", "dags.quality"])
        yield SimpleNamespace(api=api, status=lambda: lake_status(file, mysql))
    finally:
        for server in reversed(servers):
            server.stop()


def lake_status(file: Path, mysql: MySQL) -> LakeStatus:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADRACE_MYSQL_PASSWORD", mysql.password)
        status = read(load(file))
    assert status is not None
    return status


def ended(api: Api, dag: str, conf: dict[str, Any] | None = None) -> Run:
    body = {"logical_date": None, "conf": conf or {}}
    answer = httpx.post(f"{api.url}/api/v2/dags/{dag}/dagRuns", json=body).raise_for_status().json()
    run = Run(dag, answer["dag_run_id"], answer["state"], 0.0)
    while run.state not in ("success", "failed"):
        time.sleep(1)
        run = api.run(run)
    return run


def states(api: Api, run: Run) -> dict[str, str]:
    return {task.name: task.state for task in api.tasks(run)}


def test_a_snapshot_of_all_tables_arrives_in_the_lake(world: SimpleNamespace) -> None:
    run = ended(world.api, "dags.snapshot")
    assert states(world.api, run) == dict.fromkeys(("stage", "streamed", "compact", "applied"), "success")
    tables = world.status().tables
    assert {name: table.rows for name, table in tables.items()} == {"dagshop.orders": 1000, "dagshop.items": 500}


def test_a_check_starts_the_compaction_it_waits_for_and_proves_the_tables_equal(
    world: SimpleNamespace, mysql: MySQL
) -> None:
    sql(
        mysql,
        "UPDATE dagshop.orders SET state = 'paid' WHERE id < 100",
        "DELETE FROM dagshop.items WHERE id < 10",
        "INSERT INTO dagshop.orders VALUES (5000, 'new', NULL)",
    )
    run = ended(world.api, "dags.quality")
    assert states(world.api, run) == dict.fromkeys(("verify", "waits", "streamed", "compact"), "success")
    result = world.api.result(run, "verify")
    assert result["expectations"]["ok"] is True
    assert {name: (facts["equal"], facts["lake_count"]) for name, facts in result["tables"].items()} == {
        "dagshop.orders": (True, 1001),
        "dagshop.items": (True, 490),
    }


def test_a_second_compaction_changes_nothing(world: SimpleNamespace) -> None:
    before = world.status()
    assert ended(world.api, "dags.compaction").state == "success"
    after = world.status()
    assert after.run == before.run + 1
    versions = (
        {name: (table.rows, table.changes, table.version) for name, table in s.tables.items()} for s in (before, after)
    )
    assert next(versions) == next(versions)


def test_a_difference_fails_the_task_which_names_it_and_alerts(
    world: SimpleNamespace, mysql: MySQL, webhook: SimpleNamespace
) -> None:
    # A change that MySQL was told to keep out of its binlog can reach no lake.
    sql(mysql, "SET sql_log_bin = 0", "DELETE FROM dagshop.orders WHERE id = 500")
    run = ended(world.api, "dags.quality")
    assert states(world.api, run)["verify"] == "failed"
    result = world.api.result(run, "verify")
    assert result["tables"]["dagshop.orders"]["equal"] is False
    assert result["tables"]["dagshop.items"]["equal"] is True
    [alert] = webhook.bodies
    assert (alert["dag"], alert["task"], alert["pipeline"]) == ("dags.quality", "verify", "dags")
    assert list(alert["tables"]) == ["dagshop.orders"]
    assert "rows 1000 in the source, 1001 in the lake" in alert["tables"]["dagshop.orders"]
    assert "dagshop.orders" in alert["message"]


def test_a_snapshot_of_one_table_mends_it(world: SimpleNamespace) -> None:
    run = ended(world.api, "dags.snapshot", {"tables": ["dagshop.orders"]})
    assert run.state == "success"
    assert list(world.api.result(run, "stage")["tables"]) == ["dagshop.orders"]
    assert world.status().tables["dagshop.orders"].rows == 1000
