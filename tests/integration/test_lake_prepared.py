"""Snapshot, check and backfill beside XA transactions that are prepared, and a check behind their ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.jobs.backfill import backfill
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.database import Database
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

pytestmark = pytest.mark.usefixtures("without_expectations")
ENDS = ("COMMIT", "ROLLBACK")


def test_snapshot_and_check_beside_prepared_transactions(
    spark: SparkSession, mysql: Database, make: Callable[..., Streamer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    db = "prepared"
    streamer = make(db, mysql=mysql)
    streamer.file.write_text(streamer.file.read_text() + "quality: {wait_seconds: 60}\n")
    rows = ", ".join(f"({n}, {n})" for n in range(1, 51))
    run(
        mysql,
        "CREATE TABLE numbers (id int PRIMARY KEY, v int)", "CREATE TABLE texts (k varchar(9) PRIMARY KEY, v int)",
        f"INSERT INTO numbers VALUES {rows}", f"INSERT INTO texts VALUES {rows}", database=db,
    )  # fmt: skip
    streamer.started()
    pipeline = load(streamer.file)
    for n, end in enumerate(ENDS):
        run(
            mysql, f"XA START '{end}'", f"UPDATE numbers SET v = v + 100 WHERE id = {n + 1}",
            f"INSERT INTO numbers VALUES ({100 + n}, 1)", f"DELETE FROM texts WHERE k = '{n + 7}'",
            f"UPDATE texts SET v = -1 WHERE k = '{n + 20}'", f"XA END '{end}'", f"XA PREPARE '{end}'", database=db,
        )  # fmt: skip
    snapshot(spark, pipeline, [])
    run(mysql, "UPDATE numbers SET v = v + 1 WHERE id = 41", "UPDATE texts SET v = 0 WHERE k = '44'", database=db)
    proven = verify(spark, pipeline, [], compact="yes")["tables"]
    assert {facts["equal"] for facts in proven.values()} == {True}
    backfill(spark, pipeline, [f"{db}.numbers"], source="mysql")
    run(mysql, *(f"XA {end} '{end}'" for end in ENDS), "UPDATE numbers SET v = 0 WHERE id IN (1, 2)", database=db)
    proven = verify(spark, pipeline, [], compact="yes")["tables"]
    assert {facts["equal"] for facts in proven.values()} == {True}
