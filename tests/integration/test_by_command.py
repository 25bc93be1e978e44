"""A lake that is made, proven, damaged and mended by the commands alone, without Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from contract import jobs
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.faults import kit
from tests.integration.spark_jobs import quick_java
from tests.integration.streaming import ROOT, Streamer, execute, insert

NAME = "commanded"
TABLE = f"{NAME}.t"


@pytest.fixture
def streamer(tmp_path: Path, mysql: MySQL, kafka: Kafka) -> Iterator[Streamer]:
    execute(mysql, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.t (id BIGINT PRIMARY KEY, v INT, name VARCHAR(40))")
    insert(mysql, NAME, 0, 100)
    made = Streamer(tmp_path, mysql, kafka, NAME)
    made.file.write_text(made.file.read_text() + "quality: {wait_seconds: 200}\n")
    yield made
    made.close()


def command(streamer: Streamer, name: str, *arguments: str, status: int = 0) -> tuple[dict[str, Any], str]:
    """The result and what was said on standard error; in a folder of its own, where nothing may be left."""
    folder = streamer.file.parent / "cwd"
    folder.mkdir(exist_ok=True)
    settings = {"TEST_PASSWORD": streamer.password, "HEADRACE_SPARK_JAVA": quick_java(), "HEADRACE_SPARK_JARS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "streamer.cli", name, str(streamer.file), *arguments, "--master", "local[2]"],
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT)}, cwd=folder, text=True, capture_output=True,
        timeout=400,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr[-4000:]
    assert [*folder.iterdir()] == []
    [result] = [found for line in done.stdout.splitlines() if (found := jobs.read(line))]
    return result, done.stderr


def rows(streamer: Streamer) -> int:
    path = streamer.file.parent / "lake" / NAME / NAME / "t"
    return int(polars.scan_delta(str(path)).select(polars.len()).collect().item())


@pytest.mark.timeout(1500)
def test_a_row_that_the_lake_has_otherwise_is_mended_by_its_key(streamer: Streamer, mysql: MySQL) -> None:
    streamer.started()
    made, _ = command(streamer, "snapshot", "--compact")
    assert (made["rows"], made["tables"], rows(streamer)) == (100, {TABLE: {"rows": 100}}, 100)
    kit.unlogged(mysql, f"UPDATE {TABLE} SET v = -1 WHERE id = 9")
    mended, _ = command(streamer, "repair", "--compact", "--table", TABLE, "--keys", "[9]")
    assert mended["tables"][TABLE]["read"] == 1
    lake = polars.scan_delta(str(streamer.file.parent / "lake" / NAME / NAME / "t"))
    assert lake.filter(polars.col("id") == 9).collect()["v"].to_list() == [-1]


@pytest.mark.timeout(1500)
@pytest.mark.soak
def test_a_lake_is_made_proven_and_mended_by_commands(streamer: Streamer, mysql: MySQL) -> None:
    streamer.started()
    made, _ = command(streamer, "snapshot", "--compact")
    assert (made["rows"], made["tables"], rows(streamer)) == (100, {TABLE: {"rows": 100}}, 100)

    insert(mysql, NAME, 100, 20)
    kit.unlogged(mysql, f"DELETE FROM {TABLE} WHERE id = 7", f"UPDATE {TABLE} SET v = -1 WHERE id = 9")
    found, said = command(streamer, "verify", "--compact", "--table", TABLE, status=1)
    assert rows(streamer) == 120, "what it waited for it did itself"
    assert found["tables"][TABLE]["differences"] == {"extra": 1, "changed": 1}
    told = f"1 of 1 table not as the source: {TABLE}: rows 119 in the source"
    assert f"error (spark_job): verify of {NAME}: {told}" in said

    mended, _ = command(streamer, "repair", "--compact")
    assert mended["tables"][TABLE]["read"] == 1  # of the two, 7 is not there any more
    assert rows(streamer) == 119
    assert command(streamer, "verify", "--compact", "--whole")[0]["tables"][TABLE]["equal"]


@pytest.mark.timeout(1500)
@pytest.mark.soak
def test_a_table_is_backfilled_tidied_and_rid_of_a_row_by_commands(streamer: Streamer, mysql: MySQL) -> None:
    streamer.started()
    command(streamer, "snapshot", "--compact")
    again, _ = command(streamer, "backfill", TABLE, "--compact", "--source", "mysql", "--keys", "[9]")
    assert again["tables"] == {TABLE: {"part": "1 key"}}

    execute(mysql, f"DELETE FROM {TABLE} WHERE id = 7")
    streamer.wait_until_released()
    command(streamer, "compact")
    assert rows(streamer) == 99
    gone, said = command(streamer, "erase", TABLE, "7", "--now")
    assert (gone["tables"][TABLE]["keys"], rows(streamer)) == (1, 99)
    assert "password" not in said.lower()
    changes = polars.scan_delta(str(streamer.file.parent / "lake" / NAME / "_changes"))
    left = changes.select("key").collect()["key"].to_list()
    assert all('"id":7}' not in str(key) for key in left), "of the row neither its snapshot nor its end is left"

    tidied, _ = command(streamer, "maintain", "--step", "optimize", "--step", "vacuum", "--table", TABLE)
    assert list(tidied["tables"]) == [TABLE]
    assert rows(streamer) == 99
