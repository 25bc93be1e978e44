"""Every type's edge values in the lake: each server's checksum text and Spark's are equal, column by column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract import types
from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from contract.schema import TableSchema, Unfit
from spark.lake.lake import Lake
from spark.merging.tables import Merging
from spark.proof.checksum import Total, halves, joined, row_hash, source_sql, total
from spark.source.choice import shown_of
from spark.source.row_texts import rows_of
from spark.source.row_wires import wires_of
from spark.source.source import Source
from spark.tables.rows import parsed, typed
from spark.tables.schema import Schemas
from stack.database import USER, Database
from tests.integration.conftest import SERVERS
from tests.integration.decoding import HOST, run
from tests.integration.edge_values import cases, spelling
from tests.spark.lake_by_hand import unwatched

FAR = ("'0000-01-01 00:00:00'", "'0001-01-01 00:00:00'", "'1582-10-10 12:00:00'", "'9999-12-31 23:59:59'")
DAYS = ("2024-02-31", "2023-02-29", "1900-02-29", "2024-04-31", "2024-02-29", "2000-02-29", "2024-01-31", "2024-11-30")
OWN = {
    "datetime not null": FAR,
    "date not null": tuple(value[:11] + "'" for value in FAR),
    # With days that their month does not have.
    "date null": tuple(f"'{day}'" for day in DAYS),
    "datetime(3) null": tuple(f"'{day} 10:00:00.5'" for day in DAYS),
}


@pytest.fixture(scope="module", params=SERVERS)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def pipeline(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder: Path = tmp_path_factory.mktemp("values")
    source = {
        "flavor": database.flavor, "host": HOST, "port": database.port, "user": USER, "password": database.password,
        "server_id": 4713,
    }  # fmt: skip
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "values",
            "source": source,
            "tables": {"include": ["worth.*"]},
            "kafka": {"bootstrap": "localhost:9092"},
            "lake": {"path": str(folder)},
        }
    )


@pytest.fixture(scope="module")
def kinds(database: Database) -> dict[str, Sequence[str]]:
    return {**cases(database), **OWN}


@pytest.fixture(scope="module")
def schema(database: Database, pipeline: Pipeline, kinds: dict[str, Sequence[str]]) -> TableSchema:
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(kinds))
    most = max(map(len, kinds.values()))
    rows = [", ".join(values[n % len(values)] for values in kinds.values()) for n in range(most)]
    nulls = ["NULL" if "not null" not in kind else values[0] for kind, values in kinds.items()]
    inserts = [f"INSERT INTO worth.t VALUES ({n}, {row})" for n, row in enumerate([*rows, ", ".join(nulls)])]
    inserts = [text.replace(*spelling(database)) for text in inserts]
    zero_dates = "SET sql_mode = 'ALLOW_INVALID_DATES'"
    run(database, "DROP DATABASE IF EXISTS worth", "CREATE DATABASE worth", zero_dates)
    run(database, zero_dates, f"CREATE TABLE worth.t (id int primary key, {columns})", "SET NAMES utf8mb4", *inserts)
    with Source(pipeline) as asked:
        found = asked.schema("worth", "t")
    assert found is not None
    return found


def test_each_columns_checksum_is_the_same_on_both_sides(
    spark: SparkSession, pipeline: Pipeline, schema: TableSchema, kinds: dict[str, Sequence[str]]
) -> None:
    flavor = pipeline.source.flavor
    with Source(pipeline) as source:
        texts = rows_of(spark, source, schema, ["1 = 1"])
    assert not texts.where('after like \'%"2024-02-31"%"2024-02-31 10:00:00.500"%\'').isEmpty(), (
        "as the stream has them"
    )
    read = texts.withColumn("_wire", parsed("after", schema.columns))
    rows = read.select(*typed("_wire", schema)).persist()
    exact = [column for column in schema.columns if types.of(column).checksum_sql]
    sums = []
    for column in exact:
        sums += [fn.sum(half) for half in halves(row_hash([column], rows.columns))]
    found = rows.agg(*sums).first()
    assert found is not None
    wrong = {}
    with Source(pipeline) as asked:
        for at, column in enumerate(exact):
            said = asked.row(source_sql(Columns().show(schema.model_copy(update={"columns": (column,)})), flavor))
            assert said is not None
            if int(said[1]) != joined(found[2 * at], found[2 * at + 1]):
                texts = asked.rows(f"SELECT `{column.name}` FROM worth.t ORDER BY id")
                wrong[list(kinds)[int(column.name[1:])]] = (texts, [r[0] for r in rows.select(column.name).collect()])
        assert wrong == {}
        whole = asked.row(source_sql(Columns().show(schema.model_copy(update={"columns": tuple(exact)})), flavor))
    assert whole is not None
    assert Total(int(whole[0]), int(whole[1])) == total(rows, schema.model_copy(update={"columns": tuple(exact)}))
    rows.unpersist()


def test_a_chunk_may_begin_at_a_day_that_its_month_does_not_have(
    spark: SparkSession, pipeline: Pipeline, database: Database, schema: TableSchema
) -> None:
    made = "CREATE TABLE worth.days (d date, n int, PRIMARY KEY (d, n))"
    rows = "INSERT INTO worth.days VALUES ('2026-02-28', 1), ('2026-02-30', 2), ('2026-02-30', 3), ('2026-03-01', 4)"
    run(database, made, "SET sql_mode = 'ALLOW_INVALID_DATES'", rows)
    with Source(pipeline) as source:
        days = source.schema("worth", "days")
        assert days is not None
        read = rows_of(spark, source, days, ["k0 <= '2026-02-30'", "k0 > '2026-02-30'"])
        days_read = sorted((json.loads(row["key"])["d"][8:], json.loads(row["key"])["n"]) for row in read.collect())
    assert days_read == [("01", 4), ("28", 1), ("30", 2), ("30", 3)]


@pytest.mark.parametrize("setting", ["null", "string"])
def test_dates_that_are_merged_are_proven_whatever_the_lake_makes_of_them(
    spark: SparkSession, pipeline: Pipeline, schema: TableSchema, tmp_path: Path, setting: Unfit
) -> None:
    """From the server into the lake's table, whose checksum the server's own is."""
    section = pipeline.lake.model_copy(update={"unrepresentable": setting, "path": str(tmp_path)})
    lake = Lake(spark, pipeline.model_copy(update={"lake": section}))
    dates = tuple(column for column in schema.columns if column.type in ("int", "date", "datetime", "timestamp"))
    shown = shown_of(lake.pipeline, schema.model_copy(update={"columns": dates, "version": 1}))
    with Source(pipeline) as source:
        texts = rows_of(spark, source, shown.source, ["1 = 1"])
    told = texts.selectExpr(
        "'worth' as db", "'worth.t' as tbl", "key", "'c' as op", "after", "1 as schema", "timestamp'2026-01-01' as ts",
        "named_struct('epoch', 0L, 'file', 1L, 'pos', 1L, 'event', 0L, 'row', 0L) as _seq",
    )  # fmt: skip
    step = Merging(spark, lake, Schemas([shown.schema]), unwatched(lake))
    step._batch(told, 0, "q")
    assert step.stopped.tables == {}
    assert bool(step.nulled) == (setting == "null")
    table = spark.read.format("delta").load(lake.table("worth", "t"))
    with Source(pipeline) as asked:
        said = asked.row(source_sql(shown, pipeline.source.flavor))
    assert said is not None
    assert Total(int(said[0]), int(said[1])) == total(table, shown.schema)
    if setting == "string":
        name = next(column.name for column in dates if column.type == "date")
        assert "2024-00-10" in {row[0] for row in table.select(name).collect()}


PACKET = 1024 * 1024


@pytest.fixture
def small_packet(database: Database, pipeline: Pipeline) -> Iterator[None]:
    """The row, then a server that makes no text of its blob. Connections that are open keep their own limit."""
    with Source(pipeline) as asked:
        before = asked.value("SELECT @@GLOBAL.max_allowed_packet")
    run(database, "CREATE TABLE worth.big (id int primary key, v longblob)")
    run(database, f"INSERT INTO worth.big VALUES (1, repeat(x'fe', {PACKET - 100_000}))")
    run(database, f"SET GLOBAL max_allowed_packet = {PACKET}")
    yield
    run(database, f"SET GLOBAL max_allowed_packet = {before}")


@pytest.mark.usefixtures("schema", "small_packet")
def test_a_value_that_mysql_makes_no_text_of_is_never_taken_for_null(spark: SparkSession, pipeline: Pipeline) -> None:
    with Source(pipeline) as asked:
        big = asked.schema("worth", "big")
        assert big is not None
        said = asked.row(source_sql(Columns().show(big), pipeline.source.flavor))
    assert said is not None
    with pytest.raises(Exception, match="longer than the server's max_allowed_packet: raise"):
        rows_of(spark, asked, big, ["1 = 1"]).collect()
    with pytest.raises(Exception, match="longer than the server's max_allowed_packet: raise"):
        wires_of(spark, asked, big, ["1 = 1"]).collect()
    without = spark.createDataFrame([(1, None)], "id bigint, v binary")
    streamed = spark.createDataFrame([(1, bytearray(b"\xfe" * (PACKET - 100_000)))], "id bigint, v binary")
    assert total(without, big).sum != int(said[1])
    assert total(streamed, big).sum == int(said[1])
