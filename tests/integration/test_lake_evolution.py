"""Each way in which a table's definition changes, on a real server: its line, its row, what becomes of the table, and
that the table is the source's again when what it says was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

TABLE = (
    "CREATE TABLE {} (id int PRIMARY KEY, a int, b varchar(20), e enum('x','y'), "
    "f binary(2) DEFAULT 'zz', s set('p','q') DEFAULT 'p,q', d decimal(6,2) DEFAULT 1.25, u int unsigned DEFAULT 7)"
)
COMPUTED = ", g int AS (e + 0) STORED)"
PARTS = " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (100))"
CARRIED, STALE, STOPPED = "carried", "stale", "stopped"


class Case(NamedTuple):
    """`statements`: DDL, and a change of a row behind it, of the table `{t}`. `kind`: of a row of `_schema_changes`,
    with its `rule`; `becomes`: of the table, whatever else is said of it. `now`: its name in the source then; empty
    where it is gone."""

    statements: tuple[str, ...]
    kind: str
    rule: str
    becomes: str
    now: str = "{t}"


def altered(action: str, to: str, kind: str, rule: str, becomes: str = "") -> Case:
    return Case((f"ALTER TABLE {{t}} {action}", f"UPDATE {{t}} SET {to} WHERE id = 1"), kind, rule, becomes or rule)


CASES = {
    "added": altered("ADD COLUMN c int", "c = 1", "added", CARRIED),
    "defaulted": altered("ADD COLUMN c int DEFAULT 5", "a = 7", "alter", STALE),
    "dropped": altered("DROP COLUMN b", "a = 7", "dropped", CARRIED),
    "renamed": altered("RENAME COLUMN b TO c", "c = 'r'", "renamed", CARRIED),
    "reordered": altered("MODIFY b varchar(20) AFTER id", "b = 'r'", "reordered", CARRIED),
    "widened": altered("MODIFY a bigint", "a = 5000000000", "widened", CARRIED),
    "longer": altered("MODIFY b text", "b = 'r'", "widened", CARRIED),
    "digits": altered("MODIFY d decimal(12,2)", "d = 123456789.25", "widened", CARRIED),
    "longer_unsigned": altered("MODIFY u bigint unsigned", "u = 18446744073709551615", "widened", CARRIED),
    "filled_up": altered("MODIFY f binary(4)", "a = 7", "widened", STALE),
    "narrowed": altered("MODIFY a smallint", "a = 7", "narrowed", STALE),
    "retyped": altered("MODIFY a varchar(20)", "a = 'r'", "retyped", STOPPED),
    "converted": altered("MODIFY b varchar(20) CHARACTER SET latin1", "b = 'é'", "charset", STALE),
    "members": altered("MODIFY e enum('x','y','z')", "e = 'z'", "members", CARRIED),
    "computed": altered("MODIFY e enum('y','x')", "a = 7", "members", CARRIED, STALE),
    "remade": altered("DROP COLUMN a, ADD COLUMN a int", "b = 'r'", "alter", STALE),
    "cut": Case(
        ("UPDATE {t} SET e = 'x'", "ALTER TABLE {t} MODIFY e enum('x')", "UPDATE {t} SET a = 7"),
        "members", STALE, STALE,
    ),
    "in_another_order": altered("MODIFY s set('q','p')", "a = 7", "members", STALE),
    "nulls": altered("MODIFY a int NOT NULL", "a = 7", "nullability", STALE),
    "keyed": altered("DROP PRIMARY KEY, ADD PRIMARY KEY (b)", "a = 7", "key", CARRIED, STALE),
    "parts": altered("TRUNCATE PARTITION p0", "a = 7", "partition", STALE),
    "moved": Case(("RENAME TABLE {t} TO {t}_away", "UPDATE {t}_away SET a = 7"), "rename", STALE, STALE, "{t}_away"),
    "gone": Case(("DROP TABLE {t}",), "drop", STALE, STALE, ""),
    "again": Case(
        ("DROP TABLE {t}", "CREATE TABLE {t} (id int PRIMARY KEY, other int)", "INSERT INTO {t} VALUES (3, 3)"),
        "drop", STALE, STALE,
    ),
    # As gh-ost does it: rows are copied into a table that the pipeline does not have, which takes the name.
    "swapped": Case(
        (
            "CREATE TABLE hidden_gho LIKE {t}", "ALTER TABLE hidden_gho ADD COLUMN n int NOT NULL DEFAULT 5 AFTER id",
            "INSERT INTO hidden_gho (id, a, b, e) SELECT id, a, b, e FROM {t}",
            "RENAME TABLE {t} TO hidden_del, hidden_gho TO {t}", "UPDATE {t} SET n = 6 WHERE id = 1",
        ),
        "rename", STALE, STALE,
    ),
}  # fmt: skip

# The way back of the others, a snapshot of a stale table, is the same as these have: it is walked by the soak of all.
WALKED = (
    "renamed", "longer", "digits", "filled_up", "in_another_order", "members", "computed", "remade", "keyed", "parts",
    "moved", "gone", "again", "swapped",
)  # fmt: skip
OTHERS = tuple(name for name in CASES if name not in WALKED)


@pytest.fixture
def streamer(
    server: Database, kafka: Kafka, names: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"evolving{server.name}{len(names)}"  # the topics are of one Kafka
    run(server, f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    yield made
    made.close()


def source(server: Database, db: str, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the columns, and the rows."""
    with server.connect(database=db) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return [column[0] for column in cursor.description], sorted(cursor.fetchall())


def in_lake(spark: SparkSession, pipeline: Pipeline, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(Lake(spark, pipeline).table(pipeline.name, table)).select(*columns)
    return sorted(tuple(row) for row in rows.collect())


def becomes(pipeline: Pipeline, table: str) -> str:
    found = status.read(pipeline)
    assert found is not None
    known = found.tables[f"{pipeline.name}.{table}"]
    return STOPPED if known.stopped else STALE if known.stale else CARRIED


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize(
    "names",
    [WALKED, *(pytest.param(names, marks=pytest.mark.soak) for names in (OTHERS, tuple(CASES)))],
    ids=["walked", "others", "all"],
)
def test_each_change_has_its_rule_its_line_and_its_row_and_a_way_back(
    spark: SparkSession, server: Database, streamer: Streamer, names: Sequence[str]
) -> None:
    db = streamer.name
    cases = {name: CASES[name] for name in names}
    for name in cases:
        made = TABLE.format(name)[:-1] + {"parts": ")" + PARTS, "computed": COMPUTED}.get(name, ")")
        run(server, made, f"INSERT INTO {name} (id, a, b, e) VALUES (1, 1, 'b', 'x'), (2, 2, 'c', 'y')", database=db)
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    # Of a table of which nothing was streamed yet the schema topic has no shape to compare with.
    run(server, *(f"UPDATE {name} SET a = 0 WHERE id = 2" for name in cases), database=db)
    for name, case in cases.items():
        run(server, *(statement.format(t=name) for statement in case.statements), database=db)
    streamer.wait_until_released()
    try:
        report = compact(spark, pipeline)
    except JobFailedError as error:  # of the stopped ones; the others are complete
        report = error.facts
    rows = spark.read.format("delta").load(Lake(spark, pipeline).at("_schema_changes"))
    noted = {(row["tbl"], row["kind"], row["rule"]) for row in rows.collect()}
    for name, case in cases.items():
        assert any(line.startswith(f"{db}.{name}: ") for line in report["schema_changes"]), name
        assert (name, case.kind, case.rule) in noted
        assert becomes(pipeline, name) == case.becomes, name
        if case.becomes == CARRIED:
            columns, wanted = source(server, db, name)
            assert in_lake(spark, pipeline, name, columns) == wanted, name
    here = {name: case.now.format(t=name) for name, case in cases.items() if case.now}
    ways = (STOPPED,) if names == OTHERS else (STOPPED, STALE)
    back = [name for name in here if cases[name].becomes in ways]
    read = [f"{db}.{here[name]}" for name in back]
    snapshot(spark, pipeline, read)
    compact(spark, pipeline)
    for name in (here[name] for name in back):
        columns, wanted = source(server, db, name)
        assert in_lake(spark, pipeline, name, columns) == wanted, name
        assert becomes(pipeline, name) == CARRIED, name
