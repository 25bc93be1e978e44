"""`headrace compact --loop`: the lake follows by itself, others get their turn at it, and a signal ends it well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract import jobs, status
from contract.pipeline import load
from spark.compaction import catching_up
from spark.compaction.compaction import compact
from spark.compaction.looping import loop
from stack.kafka import Kafka
from stack.maven import spark_jars_folder
from stack.mysql import MySQL
from tests.integration.spark_jobs import quick_java
from tests.integration.streaming import ROOT, Make, Streamer, execute, insert

NAME = "looped"


class Loop:
    """The command, in a process of its own; `lines` are what it has said."""

    def __init__(self, file: Path, password: str) -> None:
        settings = {
            "TEST_PASSWORD": password, "PYTHONPATH": str(ROOT), "HEADRACE_SPARK_JARS": str(spark_jars_folder()),
            "HEADRACE_SPARK_JAVA": quick_java(),
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamer.cli", "compact", str(file), "--loop", "--master", "local[2]"],
            env={**os.environ, **settings}, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def told(self) -> list[dict[str, Any]]:
        return [found for line in list(self.lines) if (found := jobs.read(line))]

    def end(self, seconds: float = 60) -> int:
        code = self.process.wait(seconds)
        self.reader.join(10)
        return code


@pytest.fixture
def streamer(tmp_path: Path, mysql: MySQL, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    execute(mysql, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.t (id BIGINT PRIMARY KEY, v INT, name VARCHAR(40))")
    made = Streamer(tmp_path, mysql, kafka, NAME)
    made.file.write_text(made.file.read_text() + "compaction: {every_seconds: 1}\n")
    yield made
    made.close()


def rows(streamer: Streamer) -> int:
    """That the table has by the lake's status."""
    standing = status.read(load(streamer.file))
    table = standing.tables.get(f"{streamer.name}.t") if standing else None
    return table.rows if table else 0


def wait_for_rows(streamer: Streamer, loop: Loop, count: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while rows(streamer) != count:
        assert loop.process.poll() is None, "".join(loop.lines)
        assert time.monotonic() < until, "".join(loop.lines)
        time.sleep(0.1)


@pytest.fixture
def signals() -> Iterator[None]:
    """The loop takes them for its own, and this process goes on behind it."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_rounds_in_one_session_until_a_signal(
    signals: None, spark: SparkSession, streamer: Streamer, mysql: MySQL, capsys: pytest.CaptureFixture[str]
) -> None:
    def write() -> None:
        try:
            for first in (0, 100):
                insert(mysql, NAME, first, 100)
                until = time.monotonic() + 300
                while rows(streamer) != first + 100 and time.monotonic() < until:
                    time.sleep(0.1)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    streamer.started()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(write)
        facts = loop(spark, load(streamer.file))
    assert rows(streamer) == facts["changes"] == 200
    assert facts["rounds"] >= 2
    assert "ends behind this round" in capsys.readouterr().out


def test_a_run_takes_in_what_came_meanwhile_in_the_same_session(
    spark: SparkSession, make: Make, mysql: MySQL, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    streamer = make("meanwhile").started()

    def busy(*given: Any) -> dict[str, Any]:
        facts = compact(*given)
        if rows(streamer) <= 10:  # behind each run but the last one written to
            insert(mysql, streamer.name, rows(streamer), 10)
            streamer.wait_until_released()
        return facts

    monkeypatch.setattr(catching_up, "compact", busy)
    insert(mysql, streamer.name, 0, 10)
    streamer.wait_until_released()
    facts = catching_up.catch_up(spark, load(streamer.file))
    assert facts["changes"] == facts["tables"]["meanwhile.t"]["changes"] == facts["tables"]["meanwhile.t"]["rows"] == 20
    assert "10 change(s) came meanwhile" in capsys.readouterr().out
    standing = status.read(load(streamer.file))
    assert standing is not None
    assert standing.run == 2
    assert standing.seconds < facts["seconds"], "both are told as one"
    # Nothing came behind that one: it goes by itself.
    assert catching_up.catch_up(spark, load(streamer.file))["changes"] == 0
    assert "meanwhile" not in capsys.readouterr().out


@pytest.mark.soak
def test_the_lake_follows_until_a_signal(spark: SparkSession, streamer: Streamer, mysql: MySQL) -> None:
    streamer.started()
    insert(mysql, NAME, 0, 100)
    loop = Loop(streamer.file, mysql.password)
    try:
        wait_for_rows(streamer, loop, 100, 180)
        second = Loop(streamer.file, mysql.password)
        insert(mysql, NAME, 100, 100)
        wait_for_rows(streamer, loop, 200, 120)
        insert(mysql, NAME, 200, 100)
        streamer.wait_until_released()
        # A scheduled run gets its turn between two rounds, and one of the two merges each change.
        told = compact(spark, load(streamer.file))
        assert told["tables"][f"{NAME}.t"]["rows"] == 300
        path = streamer.file.parent / "lake" / NAME / NAME / "t"
        assert sorted(pl.scan_delta(str(path)).select("id").collect()["id"]) == list(range(300))

        assert second.end() == 1
        begins = "error (spark_job): compact-loop of looped: "
        refusal = "is being changed by the job compact --loop (process "
        assert any(line.startswith(begins) and refusal in line for line in second.lines)
        loop.process.send_signal(signal.SIGTERM)
        assert loop.end() == 0, "".join(loop.lines)
    finally:
        loop.process.kill()
    *found, last = loop.told()
    assert all(report["ok"] for report in found)
    assert 200 <= last["changes"] == sum(report["changes"] for report in found) <= 300
    assert last["rounds"] >= 2
    assert found[0]["freshness_seconds"] > 0
    assert any("the first round begins" in line for line in loop.lines)
    assert any("ends behind this round" in line for line in loop.lines)
