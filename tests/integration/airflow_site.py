"""One real Airflow over the pipelines of all tests that drive it, since its start takes most of a minute."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from stack.airflow import Airflow
from stack.demo.airflow_api import Airflow as Api
from stack.demo.airflow_api import Run
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import HOST, free_port
from tests.plugins.told_by_hand import Mail

PIPELINE = """
format: 1
name: {name}
source: {{host: 127.0.0.1, port: {mysql}, user: headrace, password: "${{HEADRACE_MYSQL_PASSWORD}}", server_id: {id}}}
tables: {{include: ["{db}.*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 2}}
lake: {{path: {lake}}}
"""
CLOCK = """\
streamer: {{http: {{port: {http}}}}}
compaction: {{schedule: "* * * * *"}}
snapshot: {{reread_stale: true}}
"""
WEBHOOK = """\
streamer: {{http: {{port: {http}}}}}
quality: {{webhook: "{webhook}"}}
"""
MAILED = """\
quality:
  notifier:
    type: airflow.providers.smtp.notifications.smtp.SmtpNotifier
    settings:
      {from_email: h@example.org, to: ada@example.org, subject: "{{ alert.dag }}", html_content: "{{ alert.text }}"}
"""


class Site(NamedTuple):
    """`told`: what the webhook was sent; `mail`: who takes a mail of air-three's. `clock_port`: of the streamer of the
    pipeline that has a schedule."""

    airflow: Airflow
    api: Api
    pipelines: Path
    lake: Path
    streamer_port: int
    clock_port: int
    told: list[Any]
    mail: Mail


@pytest.fixture(scope="module")
def webhook() -> Iterator[tuple[str, list[Any]]]:
    """Its address, and what it was sent."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer((HOST, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{HOST}:{server.server_port}/", got
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def airflow_site(
    mysql: MySQL, kafka: Kafka, webhook: tuple[str, list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Airflow with the pipelines air-one, air-two, air-three (whose broker is away), dags and clock (which is compacted
    each minute once its DAG is switched on), and a wrong file."""
    address, told = webhook
    home, port, mail = tmp_path_factory.mktemp("airflow"), free_port(), Mail()
    settings = {
        "HEADRACE_PIPELINES": str(home / "pipelines"), "HEADRACE_MYSQL_PASSWORD": mysql.password,
        "AIRFLOW_CONN_SMTP_DEFAULT": mail.connection,
    }  # fmt: skip
    server = Airflow(home, free_port(), settings)
    site = Site(server, Api(server.url), home / "pipelines", home / "lake", port, free_port(), told, mail)
    site.pipelines.mkdir()
    write(site, mysql, "air-one", kafka.address, "air1")
    write(site, mysql, "air-two", kafka.address, "air2")
    write(site, mysql, "air-three", "127.0.0.1:9", "air1", MAILED)
    write(site, mysql, "dags", kafka.address, "dagshop", WEBHOOK.format(http=port, webhook=address))
    write(site, mysql, "clock", kafka.address, "clockshop", CLOCK.format(http=site.clock_port))
    (site.pipelines / "wrong.yaml").write_text("format: 1\nname: wrong\nsorce: {}\n")
    server.start()
    try:
        purposes = ("topics", "snapshot", "compaction", "quality", "maintenance", "repair", "backfill")
        names = ("air-one", "air-three", "dags", "clock")
        site.api.wait_for([f"{name}.{purpose}" for name in names for purpose in purposes])
        yield site
    finally:
        mail.close()
        server.kill()  # its data is nobody's any more, and its stop takes long


def write(site: Site, mysql: MySQL, name: str, kafka: str, db: str, more: str = "") -> None:
    words = {"name": name, "mysql": mysql.port, "db": db, "kafka": kafka, "lake": site.lake}
    words["id"] = 7100 + (name == "clock")  # which streams beside the pipeline `dags`
    (site.pipelines / f"{name}.yaml").write_text(PIPELINE.format(**words) + more)


def ended(api: Api, dag: str, conf: dict[str, Any] | None = None) -> Run:
    """Triggers the DAG and follows the run to its end, good or bad."""
    return end_of(api, api.trigger(dag, conf))


def done(api: Api, dag: str, conf: dict[str, Any] | None = None) -> Run:
    """As `ended`, but raises StackError with what failed."""
    return api.wait(api.trigger(dag, conf), 600.0)


def end_of(api: Api, run: Run, seconds: float = 600.0) -> Run:
    deadline = time.monotonic() + seconds
    while run.state not in ("success", "failed"):
        assert time.monotonic() < deadline, f"{run.dag} is {run.state} after {seconds} s"
        time.sleep(1)
        run = api.run(run)
    return run


def states(api: Api, run: Run) -> dict[str, str]:
    return {task.name: task.state for task in api.tasks(run)}


def log_of(airflow: Airflow, run: Run, task: str) -> str:
    path = f"{airflow.url}/api/v2/dags/{run.dag}/dagRuns/{run.id}/taskInstances/{task}/logs/1"
    return httpx.get(path, headers={"Accept": "application/x-ndjson"}, timeout=30).text
