"""A lake on a disk that is read-only, then full, then mended: each time a message, and in the end no row lost."""

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
from tests.integration.streaming import Streamer, execute

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
        execute(mysql, f"CREATE DATABASE {DATABASE}")
        streamer.started()
        fill(mysql, DATABASE)
        execute(mysql, f"DELETE FROM {DATABASE}.t WHERE id % 3 = 0")
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
    assert_equal(mysql, disk, DATABASE, ROWS - ROWS // 3)


def test_a_disk_that_fills_in_the_middle_of_a_snapshot(mysql: MySQL, kafka: Kafka, tmp_path: Path, disk: Path) -> None:
    database = "diskful"
    environment = {"TEST_PASSWORD": mysql.password}
    streamer = Streamer(tmp_path, mysql, kafka, database)
    streamer.file.write_text(streamer.file.read_text() + "snapshot: {chunk_rows: 2000}\n")
    execute(mysql, f"CREATE DATABASE {database}")
    fill(mysql, database)  # before the streamer's time: only the snapshot has these rows
    try:
        streamer.started()
        execute(mysql, f"DELETE FROM {database}.t WHERE id % 1000 = 0")
        streamer.wait_until_released()
    finally:
        streamer.close()

    subprocess.run(["mount", "-o", "remount,rw,size=4m", str(disk)], check=True)
    full = submit("snapshot", streamer.file, environment)
    assert not full["ok"]
    assert full["error"].startswith("the disk is full: free some space under "), full["error"]
    assert str(disk) in full["error"]
    assert "\n" not in full["error"]
    # What was staged is gone again, so compaction has its space, and it finds nothing to apply.
    compacted = submit("compact", streamer.file, environment)
    assert compacted["ok"], compacted["error"]
    assert [table["snapshot"] for table in compacted["tables"].values()] == [False]
    assert [table["rows"] for table in compacted["tables"].values()] == [0]

    subprocess.run(["mount", "-o", "remount,rw,size=300m", str(disk)], check=True)
    for job in ("snapshot", "compact"):
        report = submit(job, streamer.file, environment)
        assert report["ok"], report["error"]
    assert_equal(mysql, disk, database, ROWS - ROWS // 1000)


def fill(mysql: MySQL, database: str) -> None:
    noise = "concat(sha2(n, 512), sha2(n + 0.5, 256))"  # does not compress, so the disk fills
    numbers = f"WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
    execute(
        mysql,
        f"CREATE TABLE {database}.t (id int PRIMARY KEY, noise varchar(200))",
        f"SET SESSION cte_max_recursion_depth = {ROWS}",
        f"INSERT INTO {database}.t {numbers} SELECT n, {noise} FROM s",
    )


def assert_equal(mysql: MySQL, disk: Path, database: str, rows: int) -> None:
    found = pl.scan_delta(str(disk / database / database / "t")).select("id", "noise").collect()
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, noise FROM {database}.t")
        expected = sorted(cursor.fetchall())
    assert len(expected) == rows
    assert sorted(found.rows()) == expected
