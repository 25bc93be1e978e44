"""The lake on real servers: snapshot under writes, hand-off, compaction, verification; the real streamer feeds it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.kafka.broker import Broker
from spark.lake.lake import Lake
from spark.snapshot.places import Places
from spark.snapshot.snapshot import Staging
from spark.source.source import Source
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Streamer, execute

DEADLOCK = 1213
ORDERS = """CREATE TABLE {db}.orders (
    id int unsigned AUTO_INCREMENT PRIMARY KEY, state enum('new','paid','it''s, sent') NOT NULL,
    amount decimal(12,2), placed datetime(3), changed timestamp(6) NULL, note varchar(60))"""
LINES = """CREATE TABLE {db}.lines (
    region varchar(9) COLLATE utf8mb4_0900_ai_ci, n bigint unsigned, weight double, raw varbinary(9),
    PRIMARY KEY (region, n))"""


class Shop:
    """A database with two tables, its pipeline, its streamer, and writers that never rest."""

    def __init__(self, folder: Path, mysql: MySQL, kafka: Kafka, name: str, rows: int = 3000) -> None:
        self.mysql, self.name, self.rows = mysql, name, rows
        self.orders, self.lines = f"{name}.orders", f"{name}.lines"
        execute(mysql, f"CREATE DATABASE {name}", ORDERS.format(db=name), LINES.format(db=name))
        self.streamer = Streamer(folder, mysql, kafka, name)
        text = self.streamer.file.read_text()
        self.streamer.file.write_text(
            text + "snapshot: {chunk_rows: 400, parallelism: 2}\nquality: {wait_seconds: 400}\n"
        )
        self.stopping, self.writers = threading.Event(), []
        self.failures: list[Exception] = []

    @property
    def pipeline(self) -> Pipeline:
        return load(self.streamer.file)

    def fill(self) -> None:
        with self.mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for at in range(0, self.rows, 1000):
                values = ", ".join(order(random) for _ in range(1000))
                cursor.execute(f"INSERT INTO {self.orders} (state, amount, placed, changed, note) VALUES {values}")
                values = ", ".join(
                    f"('{'äbC'[n % 3]}{n % 7}', {at + n}, {n / 7!r}, x'00ff{n % 256:02x}')" for n in range(1000)
                )
                cursor.execute(f"INSERT INTO {self.lines} VALUES {values}")

    def write(self) -> None:
        writer = threading.Thread(target=self._write, args=(len(self.writers),), daemon=True)
        self.writers.append(writer)
        writer.start()

    def rest(self) -> None:
        """Ends the writers and waits until the streamer has released what they wrote."""
        self.stopping.set()
        for writer in self.writers:
            writer.join()
        if self.failures:
            raise self.failures[0]
        self.stopping.clear()
        self.writers.clear()
        self.streamer.wait_until_released()

    def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        try:
            with self.mysql.connect(autocommit=False) as connection, connection.cursor() as cursor:
                cursor.execute("SET time_zone = '+05:30'")
                while not self.stopping.is_set():
                    try:
                        for _ in range(chance.randint(1, 4)):
                            cursor.execute(self._statement(chance))
                    except pymysql.err.OperationalError as error:
                        if error.args[0] != DEADLOCK:  # the server has rolled it back: as good as any
                            raise
                    (connection.rollback if chance.random() < 0.1 else connection.commit)()
                    time.sleep(0.02)
        except Exception as error:
            self.failures.append(error)

    def _statement(self, chance: random.Random) -> str:
        n = chance.randint(1, self.rows)
        new = f"INSERT INTO {self.orders} (state, amount, placed, changed, note) VALUES "
        return chance.choice(
            [
                new + ", ".join(order(chance) for _ in range(chance.randint(1, 5))),
                f"UPDATE {self.orders} SET state = 'paid', amount = amount + 0.01, changed = now(6) WHERE id = {n}",
                f"DELETE FROM {self.orders} WHERE id = {n}",
                f"UPDATE IGNORE {self.orders} SET id = {n + 100_000} WHERE id = {n}",
                f"UPDATE {self.lines} SET weight = weight / 3 WHERE n = {n} LIMIT 3",
                f"UPDATE IGNORE {self.lines} SET region = upper(region) WHERE n = {n}",
                f"DELETE FROM {self.lines} WHERE n = {n}",
                f"REPLACE INTO {self.lines} VALUES ('zz', {n}, {chance.random()!r}, NULL)",
            ]
        )


def order(chance: Any) -> str:
    state = chance.choice(["'new'", "'paid'", "'it''s, sent'"])
    note = chance.choice(["NULL", "''", "'a \"quoted\" \\\\ note'", "'línea\\n\\tü\U0001f300'"])
    placed = f"'202{chance.randint(0, 6)}-03-0{chance.randint(1, 9)} 02:30:00.{chance.randint(0, 999):03d}'"
    return f"({state}, {chance.randint(-(10**6), 10**6)} / 100, {placed}, now(6), {note})"


@pytest.fixture
def shop(
    tmp_path: Path, mysql: MySQL, kafka: Kafka, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    name = request.node.originalname.removeprefix("test_").replace("_", "")[:20]
    made = Shop(tmp_path, mysql, kafka, name)
    yield made
    made.stopping.set()
    made.streamer.close()


def source_rows(shop: Shop, table: str) -> list[tuple[Any, ...]]:
    with shop.mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table}")
        return sorted(cursor.fetchall(), key=repr)


def lake_rows(spark: SparkSession, shop: Shop, table: str) -> list[tuple[Any, ...]]:
    db, _, name = table.partition(".")
    frame = spark.read.format("delta").load(Lake(spark, shop.pipeline).table(db, name)).drop("_seq", "_ts")
    if "changed" in frame.columns:  # as MySQL's driver gives it: without a zone, in UTC
        frame = frame.withColumn("changed", frame["changed"].cast("timestamp_ntz"))
    plain = [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in frame.collect()]
    return sorted(plain, key=repr)


def assert_equal(spark: SparkSession, shop: Shop) -> None:
    for table in (shop.orders, shop.lines):
        assert lake_rows(spark, shop, table) == source_rows(shop, table)


def damage(spark: SparkSession, shop: Shop, statement: str) -> None:
    lake = Lake(spark, shop.pipeline)
    path = lake.table(shop.name, "orders")
    spark.sql(statement.format(table=f"delta.`{path}`"))
    # The status names the tables' versions; a run after the damage takes them anew.
    lake.write(lake.at("_running.json"), {})
    compact(spark, shop.pipeline)


def test_lake_follows_and_proves_it(spark: SparkSession, shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.fill()
    shop.streamer.started()
    shop.write()
    shop.write()
    compact(spark, shop.pipeline)  # a compaction before the snapshot: rows that it must not lose or keep
    staged = snapshot(spark, shop.pipeline, [])
    assert set(staged["tables"]) == {shop.orders, shop.lines}
    assert "chunks" in capsys.readouterr().out
    shop.streamer.kill()  # a replay: what was sent and not released comes again
    shop.streamer.started()
    compact(spark, shop.pipeline)
    standing = status.read(shop.pipeline)
    assert standing is not None
    assert standing.tables[shop.orders].snapshot is not None

    running = threading.Event()
    follower = threading.Thread(target=_follow, args=(spark, shop, running), daemon=True)
    follower.start()
    try:
        proof = verify(spark, shop.pipeline, [])
    finally:
        running.set()
        follower.join()
    assert all(table["equal"] for table in proof["tables"].values()), proof
    shop.rest()
    report = compact(spark, shop.pipeline)
    assert_equal(spark, shop)
    assert report["tables"][shop.orders]["rows"] == len(source_rows(shop, shop.orders))
    assert compact(spark, shop.pipeline)["changes"] == 0

    # A second snapshot of the same, and of what a stray hand did to the lake, gives the same lake again.
    damage(spark, shop, "DELETE FROM {table} WHERE id % 2 = 0")
    with pytest.raises(JobFailedError, match=f"1 of 2 table.*{shop.orders}: rows") as caught:
        verify(spark, shop.pipeline, [])
    assert caught.value.facts["tables"][shop.lines]["equal"]
    snapshot(spark, shop.pipeline, [shop.orders])
    compact(spark, shop.pipeline)
    assert_equal(spark, shop)


def _follow(spark: SparkSession, shop: Shop, stop: threading.Event) -> None:
    while not stop.wait(1):
        compact(spark, shop.pipeline)


def altered_meanwhile(spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a check proves a table that is altered, and gets rows that it could not have before, while the check
    waits for the lake; and whether its expectations hold."""
    table = f"ALTER TABLE {shop.orders}"
    execute(
        shop.mysql,
        f"{table} ADD CONSTRAINT cheap CHECK (amount < 100000), ADD CONSTRAINT more CHECK (amount > -100000)",
    )

    def waited(_: str) -> None:
        state = "state enum('new','paid','it''s, sent','lost') NULL"
        execute(shop.mysql, f"{table} ADD COLUMN latest int, MODIFY {state}, MODIFY note varchar(90), DROP CHECK cheap")
        many = "latest = 1, note = repeat('late', 20), amount = 200000"
        execute(shop.mysql, f"UPDATE {shop.orders} SET {many}, state = if(id % 2, 'lost', NULL) LIMIT 9")
        shop.streamer.wait_until_released()
        compact(spark, shop.pipeline)

    execute(shop.mysql, f"UPDATE {shop.orders} SET note = 'is waited for' LIMIT 5")
    with monkeypatch.context() as patch:
        patch.setattr("spark.proof.waiting.tell_wait", waited)
        report = verify(spark, shop.pipeline, [shop.orders])
    execute(shop.mysql, f"{table} DROP CHECK more")
    judged = report["expectations"]["tables"][shop.orders]
    assert (judged["failed"], [*judged["unjudged"]]) == ([], ["CHECK cheap"])
    assert judged["evaluated"] > 10
    equal: bool = report["tables"][shop.orders]["equal"]
    return equal


def test_lake_ddl(spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.rows = 1000
    shop.fill()
    shop.streamer.started()
    pipeline, told = shop.pipeline, []

    def alter(schema: Any, at: int) -> None:
        if schema.table == "lines" and at == 0:  # the jobs' own connection rests while rows are read
            execute(shop.mysql, f"KILL {source.connection.thread_id()}")
        if schema.table == "orders" and len(schema.columns) == 6:
            # A row that changes before the ALTER and not behind it: its event lacks the column's default.
            execute(shop.mysql, f"UPDATE {shop.orders} SET note = 'before' WHERE id % 7 = 0")
            execute(shop.mysql, f"ALTER TABLE {shop.orders} ADD COLUMN level int NOT NULL DEFAULT 5")

    newest = Broker(pipeline).checkpoint
    p0 = newest()
    assert p0 is not None
    with Source(pipeline) as source:
        places = Places(source, p0, newest, tell=told.append)
        staging = Staging(spark, pipeline, Lake(spark, pipeline), source, places, tell=told.append, between=alter)
        staging.run(source.tables())
    assert any("read again" in line for line in told)
    shop.streamer.wait_until_released()
    compact(spark, pipeline)
    assert_equal(spark, shop)  # the added column's default is in the rows that no event told of
    execute(
        shop.mysql,
        f"ALTER TABLE {shop.orders} ADD COLUMN later varchar(5)",
        f"UPDATE {shop.orders} SET later = 'x' LIMIT 3",
    )
    shop.streamer.wait_until_released()
    compact(spark, pipeline)
    assert_equal(spark, shop)

    assert altered_meanwhile(spark, shop, monkeypatch)
    execute(shop.mysql, f"ALTER TABLE {shop.orders} MODIFY note text, MODIFY amount varchar(20)")
    execute(shop.mysql, f"UPDATE {shop.orders} SET amount = 'many' LIMIT 2", f"DELETE FROM {shop.lines} LIMIT 5")
    shop.streamer.wait_until_released()
    with pytest.raises(JobFailedError, match=f"{shop.orders}: a column's type changed: amount is string now"):
        compact(spark, pipeline)
    assert lake_rows(spark, shop, shop.lines) == source_rows(shop, shop.lines)
    snapshot(spark, pipeline, [shop.orders])
    compact(spark, pipeline)
    assert_equal(spark, shop)


def test_lake_failures(
    spark: SparkSession, shop: Shop, tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LakeError, match="commit log of lakefailures is empty"):
        snapshot(spark, shop.pipeline, [])
    assert compact(spark, shop.pipeline)["changes"] == 0  # no topic yet: nothing to do
    shop.streamer.started()
    execute(shop.mysql, f"CREATE TABLE {shop.name}.heap (a int)")
    with pytest.raises(JobFailedError, match=r"lakefailures\.heap has no primary key.*2 other tables staged"):
        snapshot(spark, shop.pipeline, [])
    with pytest.raises(LakeError, match="no table lakefailures"):
        snapshot(spark, shop.pipeline, ["lakefailures.gone"])
    execute(shop.mysql, f"INSERT INTO {shop.name}.heap VALUES (1)", f"INSERT INTO {shop.lines} VALUES ('a', 1, 1, 'x')")
    shop.streamer.wait_until_released()
    with pytest.raises(JobFailedError, match="has no primary key"):
        compact(spark, shop.pipeline)
    assert len(lake_rows(spark, shop, shop.lines)) == 1
    shop.streamer.file.write_text(shop.streamer.file.read_text().replace("*.hidden*", "*.heap"))
    assert set(compact(spark, shop.pipeline)["tables"]) == {shop.lines, shop.orders}  # its topic is there, and no loss
