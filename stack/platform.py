"""All servers of one machine's platform together, wired to each other by the HEADRACE_* variables."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from stack import paths
from stack.airflow import Airflow
from stack.errors import StackError
from stack.kafka import Kafka
from stack.mariadb import MariaDB
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.process import Server, cancelled
from stack.streamer import StreamerService

log = logging.getLogger("stack")
NAMES = ("mysql", "kafka", "airflow", "streamer")
OTHERS = ("mysql80", "mariadb")  # started when named


class Ports(NamedTuple):
    """Where each server listens on the loopback. Kafka's controller takes the port after `kafka`."""

    mysql: int = 23306
    kafka: int = 29092
    airflow: int = 28080
    streamer: int = 28181
    mysql80: int = 23307
    mariadb: int = 23308


class Platform:
    """MySQL, Kafka, Airflow and one pipeline's streamer, with data and logs under one folder; besides, databases of
    other kinds that a pipeline may read."""

    def __init__(
        self,
        data: Path | None = None,
        ports: Ports | None = None,
        pipeline: Path | None = None,
        lake: Path | None = None,
    ) -> None:
        self.data = (data or paths.data()).expanduser().absolute()
        self.ports = ports or Ports()
        self.pipeline = pipeline or paths.CHECKOUT / "pipelines" / "flights.yaml"
        self.lake = (lake or self.data / "lake").absolute()
        self.mysql = MySQL(self.data / "mysql", self.ports.mysql)
        self.mysql80 = MySQL80(self.data / "mysql80", self.ports.mysql80)
        self.mariadb = MariaDB(self.data / "mariadb", self.ports.mariadb)
        self.kafka = Kafka(self.data / "kafka", self.ports.kafka)
        self.airflow = Airflow(self.data / "airflow", self.ports.airflow)
        self.streamer = StreamerService(self.data / "streamer", self.pipeline, self.ports.streamer)

    def settings(self) -> Mapping[str, str]:
        """What pipeline files ask of the environment. Makes the database password where there is none yet."""
        return {
            "HEADRACE_MYSQL_PORT": str(self.ports.mysql),
            "HEADRACE_MYSQL_PASSWORD": self.mysql.password,
            "HEADRACE_KAFKA_PORT": str(self.ports.kafka),
            "HEADRACE_AIRFLOW_PORT": str(self.ports.airflow),
            "HEADRACE_STREAMER_PORT": str(self.ports.streamer),
            "HEADRACE_LAKE": str(self.lake),
        }

    def servers(self, names: Iterable[str] = ()) -> list[Server]:
        """The servers asked for, in the order of starting; without names the usual ones, and what runs of the others.
        Raises StackError for a name that is none."""
        every: dict[str, Server] = {
            "mysql": self.mysql, "mysql80": self.mysql80, "mariadb": self.mariadb, "kafka": self.kafka,
            "airflow": self.airflow, "streamer": self.streamer,
        }  # fmt: skip
        wanted = set(names) or {*NAMES, *(name for name in OTHERS if every[name].running())}
        for name in sorted(wanted - every.keys()):
            raise StackError(f"there is no server {name!r}", f"The servers are: {', '.join((*NAMES, *OTHERS))}.")
        return [server for name, server in every.items() if name in wanted]

    def up(self, names: Iterable[str] = ()) -> list[Server]:
        """Starts servers, side by side, and waits until they answer; gives those that were not up before.

        When one fails, or on KeyboardInterrupt, those started by this call are stopped again. Raises StackError.
        """
        servers = self.servers(names)
        paths.writable_folder(self.data, "--data")
        self.airflow.settings = self.streamer.settings = dict(self.settings())
        started: list[Server] = []
        try:
            # The streamer needs the other two at its start.
            start_all([server for server in servers if server is not self.streamer], started)
            start_all([server for server in servers if server is self.streamer], started)
        except BaseException:
            stop_all(started)
            raise
        return started

    def down(self, names: Iterable[str] = ()) -> list[Server]:
        """Stops servers that run, those that write first; gives them. Data and logs stay."""
        return [server for server in reversed(self.servers(names)) if server.stop()]


def start_all(servers: list[Server], started: list[Server]) -> None:
    """Starts servers at the same time and notes each that came up; the first failure ends the others' waiting."""
    cancelled.clear()
    guard = threading.Lock()

    def start(server: Server) -> None:
        if server.start():
            with guard:
                started.append(server)

    with ThreadPoolExecutor(max_workers=max(1, len(servers))) as pool:
        running: list[Future[None]] = [pool.submit(start, server) for server in servers]
        try:
            done, _ = wait(running, return_when=FIRST_EXCEPTION)
            failed = [future for future in done if future.exception()]
        finally:
            if not all(future.done() and not future.exception() for future in running):
                cancelled.set()
    cancelled.clear()
    for future in failed:
        future.result()


def stop_all(servers: list[Server]) -> None:
    for server in reversed(servers):
        log.info("%s: stopping again", server.name)
        server.stop()
