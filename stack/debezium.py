"""A real Debezium: a Kafka Connect worker of its own, standalone, with any number of connectors.

It is a peer of Headrace's: the tests compare their records field by field, the bench their speed. Its connectors
are set to give values as exactly as they can.
"""

from __future__ import annotations

import json
import logging
import os
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

from stack import maven, versions
from stack.database import Database, write_private
from stack.errors import StackError
from stack.kafka import Kafka, java
from stack.ports import HOST
from stack.process import Server

log = logging.getLogger("stack")
Settings = Mapping[str, str]
# Values as exact as it has them; where it is not exact by default, its documentation names the setting.
EXACT = {
    "decimal.handling.mode": "string",
    "time.precision.mode": "isostring",
    "bigint.unsigned.handling.mode": "precise",
    "binary.handling.mode": "base64",
}
# What its documentation and the producer's offer for throughput.
TUNED = {
    "max.batch.size": "20480",
    "max.queue.size": "81920",
    "poll.interval.ms": "100",
    "producer.override.linger.ms": "50",
    "producer.override.batch.size": "1000000",
    "producer.override.compression.type": "lz4",
}
# Each flavor's connector, and what it calls a connection without TLS.
OF_FLAVOR = {
    "mysql": ("io.debezium.connector.mysql.MySqlConnector", {"database.ssl.mode": "disabled"}),
    "mariadb": ("io.debezium.connector.mariadb.MariaDbConnector", {"database.ssl.mode": "disable"}),
}
READS = "Connected to binlog at"  # of its log: whatever is committed from here on is streamed


class Debezium(Server):
    """One worker; `connectors`: their settings by name, see `connector`. `options`: of the JVM. `flavor`: of all its
    connectors, whose versions do not go onto one class path."""

    name = "debezium"
    title = "Debezium"
    port_option = "--debezium-port"

    def __init__(
        self, home: Path | str, port: int, kafka: Kafka, connectors: Mapping[str, Settings],
        options: Sequence[str] = ("-Xmx1g",), flavor: str = "mysql",
    ) -> None:  # fmt: skip
        super().__init__(home, port)
        self._flavor = flavor
        self._kafka = kafka
        self._connectors = connectors
        self._options = options
        self._logged = 0  # bytes of the log that an earlier start wrote

    def command(self) -> Sequence[str]:
        return [
            java(), "-Duser.timezone=UTC", *self._options, "-cp", f"{jars(self._flavor)}/*",
            "org.apache.kafka.connect.cli.ConnectStandalone", str(self._worker),
            *(str(self._file(name)) for name in self._connectors),
        ]  # fmt: skip

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "TZ": "UTC"}

    def prepare(self) -> None:
        log.info("debezium: %s", versions.DEBEZIUM[self._flavor])
        java()
        self._worker.write_text(lines(self._worker_settings()))
        for name, settings in self._connectors.items():
            self._file(name).unlink(missing_ok=True)
            write_private(self._file(name), lines({"name": name, **settings}))  # it holds a password
        self._logged = self.log_path.stat().st_size if self.log_path.exists() else 0

    def healthy(self) -> bool:
        """Whether every connector reads its server's binlog. Raises StackError where one has failed."""
        try:
            states = [self.ask("GET", f"/connectors/{name}/status") for name in self._connectors]
        except (OSError, HTTPException, ValueError):
            return False
        tasks = [task for state in states for task in state["tasks"]]
        for task in tasks:
            if task["state"] == "FAILED":
                raise StackError(f"Debezium failed: {cause(task['trace'])}", log=self.log_path)
        with self.log_path.open("rb") as written:
            written.seek(self._logged)
            return len(tasks) == len(states) <= written.read().count(READS.encode())

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One call of Kafka Connect's REST API; its answer, None where that is empty. Raises OSError, ValueError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.address}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    @property
    def _worker(self) -> Path:
        return self.home / "worker.properties"

    def _file(self, name: str) -> Path:
        return self.home / f"{name}.properties"

    def _worker_settings(self) -> Settings:
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        return {
            "bootstrap.servers": self._kafka.address,
            "listeners": f"http://{HOST}:{self.port}",
            "plugin.discovery": "only_scan",
            "key.converter": json_converter,
            "key.converter.schemas.enable": "false",
            "value.converter": json_converter,
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": str(self.home / "offsets"),
            "offset.flush.interval.ms": "10000",
            "connector.client.config.override.policy": "All",
        }


def connector(database: Database, kafka: Kafka, name: str, include: str, more: Settings) -> dict[str, str]:
    """A connector's settings: from the present position of a MySQL or MariaDB on, the tables that the regular
    expression `include` matches, to topics `<name>.<db>.<table>`."""
    kind, encryption = OF_FLAVOR[database.flavor]
    return {
        "connector.class": kind,
        "tasks.max": "1",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": "root",
        "database.password": database.root_password,
        **encryption,
        "driver.allowPublicKeyRetrieval": "true",
        "database.server.id": str(5_000_000 + database.port),
        "topic.prefix": name,
        "table.include.list": include,
        "snapshot.mode": "no_data",
        "snapshot.locking.mode": "none",
        "include.schema.changes": "false",
        "schema.history.internal.kafka.bootstrap.servers": kafka.address,
        "schema.history.internal.kafka.topic": f"{name}.history",
        "schema.history.internal.store.only.captured.tables.ddl": "true",  # not what others have on the server
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "tombstones.on.delete": "false",
        **EXACT,
        **more,
    }


def cause(trace: str) -> str:
    """Of a failed task, the innermost that Java tells: what is around it says only that the task failed."""
    lines = trace.splitlines()
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = [cause for cause in causes if ": " in cause]  # without it: a class of Java's, no more
    return told[-1] if told else lines[0]


def jars(flavor: str) -> Path:
    """The folder of a worker's jars, with that flavor's connector."""
    return maven.jars(f"debezium-{flavor}-{versions.DEBEZIUM[flavor]}", versions.DEBEZIUM_JARS[flavor])


def lines(settings: Settings) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())
