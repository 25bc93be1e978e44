"""`headrace serve` over real servers: pipelines of two servers, a kill of one, a pause, a kill of the supervisor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from stack.kafka import Kafka
from stack.mariadb import MariaDB
from stack.mysql import MySQL
from stack.ports import free_port
from tests.integration.streaming import ROOT, Make, arrived, insert

TOKEN = "operate-token-of-the-test"


class Service:
    """The supervisor, as a process of its own, over a folder."""

    def __init__(self, folder: Path, password: str) -> None:
        self.folder, self.port, self.log_path = folder, free_port(), folder / "serve.log"
        self._environment = {**os.environ, "SERVED_PASSWORD": password, "PYTHONPATH": str(ROOT),
                             "HEADRACE_API_OPERATE_TOKENS": TOKEN}  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "streamer.cli", "serve", str(self.folder), "--port", str(self.port),
                   "--log", "json", "--log-level", "DEBUG"]  # fmt: skip
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(command, env=self._environment, cwd=ROOT, stdout=log, stderr=log)

    def ask(self, path: str, method: str = "GET", body: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/yaml"}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, body.encode() if body else None, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def changes(self, path: str) -> list[Any]:
        """What the server-sent events of a read that ends say."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            parts = [dict(line.split(": ", 1) for line in part.splitlines()) for part in
                     answer.read().decode().split("\n\n") if part and not part.startswith(":")]  # fmt: skip
        assert parts[-1]["event"] == "end", parts
        return [json.loads(part["data"]) for part in parts[:-1]]

    def wait(self, holds: Callable[[], Any], seconds: float = 60) -> Any:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if found := holds():
                    return found
            except (OSError, KeyError):
                pass
            time.sleep(0.1)
        raise AssertionError(self.log_path.read_text()[-6000:])

    def streams(self, *names: str) -> bool:
        return all(self.ask(f"/pipelines/{name}")["state"] == "streaming" for name in names)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


@pytest.fixture
def service(tmp_path: Path, mysql: MySQL) -> Iterator[Service]:
    folder = tmp_path / "served"
    folder.mkdir()
    made = Service(folder, mysql.password)
    yield made
    made.close()


def test_pipelines_of_two_servers_outlive_each_other_and_the_supervisor(
    make: Make, service: Service, mysql: MySQL, mariadb: MariaDB, kafka: Kafka
) -> None:
    one, two = make("servedone", mysql), make("servedtwo", mariadb)
    (service.folder / "mariadb.password").write_text(mariadb.password)
    for made, secret in ((one, "${SERVED_PASSWORD}"), (two, f"${{file:{service.folder}/mariadb.password}}")):
        (service.folder / made.file.name).write_text(made.file.read_text().replace("${TEST_PASSWORD}", secret))
    service.start()
    service.wait(lambda: service.streams("servedone", "servedtwo"))
    insert(mysql, "servedone", 1, 10)
    insert(mariadb, "servedtwo", 1, 10)
    service.wait(lambda: arrived(kafka, "servedone") == arrived(kafka, "servedtwo") == list(range(1, 11)))

    changes = service.changes("/pipelines/servedtwo/events?from_beginning=true&limit=10&table=servedtwo.t")
    assert sorted(change["key"]["id"] for change in changes) == list(range(1, 11))

    before = service.ask("/pipelines/servedtwo")["pid"]
    killed = service.ask("/pipelines/servedone")["pid"]
    os.kill(killed, signal.SIGKILL)
    insert(mysql, "servedone", 11, 5)
    service.wait(lambda: service.streams("servedone") and service.ask("/pipelines/servedone")["restarts"] == 1)
    service.wait(lambda: arrived(kafka, "servedone") == list(range(1, 16)))
    assert service.ask("/pipelines/servedtwo")["pid"] == before
    assert service.ask("/pipelines/servedone/errors")[0]["kind"] == "crashed"

    service.ask("/pipelines/servedtwo/pause", "POST")
    service.wait(lambda: service.ask("/pipelines/servedtwo")["state"] == "paused")
    service.wait(lambda: service.ask("/pipelines/servedtwo")["lag_seconds"] == 0)
    insert(mariadb, "servedtwo", 11, 5)
    lag = service.wait(lambda: service.ask("/pipelines/servedtwo")["lag_seconds"])
    assert lag < 15, "since it last had everything"

    assert service.process is not None
    children = [process.pid for process in psutil.Process(service.process.pid).children()]
    service.process.kill()
    service.process.wait()
    service.wait(lambda: not any(psutil.pid_exists(pid) for pid in children))
    insert(mysql, "servedone", 16, 5)
    service.start()
    service.wait(lambda: service.streams("servedone"))
    assert service.ask("/pipelines/servedtwo")["state"] == "paused", "it outlives the supervisor"
    service.wait(lambda: service.ask("/pipelines/servedtwo")["lag_seconds"])
    service.wait(lambda: arrived(kafka, "servedone") == list(range(1, 21)))
    assert arrived(kafka, "servedtwo") == list(range(1, 11))

    service.ask("/pipelines/servedtwo/resume", "POST")
    service.wait(lambda: arrived(kafka, "servedtwo") == list(range(1, 16)))
    service.close()
    log = service.log_path.read_text()
    assert service.process.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"servedone", "servedtwo"} <= {line.get("pipeline") for line in lines if line["event"] == "flushed"}
    for secret in (mysql.password, mariadb.password, TOKEN):
        assert secret not in log


def test_without_a_token_only_this_machine_is_served(service: Service) -> None:
    command = [sys.executable, "-m", "streamer.cli", "serve", str(service.folder), "--host", "0.0.0.0"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HEADRACE_API")}
    done = subprocess.run(command, env={**environment, "PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True,
                          text=True, timeout=60)  # fmt: skip
    assert done.returncode == 1
    assert "error (serve)" in done.stderr
    assert "HEADRACE_API_OPERATE_TOKENS" in done.stderr
