"""A real Kafka broker in KRaft mode: broker and controller in one process, nothing auto-created."""

from __future__ import annotations

import base64
import logging
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from contract.java import java_missing, java_program
from stack import maven, versions
from stack.errors import StackError
from stack.ports import HOST
from stack.process import Server

log = logging.getLogger("stack")
JAVA = 17
SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)  # what the optimizing compiler gives comes too late: starts in half the CPU


class Kafka(Server):
    """One broker with its data under `home`. `options` are further broker settings, and win; `java_options`: of its
    JVM."""

    name = "kafka"
    title = "Kafka"
    port_option = "--kafka-port"

    def __init__(
        self,
        home: Path | str,
        port: int,
        controller_port: int | None = None,
        options: Mapping[str, str] | None = None,
        heap: str = "512m",
        java_options: Sequence[str] = (),
    ) -> None:
        super().__init__(home, port)
        self.controller_port = port + 1 if controller_port is None else controller_port
        self.options = dict(options or {})
        self.heap = heap
        self.java_options = tuple(java_options)

    @property
    def data(self) -> Path:
        return self.home / "data"

    def ports(self) -> Mapping[str, int]:
        return {self.port_option: self.port, f"{self.port_option} (the controller has the next)": self.controller_port}

    def command(self) -> Sequence[str]:
        memory = (f"-Xmx{self.heap}", f"-Xms{self.heap}")
        return [*self._java(*self.java_options, *memory), "kafka.Kafka", str(self._properties)]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "TZ": "UTC"}

    def prepare(self) -> None:
        log.info("kafka: %s", versions.KAFKA)
        self._java()
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        if not (self.data / "meta.properties").exists():
            self._format()

    def healthy(self) -> bool:
        """Whether the broker answers a metadata request."""
        quiet = logging.getLogger("stack.kafka.client")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0}, logger=quiet)
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def properties(self) -> dict[str, str]:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "message.max.bytes": "10485760",
        }
        return {**settings, **self.options}

    @property
    def _properties(self) -> Path:
        return self.home / "server.properties"

    def _java(self, *options: str) -> list[str]:
        return [java(), "-Duser.timezone=UTC", "-XX:+UseG1GC", *options, "-cp", f"{maven.kafka_jars()}/*"]

    def _format(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        tool = [*self._java(*SHORT_LIVED), "kafka.tools.StorageTool"]
        with self.log_path.open("ab") as out:
            done = subprocess.run(
                [*tool, "format", "-t", cluster, "-c", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        if done.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            raise StackError(f"Kafka could not make its data folder {self.data}", log=self.log_path)


def java() -> str:
    """The java program. Raises StackError where there is none."""
    if (found := java_program()) is None:
        raise StackError(java_missing(), f"Install a JDK {JAVA}, or let JAVA_HOME name the one you have.")
    return found
