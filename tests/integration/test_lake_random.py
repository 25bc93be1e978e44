"""A lake's days at random: writes, statements that change tables, and all jobs in any order, on each server.

Behind every step one thing holds: a table of which nothing is told has, row by row, what the source has; and no check
says that such a table differs. At the end whatever is told is mended by what it says: a snapshot.

`make soak-lake STEPS=200 SEED=7` takes more of them; the seed is drawn and printed where none is given.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.jobs.backfill import backfill
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from spark.maintenance.maintenance import maintain
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.conftest import SERVERS
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

STEPS = os.environ.get("HEADRACE_STEPS", "")
SEED = os.environ.get("HEADRACE_SEED", "")
TABLE = "CREATE TABLE {name} (id int PRIMARY KEY, v int, name varchar(20), at datetime(3))"
ALTERS = (
    "ADD COLUMN c{n} int", "ADD COLUMN c{n} varchar(9) NOT NULL DEFAULT 'x'", "ADD COLUMN c{n} int DEFAULT 5 FIRST",
    "DROP COLUMN {column}", "RENAME COLUMN {column} TO r{n}", "MODIFY v bigint", "MODIFY v varchar(30)",
    "MODIFY name varchar(80)", "MODIFY name varchar(20) CHARACTER SET latin1", "MODIFY id bigint", "ENGINE = InnoDB",
    "COMMENT = 'n{n}'", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
)  # fmt: skip
# The server, the seed and how many steps. The few are write, alter, verify, mend, rearrange and rebuild.
FORMS = [
    pytest.param("mysql", 137, 6, id="mysql"),
    *(pytest.param(name, 20, 9, id=f"{name}-longer", marks=pytest.mark.soak) for name in SERVERS),
]
Step = Callable[[], None]


class Days:
    """`told`: by table, what the last compaction told of it; None where that was nothing."""

    def __init__(self, spark: SparkSession, server: Database, streamer: Streamer, chance: random.Random) -> None:
        self.spark, self.server, self.streamer, self.chance = spark, server, streamer, chance
        self.db, self.n, self.log = streamer.name, 0, list[str]()
        self.told: dict[str, str | None] = {}

    @property
    def pipeline(self) -> Pipeline:
        return load(self.streamer.file)

    def sql(self, *statements: str) -> None:
        self.log += statements
        run(self.server, *statements, database=self.db)

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        with self.server.connect(database=self.db, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def tables(self) -> list[str]:
        return sorted(name for (name,) in self.asked("SHOW TABLES"))

    def columns(self, table: str) -> list[str]:
        return [row[0] for row in self.asked(f"SHOW COLUMNS FROM {table}")]

    def number(self) -> int:
        self.n += 1
        return self.n

    def write(self) -> None:
        table, chance = self.chance.choice(self.tables()), self.chance
        first = self.number() * 100
        rows = ", ".join(f"({n}, {n}, 'é{n}', now(3))" for n in range(first, first + chance.randint(1, 60)))
        names = [name for name in ("v", "name", "at") if name in self.columns(table)]
        if len(names) == 3:
            self.sql(f"INSERT INTO {table} (id, v, name, at) VALUES {rows}")
        else:
            self.sql(f"INSERT INTO {table} (id) VALUES ({first}), ({first + 1})")
        if names:
            column = chance.choice(names)
            value = "now(3)" if column == "at" else str(self.number())
            self.sql(f"UPDATE {table} SET {column} = {value} WHERE id % 7 = {chance.randint(0, 6)}")
        self.sql(f"DELETE FROM {table} WHERE id % 11 = {chance.randint(0, 10)}")
        self.sql(f"UPDATE {table} SET id = id + {self.number() * 1000} WHERE id % 13 = 5 ORDER BY id DESC LIMIT 3")

    def alter(self) -> None:
        table = self.chance.choice(self.tables())
        loose = [name for name in self.columns(table) if name != "id"]
        how = self.chance.choice(ALTERS)
        if how.startswith("MODIFY ") and how.split()[1] not in self.columns(table):
            how = "COMMENT = 'n{n}'"
        if "{column}" in how and len(loose) < 2:
            how = "ADD COLUMN c{n} int"
        self.sql(f"ALTER TABLE {table} {how.format(n=self.number(), column=self.chance.choice(loose or ['v']))}")

    def rearrange(self) -> None:
        """Truncated, dropped and made again, renamed, swapped as gh-ost does."""
        table, n = self.chance.choice(self.tables()), self.number()
        again = [f"DROP TABLE {table}", TABLE.format(name=table)]
        away = [f"RENAME TABLE {table} TO moved{n}", TABLE.format(name=table)]
        ghost = [f"CREATE TABLE g{n} LIKE {table}", f"INSERT INTO g{n} SELECT * FROM {table}"]
        ghost += [f"RENAME TABLE {table} TO o{n}, g{n} TO {table}", f"DROP TABLE o{n}"]
        self.sql(*self.chance.choice([[f"TRUNCATE TABLE {table}"], again, away, ghost]))

    def snapshot(self) -> None:
        tables = self.tables()
        self.log.append("snapshot")
        snapshot(self.spark, self.pipeline, [f"{self.db}.{table}" for table in self.chance.sample(tables, k=1)])
        self.compact()

    def compact(self) -> None:
        self.log.append("compact")
        self.streamer.wait_until_released()
        try:
            facts = compact(self.spark, self.pipeline)
        except JobFailedError as error:
            facts = error.facts
        kinds = "stopped", "unequal", "stale", "outdated", "unread", "ahead", "foreign"
        for name, table in facts["tables"].items():
            said = next((table[kind] for kind in kinds if table[kind]), None)
            self.told[name] = said or (None if table["snapshot"] else "not yet snapshotted")

    def verify(self) -> None:
        self.compact()
        self.log.append("verify")
        try:
            tables = verify(self.spark, self.pipeline, [])["tables"]
        except JobFailedError as error:
            tables = error.facts["tables"]
        wrong = {name for name, facts in tables.items() if facts["equal"] is False and self.told.get(name) is None}
        assert {name for name in wrong if name in self.told} == set(), (tables, self.log)

    def mend(self) -> None:
        """Rows of the lake are damaged; a check finds them, and a repair makes them as they were."""
        self.compact()
        well = [name for name, told in self.told.items() if told is None and name.partition(".")[2] in self.tables()]
        if not well:
            return
        name = self.chance.choice(well)
        self.log.append(f"damage of {name}")
        lake = Lake(self.spark, self.pipeline)
        self.spark.sql(f"DELETE FROM delta.`{lake.table(self.db, name.partition('.')[2])}` WHERE id % 3 = 1")
        lake.write(lake.at("_running.json"), {})  # its rows are counted anew, and the status is of this version
        self.compact()
        with_rows = bool(self.asked(f"SELECT 1 FROM {name} WHERE id % 3 = 1 LIMIT 1"))
        if with_rows:
            with pytest.raises(JobFailedError, match="missing"):
                verify(self.spark, self.pipeline, [name])
            repair(self.spark, self.pipeline, [name])
            self.compact()

    def rebuild(self) -> None:
        self.compact()
        name = self.chance.choice([*self.told])
        source = self.chance.choice(["changes", "kafka", "mysql"])
        self.log.append(f"backfill of {name} from {source}")
        try:
            backfill(self.spark, self.pipeline, [name], source=source)
        except LakeError as error:  # it says what it cannot be made of
            self.log.append(str(error))
        self.compact()

    def maintain(self) -> None:
        self.log.append("maintain")
        maintain(self.spark, self.pipeline, [])

    def assert_as_told(self) -> None:
        lake = Lake(self.spark, self.pipeline)
        for table in self.tables():
            name = f"{self.db}.{table}"
            if name not in self.told or self.told[name] is not None:
                continue
            columns = self.columns(table)
            rows = self.spark.read.format("delta").load(lake.table(self.db, table))
            # A column that was added, and of which no change tells yet, is null, and not there.
            there = {column: f"`{column}`" if column in rows.columns else "NULL" for column in columns}
            frame = rows.selectExpr(*[f"string({there[column]}) AS `{column}`" for column in columns])
            quoted = [f"`{column}`" for column in columns]
            texts = ", ".join(f"CAST({one} AS CHAR)" for one in quoted)
            assert _plain(frame.collect()) == _plain(self.asked(f"SELECT {texts} FROM {table}")), (name, self.log)


def _plain(rows: Sequence[Sequence[str | None]]) -> list[tuple[str | None, ...]]:
    """Sorted; a time's fraction as both write it."""
    shown = [[v.rstrip("0").rstrip(".") if v and "." in v and ":" in v else v for v in row] for row in rows]
    return sorted(map(tuple, shown), key=repr)


@pytest.fixture
def streamer(
    server: Database, kafka: Kafka, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"random{server.name}{count}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    made.file.write_text(made.file.read_text() + "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 120}\n")
    yield made
    made.close()


@pytest.mark.parametrize(("server", "seed", "count"), FORMS, indirect=["server"])
@pytest.mark.usefixtures("without_expectations")
def test_what_is_not_told_is_equal(
    spark: SparkSession, server: Database, streamer: Streamer, seed: int, count: int
) -> None:
    if STEPS:
        seed, count = int(SEED or random.randrange(10**6)), int(STEPS)
    print(f"\nSEED={seed} on {server.name}", flush=True)
    days = Days(spark, server, streamer, random.Random(seed))
    days.sql(TABLE.format(name="a"), TABLE.format(name="b"))
    streamer.started()
    days.write()
    snapshot(spark, days.pipeline, [])
    days.compact()
    steps: dict[Step, int] = {
        days.write: 9, days.alter: 5, days.rearrange: 3, days.snapshot: 3, days.compact: 4, days.verify: 3,
        days.mend: 2, days.rebuild: 2, days.maintain: 1,
    }  # fmt: skip
    for step in days.chance.choices([*steps], [*steps.values()], k=count):
        step()
        if step not in (days.write, days.alter, days.rearrange, days.maintain):
            days.assert_as_told()
    days.compact()
    days.assert_as_told()
    if any(days.told.values()):
        snapshot(spark, days.pipeline, [])
        days.compact()
    assert {name: told for name, told in days.told.items() if told and name.partition(".")[2] in days.tables()} == {}
    days.assert_as_told()
    days.verify()
