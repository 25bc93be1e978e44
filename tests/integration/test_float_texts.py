"""The texts by which floats are hashed: the same from each server and from Spark, and of each value another one."""

from __future__ import annotations

import random
import struct
import threading
from math import copysign, frexp, inf, isfinite, nan, nextafter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import types
from contract.schema import Column
from spark.proof.checksum import source_sql, total
from spark.snapshot.load import GROUP
from spark.source.row_texts import rows_of
from spark.source.row_wires import wires_of
from spark.source.source import Source
from spark.tables.rows import parsed
from stack.database import Database
from stack.mysql import MySQL
from tests.integration.decoding import pipeline, run
from tests.integration.staging import Snapshots
from tests.integration.staging import pipeline as rules

RANDOM = random.Random(52)
WIDE, NARROW = "d", "f"


def edges() -> list[float]:
    """Powers of two and their neighbours, where a rounded logarithm is one off."""
    powers = [2.0**exponent for exponent in range(-1074, 1024)]
    most = struct.unpack("<d", b"\xff" * 6 + b"\xef\x7f")[0]
    return [most, *powers, *(nextafter(one, way) for one in powers for way in (0.0, inf))]


def by_chance(form: str, count: int) -> list[float]:
    bits = "I" if form == NARROW else "Q"
    found = (
        struct.unpack(form, struct.pack(bits, RANDOM.getrandbits(8 * struct.calcsize(form))))[0] for _ in range(count)
    )
    return [one for one in found if isfinite(one)]


def text(value: float) -> str:
    sign, (part, exponent) = "-" if copysign(1, value) < 0 else "", frexp(abs(value))
    return f"{sign}{int(part * 2**53)} {exponent - 1}" if value else f"{sign}0"


DOUBLES = {one for one in (*edges(), *by_chance(WIDE, 3000), *map(float, range(-99, 99)), 0.1, 1 / 3) if isfinite(one)}
FLOATS = {*by_chance(NARROW, 2000), 1.0, 16777216.0, *(2.0**exponent for exponent in range(-149, 128))}


def test_texts_of_floats_are_the_same_in_each_server_and_in_spark(spark: SparkSession, server: Database) -> None:
    for kind, values in (("double", [*DOUBLES - {0.0}, 0.0, -0.0]), ("float", [*FLOATS - {0.0}, 0.0, -0.0])):
        column = types.of(Column(name="v", type=kind), server.flavor)
        assert column.checksum_sql is not None
        assert column.checksum_spark is not None
        rows = ", ".join(f"({n}, {value!r}{'' if value else 'e0'})" for n, value in enumerate(values))  # -0.0 is exact
        run(
            server,
            "DROP DATABASE IF EXISTS texts",
            "CREATE DATABASE texts",
            f"CREATE TABLE texts.t (id int, v {kind})",
        )
        run(server, f"INSERT INTO texts.t VALUES {rows}")
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {column.checksum_sql('v')} FROM texts.t ORDER BY id")
            said = [row[0] for row in cursor.fetchall()]
        expected = [text(value) for value in values]
        frame = spark.createDataFrame(list(enumerate(values)), f"id int, v {kind}")
        told = [row[0] for row in frame.orderBy("id").selectExpr(column.checksum_spark("v")).collect()]
        wrong = [found for found in zip(values, expected, said, told, strict=True) if len({*found[1:]}) > 1]
        assert wrong == []
        assert len({*said}) == len(values), "each has its own"


def test_what_a_double_of_set_digits_stores_is_read_and_not_what_its_server_prints(
    spark: SparkSession, server: Database
) -> None:
    """A copy of another column leaves in it whatever that had."""
    kept = [one for one in sorted(DOUBLES) if 1e-99 < abs(one) < 1e15] + [-0.0, 0.0, 1.59]
    run(server, "DROP DATABASE IF EXISTS texts", "CREATE DATABASE texts")
    run(
        server,
        "CREATE TABLE texts.t (id int PRIMARY KEY, v double, w double(20,2), f float(9,2), z double unsigned zerofill)",
    )
    rows = ", ".join(f"({n}, {value!r}{'' if value else 'e0'})" for n, value in enumerate(kept))
    run(server, f"INSERT INTO texts.t (id, v) VALUES {rows}", "UPDATE texts.t SET w = v, f = id / 7, z = abs(v)")
    with Source(pipeline(server, "texts.*")) as source:
        schema = source.schema("texts", "t")
        assert schema is not None
        shown = source.shown(schema)
        assert shown.rounded == {"w", "z"}
        asked = types.of(schema.column("w"), server.flavor).checksum_sql
        assert asked is not None
        stored = source.rows(f"SELECT {asked('w')}, w FROM texts.t ORDER BY id")  # MariaDB rounds such a copy
        sums = source.row(source_sql(shown, server.flavor))
        wires = wires_of(spark, source, schema, ["1 = 1"]).select("_wire.*").persist()
        texts = rows_of(spark, source, schema, ["1 = 1"]).withColumn("_wire", parsed("after", schema.columns))
        read = [row["w"] for row in wires.orderBy("id").collect()]
        assert [text(value) for value in read] == [row[0] for row in stored]
        assert [text(value) for value in read] != [text(float(row[1])) for row in stored], "which it prints otherwise"
        assert texts.select("_wire.*").exceptAll(wires).isEmpty()
        typed_rows = wires.withColumn("f", wires["f"].cast("float"))
        assert sums is not None
        assert total(typed_rows, schema).sum == int(sums[1])
        wires.unpersist()


def test_a_snapshot_asks_for_them_by_another_connection_than_it_walks_the_key_by(
    spark: SparkSession, mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group is walked while the one before it is read."""
    count, walking, asked = 5 * GROUP * 4, list[Source](), list[Source]()
    rows, row = Source.rounded, Source.row
    monkeypatch.setattr(Source, "rounded", lambda self, schema: (asked.append(self), rows(self, schema))[1])

    def walks(self: Source, sql: str, *given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            walking.append(self)
        return row(self, sql, *given)

    monkeypatch.setattr(Source, "row", walks)
    run(mysql, "CREATE DATABASE walked", "CREATE TABLE walked.t (id int PRIMARY KEY, w double(9,2), y year)")
    values = ", ".join(f"({n}, {n / 7:.2f}, 2026)" for n in range(count))
    run(mysql, f"INSERT INTO walked.t VALUES {values}")
    made = Snapshots(spark, mysql, rules(mysql, tmp_path, "walked.*", chunk_rows=5, parallelism=1))
    assert len(made.rows(made.run(), "t")) == count
    assert len(asked) > 3
    assert walking
    assert {*map(id, asked)} & {*map(id, walking)} == set()


def test_what_no_server_has_is_no_number_in_spark(spark: SparkSession) -> None:
    told = types.of(Column(name="v", type="double")).checksum_spark
    assert told is not None
    frame = spark.createDataFrame([(nan,), (inf,), (-inf,)], "v double")
    assert [row[0] for row in frame.selectExpr(told("v")).collect()] == ["NaN", "Infinity", "-Infinity"]
