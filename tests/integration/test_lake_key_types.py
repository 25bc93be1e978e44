"""A table for each kind of key that is neither a whole number nor a text, through all that a job does by a row's key: a
snapshot under writes, compactions, a check, a repair and an erasure.

Each of them writes a key in its own way (JSON of a record, Spark's type, the server's literal), and a row whose key
two of them write differently is lost or doubled, or never found again.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.erase import erase
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from spark.proof.differences import latest
from stack.database import Database
from stack.kafka import Kafka
from tests.faults import kit
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_servers import ZEROS, beside

pytestmark = pytest.mark.usefixtures("without_expectations")

# The key's columns by their types: three values of the first and the second, two of the third. Row n has those at
# PLACES[n], so that each row is told from the next one by a single column.
KEYS: dict[str, dict[str, Sequence[str]]] = {
    "raw": {
        "binary(16)": (
            "repeat(x'00', 16)", "concat(x'80ff', repeat(x'00', 14))", "x'9f3c80e29c9300fe0000000000002020'",
        ),
        "varbinary(20)": ("x''", "x'00'", "x'fffe2000'"),
        "bit(12)": ("256", "4095"),
    },
    "numbers": {
        "decimal(24,4)": ("12345678901234567890.1234", "12345678901234567890.1235", "-0.0001"),
        "decimal(60,20)": (
            "-1234567890123456789012345678901234567890.00000000000000000001",
            "-1234567890123456789012345678901234567890.00000000000000000002", "0.00000000000000000002",
        ),
        "bit(64)": ("18446744073709551615", "18446744073709551614"),
    },
    "members": {
        "year": ("0", "2000", "1901"),
        "enum('z','größe','a','2','10')": ("'größe'", "'2'", "'z'"),
        "set('z','a','m')": ("''", "'z,m'"),
    },
    "times": {
        "time(3)": ("'-00:00:00.001'", "'00:00:00.001'", "'-838:59:58.999'"),
        "date": ("'0001-01-01'", "'9999-12-31'", "'1582-10-10'"),
        "timestamp(3)": ("'2026-03-29 01:30:00.1'", "'2026-03-29 02:30:00.100'"),
    },
}  # fmt: skip
OF_MARIADB: dict[str, dict[str, Sequence[str]]] = {
    "addresses": {
        "uuid": (
            "'123e4567-e89b-12d3-a456-426614174000'", "'00000000-0000-0000-0000-000000000000'",
            "'20202020-2020-1020-8020-202020202000'",
        ),
        "inet6": ("'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'"),
        "inet4": ("'255.0.0.0'", "'10.0.0.32'"),
    },
}  # fmt: skip
# Of a shorter run: what is written in most different ways.
MIXED = {
    "mixed": {
        "binary(16)": KEYS["raw"]["binary(16)"], "decimal(24,4)": KEYS["numbers"]["decimal(24,4)"],
        "timestamp(3)": KEYS["times"]["timestamp(3)"],
    },
}  # fmt: skip
PLACES = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 1), (2, 2, 1))
PLAIN = ("binary", "varbinary", "bit", "year")  # of the others the server's own text is asked for
Rows = dict[int, tuple[tuple[str, ...], str]]


class Site:
    """A table for each of the keys, with the key (k0, k1, k2), the row's number `n`, and `v`, which is written to."""

    def __init__(self, server: Database, short: bool) -> None:
        self.server, self.name, self.short = server, f"keyed{server.name}{'s' if short else ''}", short
        self.tables = MIXED if short else KEYS | (OF_MARIADB if server.flavor == "mariadb" else {})
        made = []
        for name, kinds in self.tables.items():
            columns = ", ".join(f"k{at} {kind} NOT NULL" for at, kind in enumerate(kinds))
            made.append(f"CREATE TABLE {name} ({columns}, n int, v varchar(20), PRIMARY KEY (k0, k1, k2))")
        run(server, f"CREATE DATABASE {self.name}", f"USE {self.name}", *made)

    def each(self, *statements: str) -> None:
        """The statements for each table. In them `{v0}` is the key of row 0, as values, `{w0}` as a condition, and
        `{s0}` as assignments."""
        ready = []
        for name, kinds in self.tables.items():
            words = {"t": name}
            for n, places in enumerate(PLACES):
                key = [values[at] for values, at in zip(kinds.values(), places, strict=True)]
                equal = [f"k{at} = {value}" for at, value in enumerate(key)]
                words |= {f"v{n}": ", ".join(key), f"w{n}": " AND ".join(equal), f"s{n}": ", ".join(equal)}
            ready += [statement.format(**words) for statement in statements]
        run(self.server, ZEROS, *ready, database=self.name)

    def rows(self, table: str) -> Rows:
        """By number, what the server says: the key as records have it, and `v`."""
        kinds = [*self.tables[table]]
        shown = [f"k{n}" if kind.startswith(PLAIN) else f"cast(k{n} as char)" for n, kind in enumerate(kinds)]
        with self.server.connect(database=self.name) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT n, {', '.join(shown)}, v FROM {table}")
            return {n: (tuple(map(wire, key, kinds)), v) for n, *key, v in cursor.fetchall()}


def wire(key: Any, kind: str = "") -> str:
    if isinstance(key, bytes | bytearray):
        return base64.b64encode(key).decode()
    return f"{key.replace(' ', 'T')}Z" if kind.startswith("timestamp") else str(key)


@pytest.fixture
def site(server: Database, request: pytest.FixtureRequest) -> Site:
    return Site(server, request.param)


@pytest.fixture
def streamer(site: Site, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", site.server.password)
    made = Streamer(tmp_path, site.server, kafka, site.name)
    made.file.write_text(made.file.read_text() + "quality: {wait_seconds: 300}\n")
    yield made
    made.close()


def writing(site: Site, stop: threading.Event) -> None:
    """Row 3 is written to, and row 2 is away now and then; both by their keys."""
    n = 0
    while not stop.wait(0.5):
        n += 1
        site.each(f"UPDATE {{t}} SET v = 'v{n}' WHERE {{w3}}", "DELETE FROM {t} WHERE {w2}")
        site.each("INSERT INTO {t} VALUES ({v2}, 2, 'again')")


def lake_rows(spark: SparkSession, pipeline: Pipeline, table: str) -> Rows:
    rows = spark.read.format("delta").load(Lake(spark, pipeline).table(pipeline.name, table))
    forms = {"binary": "{}", "timestamp": "date_format({}, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"}
    shown = [forms.get(kind, "cast({} as string)").format(name) for name, kind in rows.dtypes if name[0] == "k"]
    found = rows.selectExpr("n", *shown, "v").collect()
    assert len({row["n"] for row in found}) == len(found), "a row is there twice"
    return {n: (tuple(map(wire, key)), v) for n, *key, v in found}


def assert_equal(spark: SparkSession, pipeline: Pipeline, site: Site, numbers: set[int], *tables: str) -> None:
    """By the check, and row by row without it. No tables: all."""
    compact(spark, pipeline)
    names = {f"{site.name}.{table}" for table in tables or site.tables}
    told = verify(spark, pipeline, sorted(names) if tables else [])["tables"]
    assert {name for name in told if told[name]["equal"]} == names
    for table in tables or site.tables:
        rows = site.rows(table)
        assert set(rows) == numbers, table
        assert lake_rows(spark, pipeline, table) == rows, table


def damage(spark: SparkSession, pipeline: Pipeline, site: Site) -> dict[str, set[tuple[str, ...]]]:
    """Of each table one row is another, and one is gone; what a check is to say of it."""
    expected = {}
    for table in site.tables:
        kit.damage(spark, pipeline, f"{site.name}.{table}", [
            kit.changed("n", 1, "v", "string"), kit.missing("n", 0),
        ])  # fmt: skip
        rows = site.rows(table)
        expected[table] = {("changed", *rows[1][0]), ("missing", *rows[0][0])}
    return expected


def differences(spark: SparkSession, pipeline: Pipeline, site: Site) -> dict[str, set[tuple[str, ...]]]:
    lake = Lake(spark, pipeline)
    return {
        table: {(one.kind, *map(str, json.loads(one.key or "{}").values())) for one in found}
        for table in site.tables
        if (found := latest(spark, lake, site.name, table))
    }


ERASED = {
    "raw": {"k0": "0x9F3C80E29C9300FE0000000000002020", "k1": "0x00", "k2": "0x0FFF"},
    "times": {"k0": "-838:59:58.999", "k1": "9999-12-31", "k2": "2026-03-29T02:30:00.1Z"},
}


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize(
    "site", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["short", "all"], indirect=True
)
def test_rows_of_each_kind_of_key_are_followed_proven_repaired_and_erased(
    spark: SparkSession, site: Site, streamer: Streamer
) -> None:
    site.each(*(f"INSERT INTO {{t}} VALUES ({{v{n}}}, {n}, 'first')" for n in range(4)))
    streamer.started()
    pipeline = load(streamer.file)
    with beside(partial(writing, site)):
        snapshot(spark, pipeline, [])
    streamer.wait_until_released()
    compact(spark, pipeline)
    site.each(
        "UPDATE {t} SET v = 'größer' WHERE {w0}", "UPDATE {t} SET {s5} WHERE {w1}", "DELETE FROM {t} WHERE {w2}",
        "INSERT INTO {t} VALUES ({v4}, 4, 'new')",
    )  # fmt: skip
    streamer.wait_until_released()
    if site.short:  # what a check finds below is all that it finds
        compact(spark, pipeline)
    else:
        assert_equal(spark, pipeline, site, {0, 1, 3, 4})

    expected = damage(spark, pipeline, site)
    with pytest.raises(JobFailedError, match=f"{len(site.tables)} of {len(site.tables)} table"):
        verify(spark, pipeline, [])
    assert differences(spark, pipeline, site) == expected
    repair(spark, pipeline, [], by="a test")
    assert_equal(spark, pipeline, site, {0, 1, 3, 4})

    if site.short:
        return
    site.each("DELETE FROM {t} WHERE {w4}")
    streamer.wait_until_released()
    for table, key in ERASED.items():
        facts = erase(spark, pipeline, [f"{site.name}.{table}"], json.dumps(key), now="yes", by="ada")
        assert facts["tables"][f"{site.name}.{table}"]["changes"] == 2, "the insert and the delete"
    assert_equal(spark, pipeline, site, {0, 1, 3}, *ERASED)
