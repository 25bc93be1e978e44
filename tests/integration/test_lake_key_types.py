"""A table for each kind of key that is neither a whole number nor a text, through all that a job does by a row's key: a
snapshot under writes, compactions, a check, a repair and an erasure.

Each of them writes a key in its own way (JSON of a record, Spark's type, the server's literal), and a row whose key
two of them write differently is lost or doubled, or never found again.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
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

# Column type, and six keys: of rows 0 to 4, and the one that row 1 gets later. Row 4 comes by the stream.
KEYS: dict[str, Sequence[str]] = {
    "binary(16)": (
        "x'00000000000000000000000000000000'", "x'00000000000000000000000000000001'",
        "x'80ff0000000000000000000000000000'", "x'ffffffffffffffffffffffffffff2020'",
        "x'9f3c80e29c9300fe0000000000000000'", "x'20000000000000000000000000000020'",
    ),
    "varbinary(20)": ("x''", "x'00'", "x'0000'", "x'20'", "x'fffe8000'", "x'2020'"),
    "decimal(24,4)": (
        "0", "-0.0001", "12345678901234567890.1234", "-12345678901234567890.1235", "12345678901234567890.1235", "-1",
    ),
    "decimal(60,20)": (
        "0.00000000000000000001", "-1234567890123456789012345678901234567890.00000000000000000001",
        "1234567890123456789012345678901234567890.00000000000000000001",
        "1234567890123456789012345678901234567890.00000000000000000002", "-10", "0",
    ),
    "bit(12)": ("0", "1", "256", "2048", "4095", "128"),
    "bit(64)": ("0", "1", "9223372036854775808", "18446744073709551615", "18446744073709551614", "32"),
    "enum('z','größe','a','10','2','b c')": ("'z'", "'größe'", "'a'", "'10'", "'2'", "'b c'"),
    "set('z','a','m')": ("''", "'a'", "'z,m'", "'z,a'", "'z,a,m'", "'m'"),
    "year": ("0", "2000", "1901", "2155", "1970", "2026"),
    "time(3)": (
        "'-838:59:58.999'", "'-00:00:00.001'", "'00:00:00.001'", "'00:00:00'", "'838:59:59'", "'-00:00:00.500'",
    ),
    "date": ("'0001-01-01'", "'1582-10-10'", "'9999-12-31'", "'1969-12-31'", "'2024-02-29'", "'1000-01-01'"),
    "timestamp(3)": (
        "'1970-01-01 00:00:01'", "'2026-03-29 01:30:00.100'", "'2026-03-29 02:30:00.1'", "'2038-01-19 03:14:07.999'",
        "'2026-10-25 01:00:00.01'", "'2026-10-25 01:00:00.010' - interval 1 hour",
    ),
}  # fmt: skip
OF_MARIADB: dict[str, Sequence[str]] = {
    "uuid": (
        "'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426614174000'",
        "'01890a5d-ac96-774b-bcce-b302099a8057'", "'ffffffff-ffff-ffff-ffff-ffffffffff00'",
        "'20202020-2020-1020-8020-202020202020'", "'f0000000-0000-4000-8000-000000000000'",
    ),
    "inet6": ("'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'", "'1::'", "'ff00::'", "'::2020'"),
    "inet4": ("'0.0.0.0'", "'10.0.0.255'", "'255.0.0.0'", "'32.32.32.32'", "'128.0.0.1'", "'1.0.0.0'"),
}  # fmt: skip
BYTES = ("binary", "varbinary", "bit")


class Site:
    """A table `k0`, `k1` .. for each kind of key `k`; `n` is the row's number, `v` what is written to."""

    def __init__(self, server: Database) -> None:
        self.server, self.name = server, f"keyed{server.name}"
        kinds = KEYS | (OF_MARIADB if server.flavor == "mariadb" else {})
        self.tables = {f"k{at}": (kind, keys) for at, (kind, keys) in enumerate(kinds.items())}
        self.sql(*(f"CREATE TABLE {name} (k {kind} NOT NULL PRIMARY KEY, n int, v varchar(20))"
                   for name, (kind, _) in self.tables.items()), first=True)  # fmt: skip

    def sql(self, *statements: str, first: bool = False) -> None:
        made = (f"CREATE DATABASE {self.name}",) if first else ()
        run(self.server, *made, f"USE {self.name}", ZEROS, "SET time_zone = '+00:00'", *statements)

    def each(self, *statements: str) -> None:
        """The statements for each table, with `{t}` and `{k[0]}` to `{k[5]}` in them."""
        self.sql(*(one.format(t=name, k=keys) for name, (_, keys) in self.tables.items() for one in statements))

    def named(self, kind: str) -> str:
        return next(name for name, (of, _) in self.tables.items() if of == kind)

    def rows(self, table: str) -> dict[int, tuple[str, str]]:
        """By number, what the server says: the key as records have it, and `v`."""
        kind = self.tables[table][0]
        shown = "k" if kind.startswith(BYTES) else "cast(k as char)"
        with self.server.connect(database=self.name) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT n, {shown}, v FROM {table}")
            return {n: (wire(kind, key), v) for n, key, v in cursor.fetchall()}


def wire(kind: str, key: Any) -> str:
    if isinstance(key, bytes | bytearray):
        return base64.b64encode(key).decode()
    return f"{key.replace(' ', 'T')}Z" if kind.startswith("timestamp") else key


@pytest.fixture
def site(server: Database) -> Site:
    return Site(server)


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
    while not stop.wait(0.1):
        n += 1
        site.each(f"UPDATE {{t}} SET v = 'v{n}' WHERE k = {{k[3]}}", "DELETE FROM {t} WHERE k = {k[2]}")
        site.each("INSERT INTO {t} VALUES ({k[2]}, 2, 'again')")


def lake_rows(spark: SparkSession, pipeline: Pipeline, table: str) -> dict[int, tuple[str, str]]:
    rows = spark.read.format("delta").load(Lake(spark, pipeline).table(pipeline.name, table))
    kind = dict(rows.dtypes)["k"]
    shown = {"binary": "k", "timestamp": "date_format(k, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"}
    found = rows.selectExpr("n", f"{shown.get(kind, 'cast(k as string)')} as k", "v").collect()
    assert len({row["n"] for row in found}) == len(found), "a row is there twice"
    return {row["n"]: (wire("", row["k"]), row["v"]) for row in found}


def assert_equal(spark: SparkSession, pipeline: Pipeline, site: Site, numbers: set[int]) -> None:
    """By the check, and row by row without it."""
    compact(spark, pipeline)
    told = verify(spark, pipeline, [])["tables"]
    assert {name for name in told if told[name]["equal"]} == {f"{site.name}.{table}" for table in site.tables}
    for table, (kind, _) in site.tables.items():
        rows = site.rows(table)
        assert set(rows) == numbers, kind
        assert lake_rows(spark, pipeline, table) == rows, kind


def differences(spark: SparkSession, pipeline: Pipeline, site: Site) -> Mapping[str, set[tuple[str, str]]]:
    lake = Lake(spark, pipeline)
    found = {table: latest(spark, lake, site.name, table) for table in site.tables}
    return {
        kind: {(one.kind, str(json.loads(one.key or "{}").get("k"))) for one in found[table]}
        for table, (kind, _) in site.tables.items()
    }


def damage(spark: SparkSession, pipeline: Pipeline, site: Site) -> Mapping[str, set[tuple[str, str]]]:
    """Of each table one row is another, and one is gone; what a check is to say of it."""
    expected = {}
    for table, (kind, _) in site.tables.items():
        faults = [kit.changed("n", 1, "v", "string"), kit.missing("n", 0)]
        kit.damage(spark, pipeline, f"{site.name}.{table}", faults)
        rows = site.rows(table)
        expected[kind] = {("changed", rows[1][0]), ("missing", rows[0][0])}
    return expected


def test_rows_of_each_kind_of_key_are_followed_proven_repaired_and_erased(
    spark: SparkSession, site: Site, streamer: Streamer
) -> None:
    for n in range(4):
        site.each(f"INSERT INTO {{t}} VALUES ({{k[{n}]}}, {n}, 'first')")
    streamer.started()
    pipeline = load(streamer.file)
    with beside(partial(writing, site)):
        snapshot(spark, pipeline, [])
    streamer.wait_until_released()
    compact(spark, pipeline)
    site.each(
        "UPDATE {t} SET v = 'größer' WHERE k = {k[0]}", "UPDATE {t} SET k = {k[5]} WHERE k = {k[1]}",
        "DELETE FROM {t} WHERE k = {k[2]}", "INSERT INTO {t} VALUES ({k[4]}, 4, 'new')",
    )  # fmt: skip
    streamer.wait_until_released()
    assert_equal(spark, pipeline, site, {0, 1, 3, 4})

    expected = damage(spark, pipeline, site)
    with pytest.raises(JobFailedError, match=f"{len(site.tables)} of {len(site.tables)} table"):
        verify(spark, pipeline, [])
    assert differences(spark, pipeline, site) == expected
    repair(spark, pipeline, [], by="a test")
    assert_equal(spark, pipeline, site, {0, 1, 3, 4})

    site.each("DELETE FROM {t} WHERE k = {k[4]}")
    streamer.wait_until_released()
    for kind, key in (("binary(16)", "0x9F3C80E29C9300FE0000000000000000"), ("time(3)", "838:59:59")):
        facts = erase(spark, pipeline, [f"{site.name}.{site.named(kind)}"], json.dumps(key), now="yes", by="ada")
        assert facts["tables"][f"{site.name}.{site.named(kind)}"]["changes"] == 1, kind
    assert_equal(spark, pipeline, site, {0, 1, 3})
