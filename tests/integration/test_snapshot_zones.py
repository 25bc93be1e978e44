"""Every type's edge values by a snapshot through Spark's reader are the stream's, byte for byte, in whatever time zone
Java, Spark's session and the server are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.source.row_texts import rows_of
from spark.source.row_wires import wires_of
from spark.source.source import Source
from spark.tables.rows import parsed, typed
from stack.database import Database
from streamer.protocol.model import RowsBatch
from tests.integration.decoding import recorded, run
from tests.integration.edge_values import cases, inserts, pieces, spelling
from tests.integration.staging import pipeline

# Of Java and Spark's session, and of the server's sessions: each far from UTC, one with a summer time; and whether the
# server puts what it is asked into a temporary table first, whose columns cut texts that it took for shorter ones.
ZONES = (("UTC", "+05:45", "on"), ("America/St_Johns", "+13:00", "off"), ("Asia/Kolkata", "-09:30", "on"))


@contextmanager
def in_zone(spark: SparkSession, server: Database, java: str, theirs: str, merge: str) -> Iterator[None]:
    jvm: Any = spark._jvm
    zone, session = jvm.java.util.TimeZone, spark.conf.get("spark.sql.session.timeZone")
    before = zone.getDefault()
    zone.setDefault(zone.getTimeZone(java))
    jvm.java.lang.System.setProperty("user.timezone", java)
    spark.conf.set("spark.sql.session.timeZone", java)
    run(server, f"SET GLOBAL time_zone = '{theirs}'", f"SET GLOBAL optimizer_switch = 'derived_merge={merge}'")
    try:
        yield
    finally:
        run(server, "SET GLOBAL time_zone = '+00:00'", "SET GLOBAL optimizer_switch = 'derived_merge=on'")
        spark.conf.set("spark.sql.session.timeZone", session)
        jvm.java.lang.System.setProperty("user.timezone", before.getID())
        zone.setDefault(before)


@pytest.mark.soak_on("mysql80")
def test_a_value_is_the_same_by_both_ways_in_any_time_zone(
    spark: SparkSession, server: Database, tmp_path: Path
) -> None:
    kinds = cases(server)
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(kinds))
    settings = ("SET sql_mode = ''", "SET NAMES utf8mb4")
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    run(server, *settings, f"CREATE TABLE edges.edge (id int primary key, {columns}) ROW_FORMAT=DYNAMIC")
    with recorded(server) as found:
        run(server, *settings, *(insert.replace(*spelling(server)) for insert in inserts(kinds)))
    batches = [item for item in found if isinstance(item, RowsBatch)]
    streamed = [(bytes(key), bytes(row)) for item in batches for key, row in zip(item.keys, item.rows, strict=True)]
    rules = pipeline(server, tmp_path, "edges.*")
    moments: list[Any] = []
    with Source(rules) as source:
        schema = source.schema("edges", "edge")
        assert schema is not None
        for java, theirs, merge in ZONES:
            with in_zone(spark, server, java, theirs, merge):
                read = rows_of(spark, source, schema, ["1 = 1"]).persist()
                rows = [(row["key"].encode(), row["after"].encode()) for row in read.collect()]
                times = [c for c in schema.columns if c.type in ("timestamp", "datetime", "date")]
                made = read.withColumn("_wire", parsed("after", schema.columns)).select(*typed("_wire", schema))
                apart = wires_of(spark, source, schema, ["1 = 1"])
                whole = read.select("key", parsed("after", schema.columns).alias("_wire"))
                assert whole.exceptAll(apart).collect() == apart.exceptAll(whole).collect() == [], (java, theirs)
                moments.append(made.selectExpr(*(f"hash({c.name})" for c in times)).collect())
                read.unpersist()
            (keys, ours), (known, given) = (zip(*sorted(both), strict=True) for both in (rows, streamed))
            assert keys == known
            for column, spelled in zip(schema.columns, ("int", *kinds), strict=True):
                assert pieces(ours, column) == pieces(given, column), (spelled, java, theirs)
    assert moments[0] == moments[1] == moments[2]
