"""The streamer killed with SIGKILL at random moments under load, and two compactions in the middle of their work:
the lake equals MySQL, row by row, and has no change twice, though Kafka has."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pymysql
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.spark_jobs import kill as kill_job
from tests.integration.streaming import Streamer
from tests.integration.topic_records import records

KILLS = int(os.environ.get("HEADRACE_KILLS", "5"))
# Before these of the streamer's kills a compaction is killed, once the log of this table has this many commits.
MANY = {KILLS // 3: ("_changes", 2), KILLS * 2 // 3: ("{db}/accounts", 2)}
COMPACTIONS = MANY if KILLS > 5 else {}  # test_lake_kills.py kills them too
TABLES = {
    "accounts": ("id bigint, owner varchar(40), balance decimal(12,2), changed datetime(6)", "id"),
    "entries": ("account bigint, n int, note text", "account, n"),
}


class Load(threading.Thread):
    """Transactions of every kind over two tables, until it is stopped: inserts of many rows, updates, moved keys,
    deletes and re-inserts, some rolled back. It pauses while `going` is not set."""

    def __init__(self, mysql: MySQL, database: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.connection = mysql.connect(database=database, autocommit=False)
        self.random = random.Random(seed)
        self.stopping, self.going = threading.Event(), threading.Event()
        self.going.set()
        self.transactions = 0
        self.failure: Exception | None = None
        self.base = seed * 1_000_000  # each writer has accounts of its own, so none waits for another's locks

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self.going.wait()
                self._transaction()
                time.sleep(0.02)
        except Exception as error:
            self.failure = error

    def end(self) -> None:
        self.stopping.set()
        self.join()
        self.connection.close()
        if self.failure:
            raise self.failure

    def _transaction(self) -> None:
        with self.connection.cursor() as cursor:
            for _ in range(self.random.randint(1, 4)):
                self._statement(cursor, self.base + self.random.randint(1, 400))
        if self.random.random() < 0.1:
            self.connection.rollback()
        else:
            self.connection.commit()
            self.transactions += 1

    def _statement(self, cursor: pymysql.cursors.Cursor, account: int) -> None:
        kind = self.random.randint(0, 5)
        if kind <= 1:
            rows = [(account + n, f"owner {account}", self.random.randint(-9999, 9999) / 100) for n in range(5)]
            cursor.executemany("REPLACE INTO accounts VALUES (%s, %s, %s, now(6))", rows)
        elif kind == 2:
            own = (account, account + 20)
            change = "UPDATE accounts SET balance = balance + 1, changed = now(6)"
            cursor.execute(f"{change} WHERE id BETWEEN %s AND %s", own)
        elif kind == 3:
            cursor.execute("DELETE FROM accounts WHERE id = %s", (account,))
        elif kind == 4:
            note = "é" * self.random.randint(0, 90)
            cursor.execute("REPLACE INTO entries VALUES (%s, %s, %s)", (account, kind, note))
            cursor.execute("DELETE FROM entries WHERE account = %s AND n = 6", (account,))
        else:
            cursor.execute("UPDATE IGNORE entries SET n = n + 1 WHERE account = %s", (account,))


def rows_of(mysql: MySQL, database: str, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns' names, and the rows in order."""
    with mysql.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return [column[0] for column in cursor.description], sorted(cursor.fetchall())


def pause(writers: list[Load]) -> None:
    for writer in writers:
        writer.going.clear()


def resume(writers: list[Load]) -> None:
    for writer in writers:
        writer.going.set()


def killed_in(streamer: Streamer, table: str, more: int) -> None:
    """A compaction that is killed once it has committed so often to a table of the lake."""
    log = streamer.file.parent / "lake" / streamer.name / table.format(db=streamer.name) / "_delta_log"

    def commits() -> int:
        return len(list(log.glob("[0-9]*.json")))

    enough = commits() + more
    kill_job("compact", streamer.file, {"TEST_PASSWORD": streamer.password}, lambda: commits() >= enough)


def assert_each_change_once(lake: Path, kafka: Kafka, table: str) -> int:
    """How many are in Kafka again."""
    sent = [record.seq for record in records(kafka, f"{lake.name}.{table}") if record.value]
    landed = pl.scan_delta(str(lake / "_changes")).filter(pl.col("tbl") == table).select("_seq").collect()
    assert sorted(tuple(row["_seq"].values()) for row in landed.to_dicts()) == sorted(set(sent))
    return len(sent) - len(set(sent))


def test_killed_at_random_moments_nothing_is_lost(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = "kills"
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
    streamer = Streamer(tmp_path, mysql, kafka, database, delivery="at_least_once")
    # Some batches a run, so that replays begin and end in all places of them; each takes seconds.
    batch = 1000 if KILLS > 5 else 2000
    streamer.file.write_text(streamer.file.read_text() + f"compaction: {{max_offsets_per_batch: {batch}}}\n")
    try:
        streamer.started()
        with mysql.connect(database=database) as connection, connection.cursor() as cursor:
            for table, (columns, key) in TABLES.items():
                cursor.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key}))")
        writers = [Load(mysql, database, seed) for seed in (1, 2)]
        for writer in writers:
            writer.start()
        moment = random.Random(20)
        for kill in range(KILLS):
            if kill in COMPACTIONS:
                # What is written meanwhile would make the test long, and shows nothing more.
                pause(writers)
                killed_in(streamer, *COMPACTIONS[kill])
                resume(writers)
            # From before it is up to well into its work.
            time.sleep(moment.uniform(0.3, 3.5))
            streamer.kill()
            streamer.start()
        for writer in writers:
            writer.end()
        streamer.wait_until_released(120)
        compact(spark, load(streamer.file))
        assert streamer.stop() == 0
    finally:
        streamer.close()

    assert sum(writer.transactions for writer in writers) > 50 * KILLS
    again = 0
    for table in TABLES:
        columns, expected = rows_of(mysql, database, table)
        found = pl.scan_delta(str(tmp_path / "lake" / database / database / table)).select(columns).collect()
        assert len(expected) > 50
        assert sorted(found.rows()) == expected
        again += assert_each_change_once(tmp_path / "lake" / database, kafka, f"{database}.{table}")
    assert again > 0, "no kill led to a duplicate: this run has shown nothing"
    assert (
        len(list((tmp_path / "lake" / database / "_checkpoints" / "changes" / "commits").glob("[0-9]*"))) > KILLS // 2
    )
