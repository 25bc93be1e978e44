"""`python -m stack` as a person uses it, with the real MySQL and Kafka."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pymysql
import pytest

from stack.mysql import MySQL
from stack.paths import CHECKOUT
from stack.ports import free_port


class Machine:
    """A data folder and ports of the test's own, and the command line on them."""

    def __init__(self, data: Path) -> None:
        self.data = data
        names = ("mysql", "kafka", "airflow", "streamer", "mysql80", "mariadb")
        self.ports = [f"--{name}-port={free_port()}" for name in names]

    def popen(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "stack", *words, f"--data={self.data}"]
        if words[0] == "up":
            command += self.ports
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=CHECKOUT, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, text=True)

    def run(self, *words: str) -> tuple[int, str]:
        """Exit status, and what was printed on both outputs."""
        process = self.popen(*words)
        out, error = process.communicate(timeout=120)
        assert "Traceback" not in error
        return process.returncode, out + error

    def processes(self) -> list[str]:
        """The programs that hold a file of the data folder open, as every server does its log."""
        return [process.name() for process in psutil.process_iter() if self.held_by(process)]

    def held_by(self, process: psutil.Process) -> bool:
        try:
            return any(file.path.startswith(f"{self.data}/") for file in process.open_files())
        except psutil.Error:
            return False


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "data")
    yield machine
    machine.run("down")


def test_up_status_logs_down(machine: Machine) -> None:
    assert machine.run("status", "mysql")[0] == 1
    names = ("mysql", "kafka", "streamer")
    code, said = machine.run("up", *names)
    assert code == 0, said
    assert all(f"{name}: ready on 127.0.0.1:" in said for name in names)

    code, said = machine.run("up", *names)
    assert code == 0
    assert said.count("is up already") == 3

    code, said = machine.run("status", *names)
    assert code == 0
    assert [line.split()[:2] for line in said.splitlines()] == [[name, "up"] for name in names]
    assert machine.run("status")[0] == 1  # Airflow was not asked for

    assert "ready for connections" in machine.run("logs", "mysql")[1]
    code, said = machine.run("down")
    assert code == 0
    assert {tuple(line.split()) for line in said.splitlines()} == {
        ("streamer", "stopped"),
        ("airflow", "was", "not", "up"),
        ("kafka", "stopped"),
        ("mysql", "stopped"),
    }
    assert machine.processes() == []


def test_the_other_databases_are_started_when_named_and_stopped_with_the_rest(machine: Machine) -> None:
    code, said = machine.run("up", "mariadb", "mysql80")
    assert code == 0, said
    assert "mysql80: 8.0.15" in said
    assert "mariadb: 11.4" in said
    code, said = machine.run("status", "mariadb", "mysql80")
    assert code == 0
    assert [line.split()[:2] for line in said.splitlines()] == [["mysql80", "up"], ["mariadb", "up"]]
    code, said = machine.run("down")
    assert "mariadb   stopped" in said
    assert "mysql80   stopped" in said
    assert "mariadb" not in machine.run("down")[1]
    assert machine.processes() == []


def test_a_taken_port_stops_what_the_same_command_started(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        machine.ports[1] = f"--kafka-port={port}"
        code, said = machine.run("up", "mysql", "kafka")
    assert code == 1
    assert f"port {port} of 127.0.0.1, meant for Kafka, is taken by process {os.getpid()}" in said
    assert "change --kafka-port" in said
    assert machine.processes() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "pause", [pytest.param(0.5, marks=pytest.mark.soak), 2.0, pytest.param(3.5, marks=pytest.mark.soak)]
)
def test_an_interrupted_start_leaves_no_process(machine: Machine, number: signal.Signals, pause: float) -> None:
    process = machine.popen("up", "mysql", "kafka")
    time.sleep(pause)
    finished = process.poll() is not None
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert "Traceback" not in error
    if not finished and process.returncode != 0:
        assert machine.processes() == []


@pytest.mark.soak
def test_an_interrupted_start_of_airflow_leaves_no_process(machine: Machine) -> None:
    process = machine.popen("up", "airflow")
    log = machine.data / "airflow" / "airflow.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and "scheduler" in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "airflow" in " ".join(machine.processes())
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert machine.processes() == []


def test_a_server_that_cannot_start_shows_its_log(machine: Machine) -> None:
    assert machine.run("up", "mysql")[0] == 0
    machine.run("down", "mysql")
    (machine.data / "mysql" / "data" / "ibdata1").write_bytes(b"not a table space")
    code, said = machine.run("up", "mysql")
    assert code == 1
    assert f"MySQL ended while starting (status 1). Read {machine.data}/mysql/mysql.log; its last lines" in said
    assert "ibdata1" in said


def test_a_folder_that_cannot_be_written(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    machine.data = tmp_path / "file" / "data"
    code, said = machine.run("up", "mysql")
    assert code == 1
    assert "cannot be written" in said
    assert "--data" in said


def test_a_server_that_there_is_not(machine: Machine) -> None:
    code, said = machine.run("up", "oracle")
    assert code == 1
    servers = "mysql, kafka, airflow, streamer, mysql80, mariadb"
    assert said == f"headrace stack: there is no server 'oracle'. The servers are: {servers}.\n"


def test_java_that_there_is_not(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(machine.data / "nowhere"))
    code, said = machine.run("up", "kafka")
    assert code == 1
    assert "which has no bin/java" in said
    assert "JAVA_HOME is" in said


def test_mysql_is_set_as_the_streamer_needs_it(mysql: MySQL) -> None:
    wanted = {
        "gtid_mode": "ON",
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_row_metadata": "FULL",
        "time_zone": "+00:00",
        "bind_address": "127.0.0.1",
    }
    with mysql.connect().cursor() as cursor:
        cursor.execute(f"SELECT {', '.join('@@GLOBAL.' + name for name in wanted)}")
        assert cursor.fetchone() == tuple(wanted.values())
        cursor.execute("SHOW GRANTS FOR headrace")
        assert cursor.fetchall() == (("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `headrace`@`%`",),)


def test_passwords_are_kept_private_and_can_be_given(
    mysql_server: type[MySQL], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = mysql_server()
    for name in ("root.password", "headrace.password", "init.sql"):
        assert (server.home / name).stat().st_mode & 0o077 == 0
    server.stop()
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", "given 'with' \\ marks")
    server.start()
    server.connect("headrace").close()
    monkeypatch.delenv("HEADRACE_MYSQL_PASSWORD")
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        server.connect("headrace")
    assert "given" not in server.log_path.read_text()
