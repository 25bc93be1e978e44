"""Every fault of the kit, all at once, while the source is written to and the lake follows: the check finds each one,
pins it to row and column, and says nothing of any other row."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.faults import kit
from tests.faults.kit import Expected, Fault
from tests.integration import foreign_keys
from tests.integration.conftest import SERVERS
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_servers import OWN, TYPES, ZEROS, beside, compacting

pytestmark = pytest.mark.usefixtures("without_expectations")

ROWS = 240
HOT = 6  # every sixth row is written to, the others keep still
NOTES = ("NULL", "''", "'NULL'", "'x '", "'größe'", "'Groesse'")
TABLES = ("exact", "floats", "codes", "lines", "drift", "later")
VECTORS = ("ALTER TABLE `lines` ADD vec vector(3)", "UPDATE `lines` SET vec = to_vector(concat('[', id, ',0.1,-2]'))")
SMALL = f"c{list(TYPES).index('smallint')}"
# The server, and whether compactions follow it all the while, instead of those that a job waits for.
FORMS = [
    pytest.param("mysql", False, id="mysql"),
    *(pytest.param(name, True, id=f"{name}-followed", marks=pytest.mark.soak) for name in SERVERS),
]


@pytest.fixture
def streamer(
    server: Database, kafka: Kafka, followed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    fill(server)
    made = Streamer(tmp_path, server, kafka, "faulty")
    topics = f"faulty-{server.name}{int(followed)}"  # they have the pipeline's name, and are of one Kafka
    own = made.file.read_text().replace("name: faulty", f"name: {topics}")
    own = own.replace("tables: {", 'tables: {cascades: ["faulty.owned", "faulty.linked"], ')
    made.file.write_text(own + "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 300}\n")
    yield made
    made.close()


def fill(server: Database) -> None:
    kinds = TYPES | OWN[server.name]
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
    cycle = [[values[n % len(values)] for values in kinds.values()] for n in range(ROWS + 1)]
    exact = [f"({n}, {', '.join(cycle[n])})" for n in range(1, ROWS + 1)]
    floats = [f"({n}, {n} / 7, {n} / 7e0)" for n in range(1, ROWS + 1)]
    codes = [f"('{'äbCß'[n % 4]}{n}', {n}, {NOTES[n % len(NOTES)]})" for n in range(1, ROWS + 1)]
    plain = [f"({n}, {n}, 'b{n}')" for n in range(1, ROWS + 1)]
    run(
        server, ZEROS, "DROP DATABASE IF EXISTS faulty", "CREATE DATABASE faulty", "USE faulty",
        f"CREATE TABLE exact (id int PRIMARY KEY, {columns})",
        "CREATE TABLE floats (id int PRIMARY KEY, single float, twofold double)",
        "CREATE TABLE codes (code varchar(20) PRIMARY KEY, v int, note varchar(20))",
        *(f"CREATE TABLE `{name}` (id int PRIMARY KEY, a int, b varchar(20))" for name in ("lines", "drift")),
        f"INSERT INTO exact VALUES {', '.join(exact)}", f"INSERT INTO floats VALUES {', '.join(floats)}",
        f"INSERT INTO codes VALUES {', '.join(codes)}", f"INSERT INTO `lines` VALUES {', '.join(plain)}",
        f"INSERT INTO drift VALUES {', '.join(plain[:60])}", *(VECTORS if server.name == "mysql" else ()),
    )  # fmt: skip
    foreign_keys.make(server, "faulty")


def writing(server: Database, stop: threading.Event) -> None:
    n = 0
    with server.connect(database="faulty", autocommit=False) as connection, connection.cursor() as cursor:
        while not stop.wait(0.1):
            n += 1
            hot = n * HOT % ROWS or HOT
            cursor.execute(f"UPDATE exact SET {SMALL} = {n % 1000} WHERE id = {hot}")
            cursor.execute(f"UPDATE exact SET id = {100_000 + n} WHERE id = {50_000 + n - 7}")
            cursor.execute(f"INSERT INTO exact (id) VALUES ({50_000 + n})")
            cursor.execute(f"DELETE FROM exact WHERE id = {100_000 + n - 30}")
            cursor.execute(f"UPDATE floats SET twofold = {n} / 3e0 WHERE id = {hot}")
            cursor.execute(f"UPDATE codes SET note = 'hot{n}' WHERE v = {hot}")
            cursor.execute(f"REPLACE INTO codes VALUES ('hot{n % 40}', 0, NULL)")
            cursor.execute(f"UPDATE `lines` SET a = a + 1 WHERE id = {hot}")
            cursor.execute(f"UPDATE linked SET v = {n} WHERE id = {foreign_keys.STILL}")
            (connection.rollback if n % 10 == 0 else connection.commit)()


def cold(first: int) -> Iterator[int]:
    return (n for n in range(first, ROWS) if n % HOT)


def of_each_type(spark: SparkSession, pipeline: Pipeline) -> list[Fault]:
    """Each column of another row."""
    rows = spark.read.format("delta").load(Lake(spark, pipeline).table("faulty", "exact"))
    kinds = {name: kind for name, kind in rows.dtypes if name.startswith("c")}
    other = [fn.expr(f"not ({kit.another(name, kind)} <=> `{name}`)").alias(name) for name, kind in kinds.items()]
    able = {row["id"]: row for row in rows.select("id", *other).collect()}
    ids, faults = cold(1), []
    for name, kind in kinds.items():
        faults.append(kit.changed("id", next(n for n in ids if able[n][name]), name, kind))
    return faults


def exact_faults(spark: SparkSession, pipeline: Pipeline) -> list[Fault]:
    name = {kind: f"c{n}" for n, kind in enumerate(TYPES)}
    ids, moments = cold(120), [name["datetime(3)"], name["timestamp(6) null"]]
    lake = spark.read.format("delta").load(Lake(spark, pipeline).table("faulty", "exact"))
    rows = {row["id"]: row for row in lake.where("id >= 120").collect()}
    latin = name["varchar(20) character set latin1"]
    shifted = next(n for n in ids if all(rows[n][column] for column in moments))
    damaged = next(n for n in ids if rows[n][latin] == "é€")
    one, other = next(ids), next(ids)
    columns = [column for column in lake.columns if column.startswith("c")]
    differing = [column for column in columns if rows[one][column] != rows[other][column]]
    return [
        *of_each_type(spark, pipeline),
        kit.missing("id", next(ids)),
        kit.extra("id", one, 9001),
        kit.duplicate("id", next(ids)),
        kit.an_hour_off("id", shifted, moments),
        kit.charset_damage("id", damaged, latin),
        kit.swapped("id", one, other, differing),
        kit.truncated_chunk("id", [n for n in range(180, 205) if n % HOT]),
        kit.replaced("stale row", "id", 211, {SMALL: "7s"}),
        kit.extra("id", one, 212, "resurrected row"),
    ]


def code_faults() -> list[Fault]:
    code = {n: f"{'äbCß'[n % 4]}{n}" for n in range(ROWS)}
    return [
        kit.replaced("empty is NULL", "code", code[1], {"note": "cast(null as string)"}),
        kit.replaced("'NULL' is NULL", "code", code[2], {"note": "cast(null as string)"}),
        kit.replaced("without its trailing blank", "code", code[3], {"note": "rtrim(note)"}),
        kit.charset_damage("code", code[4], "note"),
        kit.missing("code", code[5]),
        kit.extra("code", code[7], "neu ß"),
        kit.duplicate("code", code[8]),
        kit.replaced("empty is 'NULL'", "code", code[13], {"note": "'NULL'"}),
    ]


def changes_of_the_source(server: Database) -> None:
    """What the lake will lack, or have still: a row that it keeps stale, one that comes back, a range of Kafka's.
    And a table that is made now, so that it has no snapshot; and parents of rows that change by their keys."""
    foreign_keys.change_parents(server, "faulty")
    run(
        server, f"UPDATE exact SET {SMALL} = 8 WHERE id = 211", "DELETE FROM exact WHERE id = 212",
        "INSERT INTO `lines` (id, a, b) VALUES (1000, 1, 'new')", "UPDATE `lines` SET b = 'other' WHERE id IN (7, 8)",
        "DELETE FROM `lines` WHERE id = 9", "CREATE TABLE later (id int PRIMARY KEY, b varchar(20))",
        "INSERT INTO later VALUES (1, 'one'), (2, 'two'), (3, 'three')", database="faulty",
    )  # fmt: skip


LOST = [
    Expected("faulty.lines", "missing", 1000), Expected("faulty.lines", "changed", 7, frozenset({"b"})),
    Expected("faulty.lines", "changed", 8, frozenset({"b"})), Expected("faulty.lines", "extra", 9),
]  # fmt: skip
CASCADE = [
    Expected("faulty.codes", "extra", "ß11"), Expected("faulty.codes", "changed", "ß15", frozenset({"v"})),
]  # fmt: skip


@pytest.mark.parametrize(("server", "followed"), FORMS, indirect=["server"])
def test_every_fault_is_found_in_its_row_and_column_and_no_other(
    spark: SparkSession, server: Database, streamer: Streamer, followed: bool
) -> None:
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    before = kit.version_of(spark, pipeline, "faulty.lines")
    changes_of_the_source(server)
    streamer.wait_until_released()
    compact(spark, pipeline)

    silent = foreign_keys.unlogged(server, "faulty")
    expected = [*LOST, *CASCADE, *silent]
    kit.lose_range(spark, pipeline, "faulty.lines", before, since=0)
    kit.unlogged(
        server, "DELETE FROM faulty.codes WHERE code = 'ß11'", "UPDATE faulty.codes SET v = -1 WHERE code = 'ß15'"
    )
    expected += kit.damage(spark, pipeline, "faulty.exact", exact_faults(spark, pipeline))
    expected += kit.damage(spark, pipeline, "faulty.floats", [
        kit.changed("id", 1, "single", "float"), kit.changed("id", 2, "twofold", "double"),
        kit.float_rounding("id", 3, "twofold"),
    ])  # fmt: skip
    expected += kit.damage(spark, pipeline, "faulty.codes", code_faults())
    if server.name == "mysql":
        expected += kit.damage(spark, pipeline, "faulty.lines", [kit.changed("id", 20, "vec", "array<float>")])
    expected += kit.damage(spark, pipeline, "faulty.drift", [kit.schema_drift("id", "b", range(1, 61))])

    expected += kit.damage(spark, pipeline, "faulty.later", [kit.missing("id", 1), kit.changed("id", 2, "b", "string")])

    following = partial(compacting, spark, pipeline) if followed else threading.Event.wait
    with (
        beside(partial(writing, server)),
        beside(following),
        pytest.raises(JobFailedError, match=f"{8 if silent else 6} of 9 table") as caught,
    ):
        verify(spark, pipeline, [], compact="" if followed else "yes")
    tables = [f"faulty.{name}" for name in (*TABLES, *foreign_keys.CHILDREN)]
    found = kit.found(spark, pipeline, tables)
    assert found - set(expected) == set(), "reported falsely"
    assert set(expected) - found == set(), "not found"
    if not silent:
        foreign_keys.assert_followed(spark, pipeline, "faulty")
    told = caught.value.facts["tables"]
    assert told["faulty.drift"]["differences"] == {"changed": 60}
    assert told["faulty.drift"]["columns"] == ["b"]
    assert "60 rows changed in b, first seen" in str(caught.value)
    assert "größe" not in str(caught.value), "no value of a row goes out"
