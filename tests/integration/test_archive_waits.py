"""What an archive waits for, and goes on behind by itself: room on its disk, and its server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.mysql import MySQL
from tests.integration.archiving import Archive, in_folder, on_server
from tests.integration.conftest import MySQLServer
from tests.integration.decoding import run
from tests.small_disk import mounted


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB, where the archive is."""
    folder = tmp_path / "archive"
    with mounted(folder, "size=1m"):
        yield folder


@pytest.fixture
def live(mysql_server: MySQLServer) -> MySQL:
    server = mysql_server()
    run(server, "CREATE DATABASE filled", "CREATE TABLE filled.t (id int auto_increment primary key, v longtext)")
    return server


def test_a_full_disk(live: MySQL, tmp_path: Path, disk: Path) -> None:
    """Nothing is lost or written twice."""
    archive = Archive(tmp_path, live, "filled")
    try:
        archive.start()
        archive.wait_until_level()
        for _ in range(6):
            run(live, "INSERT INTO filled.t (v) VALUES (REPEAT('x', 300000))")
        run(live, "FLUSH BINARY LOGS")
        archive.wait_for(lambda: "disk_full" in archive.log_path.read_text())
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        archive.wait_until_level()
        assert archive.stop() == 0
        assert in_folder(archive.folder) == on_server(live)
        assert archive.said()["last_error"]["kind"] == "disk_full"
    finally:
        archive.close()


def test_a_server_that_crashed_or_was_stopped(live: MySQL, tmp_path: Path) -> None:
    archive = Archive(tmp_path, live, "filled")
    try:
        archive.start()
        archive.wait_until_level()
        live.kill()
        archive.wait_for(lambda: archive.said().get("state") == "waiting")
        live.start()
        run(live, "INSERT INTO filled.t (v) VALUES ('behind a crash')")
        archive.wait_until_level()
        live.stop()
        live.start()
        run(live, "INSERT INTO filled.t (v) VALUES ('behind a stop')")
        archive.wait_until_level()
        assert archive.stop() == 0
        assert in_folder(archive.folder) == on_server(live)
    finally:
        archive.close()
