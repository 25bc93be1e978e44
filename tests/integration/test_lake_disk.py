"""A lake on a disk that is read-only, then full, then mended: each time a message, and in the end no change lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.spark_jobs import submit
from tests.integration.streaming import Streamer

ROWS = 60_000
DATABASE = "disk"


def mount(folder: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small disk needs the right to mount one: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB, read-only at first, where the pipeline's lake is."""
    folder = tmp_path / "lake"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mount(folder, "ro,size=4m")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_read_only_and_a_full_disk(mysql: MySQL, kafka: Kafka, tmp_path: Path, disk: Path) -> None:
    streamer = Streamer(tmp_path, mysql, kafka, DATABASE)
    environment = {"TEST_PASSWORD": mysql.password}
    try:
        with mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
            streamer.started()
            cursor.execute(f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, noise varchar(200))")
            noise = "concat(sha2(n, 512), sha2(n + 0.5, 256))"  # does not compress, so the disk fills
            numbers = f"WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
            cursor.execute(f"SET SESSION cte_max_recursion_depth = {ROWS}")
            cursor.execute(f"INSERT INTO {DATABASE}.t {numbers} SELECT n, {noise} FROM s")
            cursor.execute(f"DELETE FROM {DATABASE}.t WHERE id % 3 = 0")
        streamer.wait_until_released()
    finally:
        streamer.close()

    refused = submit("compact", streamer.file, environment)
    assert not refused["ok"]
    assert str(disk) in refused["error"]
    assert "writ" in refused["error"], refused["error"]

    subprocess.run(["mount", "-o", "remount,rw,size=4m", str(disk)], check=True)
    full = submit("compact", streamer.file, environment)
    assert not full["ok"]
    assert "disk" in full["error"], full["error"]
    assert "full" in full["error"], full["error"]
    assert "Traceback" not in full["error"]

    subprocess.run(["mount", "-o", "remount,rw,size=300m", str(disk)], check=True)
    assert submit("compact", streamer.file, environment)["ok"]
    found = pl.scan_delta(str(disk / DATABASE / DATABASE / "t")).select("id", "noise").collect()
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, noise FROM {DATABASE}.t")
        expected = sorted(cursor.fetchall())
    assert len(expected) == ROWS - ROWS // 3
    assert sorted(found.rows()) == expected
