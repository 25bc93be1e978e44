"""Audit: tables of every kind of key, through snapshot, stream, check, damage, repair and history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.names import quoted
from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.history.history import History
from spark.job import JobFailedError
from spark.jobs.backfill import backfill
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_snapshot_chunks import keys_of

pytestmark = pytest.mark.usefixtures("without_expectations")
ROWS = 20
LEFT = {"sparse", "pair", "german", "folded", "old_utf8", "one", "empty", "keyless", "parted", "moments", "cased", "od`d {?} -- t'"}
ONLY: set[str] = set()


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"auditkeys{server.name}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    made.file.write_text(made.file.read_text() + "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 300}\n")
    yield made
    made.close()


def test_each_kind_of_key(spark: SparkSession, server: Database, streamer: Streamer) -> None:
    db = streamer.name
    kinds = {name: made for name, made in keys_of(server).items() if name not in LEFT and (not ONLY or name in ONLY)}
    statements = []
    for name, (columns, key, value) in kinds.items():
        statements.append(f"CREATE TABLE {quoted(name)} ({columns}, v int, PRIMARY KEY ({key}))")
        rows = [f"({found}, {n})" for n in range(60) if (found := value(n))]
        if name == "dates":
            rows = [row for row in rows if "00-" not in row and "-00" not in row]
        statements.append(f"INSERT INTO {quoted(name)} VALUES {', '.join(rows)}")
    run(server, "SET sql_mode = '', NAMES utf8mb4", *statements, database=db)
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    for name in kinds:
        run(
            server, "SET sql_mode = ''", f"UPDATE {quoted(name)} SET v = v + 1000 WHERE v % 5 = 1",
            f"DELETE FROM {quoted(name)} WHERE v % 7 = 3", database=db,
        )
    streamer.wait_until_released()
    try:
        compact(spark, pipeline)
    except JobFailedError as error:
        print("STOPPED", error)
    wrong: list[tuple[str, ...]] = []
    try:
        verify(spark, pipeline, [], compact="yes")
    except JobFailedError as error:
        wrong.append(("verify", str(error)[:2000]))
    lake = Lake(spark, pipeline)
    for name in kinds:
        path = lake.table(db, name)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE v % 4 = 0")
        spark.sql(f"UPDATE delta.`{path}` SET v = -1 WHERE v % 9 = 1")
    lake.write(lake.at("_running.json"), {})
    compact(spark, pipeline)
    try:
        verify(spark, pipeline, [], compact="yes")
    except JobFailedError as error:
        told = error.facts["tables"]
        print({name: facts.get("differences") for name, facts in told.items()})
        wrong += [("found", name, str(told[f"{db}.{name}"])) for name in kinds if not told[f"{db}.{name}"].get("differences")]
    try:
        repair(spark, pipeline, [], compact="yes")
    except Exception as error:
        wrong.append(("repair", type(error).__name__, str(error)[:2000]))
    try:
        verify(spark, pipeline, [], compact="yes")
    except JobFailedError as error:
        wrong.append(("verify again", str(error)[:2000]))
    for name in kinds:
        history = History(spark, lake, db, name)
        try:
            now = history.now().count()
            open_ = history.versions().where("valid_to is null").count()
            if now != open_:
                wrong.append(("versions", name, str((now, open_))))
        except Exception as error:
            wrong.append(("versions", name, str(error)[:300]))
    for name in kinds:
        try:
            backfill(spark, pipeline, [f"{db}.{name}"], since="2020-01-01T00:00:00Z", source="mysql")
        except Exception as error:
            wrong.append(("backfill", name, type(error).__name__, str(error)[:300]))
    streamer.wait_until_released()
    facts = compact(spark, pipeline)
    print(facts["parts"])
    wrong += [("part", str(part)) for part in facts["parts"].values() if part["refused"] or part["rows"]]
    for one in wrong:
        print("WRONG", one)
    assert wrong == []
