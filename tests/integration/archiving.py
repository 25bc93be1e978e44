"""`headrace archive` as a process of its own over a pipeline file, and the files of its server beside the archive's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from contract import pipeline as pipeline_file
from contract.names import escape
from stack.database import Database
from streamer.archive.archiver import Archiver
from streamer.errors import HeadraceError
from streamer.source import facts
from tests.integration.decoding import source
from tests.integration.streaming import ROOT

PIPELINE = """\
format: 1
name: {name}
source:
  flavor: {flavor}
  host: 127.0.0.1
  port: {port}
  user: headrace
  password: ${{TEST_PASSWORD}}
  server_id: 4760
  heartbeat_seconds: 1
tables: {{include: ["*.*"]}}
kafka: {{bootstrap: "localhost:9092"}}
lake: {{path: unused}}
archive: {archive}
"""
IN_USE = 21  # the byte of an open file's flags: the server clears its lowest bit when it closes the file


class Archive:
    """`secrets`: variables that the file names. `more`: of the section archive. `folder`: where the server's files come
    to lie on this machine."""

    def __init__(
        self, folder: Path, server: Database, name: str, secrets: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        self.server = server
        self.secrets = {"TEST_PASSWORD": server.password, **(secrets or {})}
        self.root = Path(more.get("spool") or folder / "archive")
        self.folder = self.root / escape(facts(source(server)).server_uuid)
        self.file = folder / f"{name}.yaml"
        self.log_path = folder / f"{name}.log"
        section = json.dumps({"target": str(self.root), **more}, default=str)
        text = PIPELINE.format(name=name, flavor=server.flavor, port=server.port, archive=section)
        self.file.write_text(text)
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "streamer.cli", "archive", str(self.file), *arguments]
        return subprocess.run(command, env=self._environment(), cwd=ROOT, capture_output=True, text=True, timeout=120)

    def once(self) -> None:
        """To the end of the server's last file, in this process."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.secrets.items():
                patch.setenv(name, value)
            Archiver(pipeline_file.load(self.file), threading.Event(), until_now=True).run()

    def refused(self) -> HeadraceError:
        with pytest.raises(HeadraceError) as caught:
            self.once()
        return caught.value

    def start(self) -> None:
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamer.cli", "archive", "--log", "json", str(self.file)],
                env=self._environment(), cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def wait_for(self, holds: Callable[[], Any], seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, f"not within {seconds} s\n{self.log_path.read_text()}"
            assert self.process is None or self.process.poll() is None, f"it ended\n{self.log_path.read_text()}"
            time.sleep(0.05)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.command("--status", "--json").stdout)
        return found

    def said(self) -> dict[str, Any]:
        """The status file itself, which costs no process."""
        path = self.root / "archive-status.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def has(self, name: str, size: int) -> bool:
        """Whether so much of the file is there, open or complete."""
        found = [self.folder / name, self.folder / (name + ".part")]
        return any(path.exists() and path.stat().st_size >= size for path in found)

    def wait_until_level(self) -> None:
        """Until everything that the server has written by now is in the archive."""
        found = facts(source(self.server))
        self.wait_for(lambda: self.has(found.file, found.pos))

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.secrets}


def on_server(server: Database, crashed: bool = False) -> dict[str, str]:
    """Each binlog file's sha256, with the name that the archive gives it. The last one is open: what it is when the
    server closes it. `crashed`: MariaDB leaves the mark of an open file on one that a crash ended."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        names = [row[0] for row in cursor.fetchall()]
    found = {}
    for name in names:
        data = bytearray((server.data / name).read_bytes())
        if name == names[-1] or crashed:
            data[IN_USE] &= 0xFE
        found[name + (".part" if name == names[-1] else "")] = sha256(data).hexdigest()
    return found


def in_folder(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
