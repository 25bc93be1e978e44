"""Maxwell's daemon, a peer of the bench: reads MySQL 8.0, writes to one topic of a Kafka broker."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from stack import maven, versions
from stack.database import Database, quoted, write_private
from stack.errors import StackError
from stack.kafka import Kafka, java
from stack.ports import HOST, free_port
from stack.process import Server

log = logging.getLogger("stack")
USER = "maxwell"
SCRIPT_OBJECT = "jdk.nashorn.api.scripting.ScriptObjectMirror"
READS = "Binlog connected"  # of its log
TUNED = {"linger.ms": "50", "batch.size": "1000000", "compression.type": "lz4", "acks": "all"}


class Maxwell(Server):
    """`begin`: FILE:POSITION to begin at; None: the present end at the first start, else where it was."""

    name = "maxwell"
    title = "Maxwell"
    port_option = "--maxwell-port"

    def __init__(self, home: Path | str, database: Database, kafka: Kafka, topic: str, include: str) -> None:
        super().__init__(home, free_port())
        self._database, self._kafka, self._topic, self._include = database, kafka, topic, include
        self.begin: str | None = None
        self._logged = 0

    def command(self) -> Sequence[str]:
        place = [f"--init_position={self.begin}:0"] if self.begin else []
        path = f"{self._scripting}{os.pathsep}{jars()}/*"
        program = [java(), "-Duser.timezone=UTC", "-Xmx1g", "-cp", path, "com.zendesk.maxwell.Maxwell"]
        return [*program, f"--config={self._config}", *place]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "TZ": "UTC"}

    def prepare(self) -> None:
        """A user that may make the database in which it keeps the tables' shapes."""
        log.info("maxwell: %s", versions.MAXWELL)
        who = f"'{USER}'@'%'"
        with self._database.connect() as connection, connection.cursor() as cursor:
            password = quoted(self._database.root_password)
            cursor.execute(f"CREATE USER IF NOT EXISTS {who} IDENTIFIED WITH mysql_native_password BY {password}")
            cursor.execute(f"GRANT ALL ON *.* TO {who}")
        self._make_scripting()
        self._config.unlink(missing_ok=True)
        write_private(self._config, "".join(f"{name}={value}\n" for name, value in self._settings().items()))
        self._logged = self.log_path.stat().st_size if self.log_path.exists() else 0

    @property
    def _scripting(self) -> Path:
        return self.home / "scripting"

    def _make_scripting(self) -> None:
        """It asks of each value whether it is a script's; the class for that left the JDK with version 15."""
        name = Path(SCRIPT_OBJECT.replace(".", "/"))
        source = self._scripting / name.with_suffix(".java")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"package {SCRIPT_OBJECT.rpartition('.')[0]}; public class {name.name} {{}}\n")
        with self.log_path.open("ab") as out:
            done = subprocess.run([f"{java()}c", "-d", self._scripting, source], stdout=out, stderr=out)
        if done.returncode:
            raise StackError("javac could not compile a class that Maxwell needs", log=self.log_path)

    @property
    def _config(self) -> Path:
        return self.home / "config.properties"

    def _settings(self) -> dict[str, str]:
        return {
            "host": HOST,
            "port": str(self._database.port),
            "user": USER,
            "password": self._database.root_password,
            "jdbc_options": "useSSL=false&allowPublicKeyRetrieval=true",
            "replica_server_id": str(7_000_000 + self._database.port),
            "client_id": self._topic,
            "filter": f"exclude: *.*, include: {self._include}",
            "producer": "kafka",
            "kafka_topic": self._topic,
            "kafka.bootstrap.servers": self._kafka.address,
            **{f"kafka.{name}": value for name, value in TUNED.items()},
        }

    def healthy(self) -> bool:
        with self.log_path.open("rb") as written:
            written.seek(self._logged)
            return READS.encode() in written.read()


def jars() -> Path:
    """The folder of its jars."""
    return maven.jars(f"maxwell-{versions.MAXWELL}", versions.MAXWELL_JARS)
