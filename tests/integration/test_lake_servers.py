"""The main job on each server: rows of every kind of type by snapshot and by stream, under writes, and the proof.

The proof must also fail: a value that is off by its last digit is found, in a FLOAT and a DOUBLE as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from spark.proof.checksum import total
from spark.snapshot.table_read import TableRead
from spark.source.choice import chosen
from spark.source.source import Source
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import pipeline as pipeline_of
from tests.integration.decoding import run
from tests.integration.edge_values import CASES
from tests.integration.streaming import Streamer

AGAIN = 1020, 1213, 1412  # a row was changed, a deadlock, the table was altered: the transaction is done again
ZEROS = "SET sql_mode = '', NAMES utf8mb4"
# Column type, and the literals that are stored; NULL is stored besides.
TYPES: dict[str, Sequence[str]] = {
    kind: CASES[kind]
    for kind in (
        "tinyint unsigned", "smallint", "mediumint", "int(8) unsigned zerofill", "bigint unsigned", "bool", "year",
        "decimal(5,2)", "decimal(38,10)", "decimal(65,30)", "decimal(12,2) unsigned zerofill", "bit(1)", "bit(9)",
        "bit(64)", "date", "time", "time(6)", "datetime", "datetime(3)", "timestamp null", "timestamp(6) null",
        "char(10)", "varchar(20)", "longtext", "binary(5)", "varbinary(300)", "tinyblob", "mediumblob",
        "set('a','b','c')", "varchar(20) character set latin1", "text character set gbk", "char(20) character set sjis",
        "varchar(20) character set utf16",
    )
}  # fmt: skip
TYPES |= {
    "enum('new','it''s, größe','')": ("'new'", "'it''s, größe'", "''"),
    "json": ('\'{"bb": 1, "a": [1, {"c": null}], "ccc": "x\\\\"\\\\\\\\ü😀"}\'', "'[]'", "'18446744073709551615'"),
    "point": ("point(1.5, -2)", "st_geomfromtext('POINT(50 8)', 4326)"),
    "geometry": ("st_geomfromtext('POLYGON((0 0, 4 0, 4 4, 0 0))')", "point(0, 0)"),
}
OWN = {
    "mysql": {},
    "mysql80": {},
    "mariadb": {
        "uuid": ("'123e4567-e89b-12d3-a456-426614174000'", "'00000000-0000-0000-0000-000000000000'"),
        "inet4": ("'10.0.0.255'", "'0.0.0.0'"),
        "inet6": ("'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'", "'::'"),
        "varchar(20) collate utf8mb4_uca1400_as_cs": ("'é😀'",),
    },
}
FLOATS: dict[str, tuple[str, Sequence[str]]] = {
    "single": ("float", CASES["float"]),
    "twofold": ("double", CASES["double"]),
}
VECTORS: tuple[str, Sequence[str]] = (
    "vector(3)",
    ("to_vector('[1,2.5,-0.1]')", "x'0000008001000000ffff7f7f'", "to_vector('[0,-16777217.5,0.3333333]')"),
)


class Site:
    """A server's database: `types` with every type that the server itself hashes, `floats` with those that Spark hashes
    for both sides, `lines` with a key of a text and a number, which is read in chunks, and `plain` without snapshot
    reads."""

    tables = ("types", "floats", "lines", "plain")

    def __init__(self, server: Database, name: str) -> None:
        self.server, self.name = server, name
        self.kinds = [*TYPES.items(), *OWN[server.name].items()]
        self.floats = FLOATS | ({"vec": VECTORS} if server.name == "mysql" else {})
        columns = ", ".join(f"`c{n}` {kind}" for n, (kind, _) in enumerate(self.kinds))
        run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        tables = [f"types (id int PRIMARY KEY, {columns})"]
        floats = ", ".join(f"{name} {kind}" for name, (kind, _) in self.floats.items())
        tables += [f"floats (id int PRIMARY KEY, {floats})"]
        tables += ["`lines` (region varchar(9), n bigint unsigned, v int, PRIMARY KEY (region, n))"]
        tables += ["plain (n int PRIMARY KEY, v int) ENGINE = MyISAM"]
        run(server, ZEROS, *(f"CREATE TABLE {table}" for table in tables), database=name)
        self.rows = max(len(values) for _, values in [*self.kinds, *self.floats.values()])

    def put(self, first: int) -> None:
        """A row for each place in the longest list of values, a column repeating its own; and one of NULLs."""
        statements = []
        for n in range(self.rows):
            row = ", ".join(values[n % len(values)] for _, values in self.kinds)
            statements.append(f"INSERT INTO types VALUES ({first + n}, {row})")
            floats = ", ".join(values[n % len(values)] for _, values in self.floats.values())
            statements.append(f"INSERT INTO floats VALUES ({first + n}, {floats})")
        nulls = ", ".join(["NULL"] * len(self.kinds))
        statements.append(f"INSERT INTO types VALUES ({first + self.rows}, {nulls})")
        run(self.server, ZEROS, *statements, database=self.name)

    def lines(self, first: int, count: int) -> None:
        rows = ", ".join(f"('{'äbCß'[n % 4]}{n % 7}', {n}, {n})" for n in range(first, first + count))
        run(self.server, f"INSERT INTO `lines` VALUES {rows}", database=self.name)


@pytest.fixture
def site(server: Database) -> Site:
    return Site(server, f"lake{server.name}")


@pytest.fixture
def streamer(site: Site, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", site.server.password)
    made = Streamer(tmp_path, site.server, kafka, site.name)
    made.file.write_text(made.file.read_text() + "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 300}\n")
    yield made
    made.close()


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """`work(stop)` in a thread of its own while the block runs."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work, stop)
        try:
            yield
        finally:
            stop.set()
        running.result()


def writing(site: Site, stop: threading.Event) -> None:
    n = 10_000
    with site.server.connect(database=site.name, autocommit=False) as connection, connection.cursor() as cursor:
        while not stop.wait(0.02):
            n += 1
            run(site.server, f"REPLACE INTO plain VALUES ({n % 300}, {n}), ({n}, 0)", database=site.name)
            try:
                written(cursor, n)
            except pymysql.err.OperationalError as error:
                if error.args[0] not in AGAIN:
                    raise
                connection.rollback()
            (connection.rollback if n % 10 == 0 else connection.commit)()


def written(cursor: Any, n: int) -> None:
    new = "INSERT INTO `lines` (region, n, v) VALUES"
    cursor.execute(f"{new} ('new', {n}, 0), ('new', {n + 1_000_000}, 1)")
    cursor.execute(f"UPDATE `lines` SET v = v + 1 WHERE n = {n % 400}")
    cursor.execute(f"DELETE FROM `lines` WHERE n = {(n + 200) % 400}")
    cursor.execute(f"{new.replace('INSERT', 'REPLACE')} ('again', {(n + 200) % 400}, {n})")
    cursor.execute(f"UPDATE `lines` SET n = n + {n}000 WHERE n = {(n + 100) % 400}")
    cursor.execute(f"UPDATE floats SET single = {n} / 7 WHERE id = {n % 5}")


def altering(site: Site) -> Callable[..., None]:
    """Reads a part as ever; `lines` is altered in the middle of its read, behind changes whose events lack the column
    and its default."""
    part = TableRead._part

    def altered(read: TableRead, *of_it: Any) -> None:
        if read.progress.shape.table == "lines" and len(read.progress.shape.columns) == 3:
            wide = "ALTER TABLE `lines` ADD COLUMN more int NOT NULL DEFAULT 5"
            run(site.server, "UPDATE `lines` SET v = -1 WHERE n % 5 = 0", wide, database=site.name)
        part(read, *of_it)

    return altered


def test_an_alter_in_the_middle_of_a_snapshot_under_writes(
    spark: SparkSession, site: Site, streamer: Streamer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableRead, "_part", altering(site))
    site.lines(0, 400)
    streamer.started()
    streamer.wait_until_released()
    pipeline, name = load(streamer.file), f"{site.name}.lines"
    with beside(partial(writing, site)):
        facts = snapshot(spark, pipeline, [name])
        compact(spark, pipeline)
    streamer.wait_until_released()
    assert compact(spark, pipeline)["tables"][name]["stale"] is None
    assert facts["tables"][name]["rows"] >= 400
    columns = ("region", "n", "v", "more")
    table = spark.read.format("delta").load(Lake(spark, pipeline).table(site.name, "lines"))
    with site.server.connect(database=site.name) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} FROM `lines`")
        assert sorted(tuple(row) for row in table.select(*columns).collect()) == sorted(cursor.fetchall())
    assert {row["more"] for row in table.select("more").distinct().collect()} == {5}


def compacting(spark: SparkSession, pipeline: Pipeline, stop: threading.Event) -> None:
    while not stop.wait(2):
        compact(spark, pipeline)


@pytest.mark.soak  # each type: test_snapshot_zones.py, test_lake_faults.py
def test_every_type_on_every_server_is_equal_and_a_last_digit_is_not(
    spark: SparkSession, site: Site, streamer: Streamer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of before the streamer's time, of before the snapshot, and of after it; one table changes all the time, and
    is altered while it is read. Of one server the lake has the dates as texts."""
    monkeypatch.setattr(TableRead, "_part", altering(site))
    site.put(0)
    site.lines(0, 400)
    streamer.started()
    site.put(1000)
    streamer.wait_until_released()
    pipeline = load(streamer.file)
    if site.server.name == "mysql80":
        texts = pipeline.lake.model_copy(update={"unrepresentable": "string"})
        pipeline = pipeline.model_copy(update={"lake": texts})
    with beside(partial(writing, site)):
        snapshot(spark, pipeline, [])
        site.put(2000)
        with beside(partial(compacting, spark, pipeline)):
            proof = verify(spark, pipeline, [])
    facts = proof["tables"]
    assert {name for name in facts if facts[name]["equal"]} == {f"{site.name}.{table}" for table in site.tables}
    assert facts[f"{site.name}.types"]["source_count"] == 3 * (site.rows + 1)
    assert_last_digits_count(spark, site, pipeline)
    if site.server.flavor == "mariadb":  # of MySQL test_lake_faults.py shows it, value by value
        streamer.wait_until_released()
        compact(spark, pipeline)
        assert_damage_is_found(spark, site, pipeline)


def assert_damage_is_found(spark: SparkSession, site: Site, pipeline: Pipeline) -> None:
    types = "{c} = {c} + 0.01 WHERE id = 1".format(c=f"c{list(TYPES).index('decimal(5,2)')}")
    damage(spark, pipeline, {"types": types, "floats": "single = 0.10000001F WHERE single = 0.1F"})
    with pytest.raises(JobFailedError, match="not as the source") as caught:
        verify(spark, pipeline, [])
    found = caught.value.facts["tables"]
    assert {name for name in found if found[name]["equal"]} == {f"{site.name}.{table}" for table in ("lines", "plain")}


def assert_last_digits_count(spark: SparkSession, site: Site, pipeline: Pipeline) -> None:
    """Of each kind of float, in the checksum that is compared."""
    one_off = {
        "single": "single = 0.1F, 0.10000001F",
        "twofold": "twofold = 0.1D, 0.10000000000000002D",
        "vec": "vec[1] = 2.5, array(1F, 2.5F, -0.10000001F)",
    }
    with Source(pipeline) as asked:
        schema = asked.schema(site.name, "floats")
    assert schema is not None
    frame = spark.read.format("delta").load(Lake(spark, pipeline).table(site.name, "floats"))
    for column in site.floats:
        wrong = frame.withColumn(column, fn.expr(f"if({one_off[column]}, {column})"))
        assert total(wrong, schema) != total(frame, schema), column


def damage(spark: SparkSession, pipeline: Pipeline, changes: dict[str, str]) -> None:
    """Changes the lake's tables, and their versions in its status, by hand."""
    lake = Lake(spark, pipeline)
    status = lake.read(lake.status)
    for table, change in changes.items():
        path = lake.table(pipeline.name, table)
        spark.sql(f"UPDATE delta.`{path}` SET {change}")
        status["tables"][f"{pipeline.name}.{table}"]["version"] = lake.version(path)
    lake.write(lake.status, status)


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_a_system_versioned_table_is_refused_by_name(site: Site) -> None:
    """Its history comes as rows: the lake would have more rows than the table."""
    run(site.server, "CREATE TABLE old (id int PRIMARY KEY) WITH SYSTEM VERSIONING", database=site.name)
    given = pipeline_of(site.server, f"{site.name}.*")
    with Source(given) as source, pytest.raises(LakeError, match=rf"{site.name}\.old: system-versioned.*Exclude it"):
        chosen(given, source, [])
