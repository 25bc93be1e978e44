"""A password that MySQL refuses, and servers that do not answer, seen by the Spark jobs: one message each, without the
password, and nothing lost once it is mended."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from tests.integration.spark_jobs import submit
from tests.integration.streaming import Streamer, execute

WRONG = "not-this-one-1c8e"


def test_a_wrong_password_and_servers_away(mysql: MySQL, kafka: Kafka, tmp_path: Path) -> None:
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
    away(streamer, "snapshot", str(mysql.port), "MySQL at 127.0.0.1:")
    away(streamer, "compact", kafka.address, "Kafka at 127.0.0.1:")
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


def away(streamer: Streamer, job: str, address: str, told: str) -> None:
    """Runs the job with the pipeline file, in which the server's address is one where nothing listens."""
    elsewhere = address.replace(address.rpartition(":")[2], str(free_port()))
    file = streamer.file.with_name(f"{job}-{streamer.file.name}")
    file.write_text(streamer.file.read_text().replace(address, elsewhere))
    report = submit(job, file, {"TEST_PASSWORD": streamer.mysql.password})
    assert not report["ok"]
    assert told in report["error"]
    assert "\n" not in report["error"]
