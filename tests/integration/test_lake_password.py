"""A password that MySQL refuses, seen by the Spark jobs: one message without it, and nothing lost once it is mended."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.spark_jobs import submit
from tests.integration.streaming import Streamer, execute

WRONG = "not-this-one-1c8e"


def test_a_wrong_password(mysql: MySQL, kafka: Kafka, tmp_path: Path) -> None:
    streamer = Streamer(tmp_path, mysql, kafka, "denies")
    execute(mysql, "CREATE DATABASE denies", "CREATE TABLE denies.t (id int PRIMARY KEY, name varchar(9))")
    execute(mysql, "INSERT INTO denies.t VALUES (1, 'one'), (2, 'two')")
    try:
        streamer.started()
        execute(mysql, "DELETE FROM denies.t WHERE id = 2", "INSERT INTO denies.t VALUES (3, 'three')")
        streamer.wait_until_released()
    finally:
        streamer.close()

    refused(streamer, "snapshot")
    for job in ("snapshot", "compact"):
        done = submit(job, streamer.file, {"TEST_PASSWORD": mysql.password})
        assert done["ok"], done["error"]
    refused(streamer, "verify")
    proof = submit("verify", streamer.file, {"TEST_PASSWORD": mysql.password})
    assert proof["ok"], proof["error"]
    assert proof["tables"]["denies.t"]["equal"]
    found = pl.scan_delta(str(tmp_path / "lake" / "denies" / "denies" / "t")).select("id", "name").collect()
    assert sorted(found.rows()) == [(1, "one"), (3, "three")]


def refused(streamer: Streamer, job: str) -> None:
    report = submit(job, streamer.file, {"TEST_PASSWORD": WRONG})
    assert not report["ok"]
    told = report["error"]
    assert f"MySQL at 127.0.0.1:{streamer.mysql.port} refused the user headrace" in told
    assert "mend source.user or its password" in told
    assert "\n" not in told
    assert WRONG not in str(report)
