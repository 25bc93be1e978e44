"""Which tables a statement names, and which words of it are none."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake

from contract import names
from contract.pipeline import Pipeline
from contract.status import LakeStatus, TableStatus
from readers.errors import LakeReadError
from readers.lake import query
from tests.readers.lake_by_hand import (
    PLACE,
    at,
    place,
    rows_of,
)


@pytest.fixture
def unread(pipeline: Pipeline) -> Pipeline:
    """Its lake has no rows of the tables `status` and `shop`, and a column `status` in `orders` and `lines`."""
    shape = {"id": pl.Int64, "status": pl.String, "_seq": PLACE, "_ts": pl.Datetime("us", "UTC")}
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    tables = dict(found.tables)
    for table in ("orders", "lines"):
        rows = [{"id": 1, "status": "x", "_seq": place(5), "_ts": at(5)}]
        write_deltalake(names.lake_table(pipeline, "shop", table), pl.DataFrame(rows, shape))
        tables[f"shop.{table}"] = TableStatus(db="shop", table=table, rows=1, changes=0, version=0)
    for table, why in (("status", None), ("shop", "it has no primary key")):
        tables[f"shop.{table}"] = TableStatus(db="shop", table=table, rows=0, changes=0, version=None, stopped=why)
    file.write_text(found.model_copy(update={"tables": tables}).model_dump_json())
    return pipeline


NOT_THERE = {
    "status": r"^the lake has no rows of shop\.status yet: run the DAG",
    "shop": r"^the lake has no rows of shop\.shop: it has no primary key$",
}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM shop.orders", "SELECT id FROM memory.shop.orders", 'SELECT id FROM "SHOP"."Orders"',
        "SELECT min(id) FROM orders GROUP BY status", "SELECT id FROM orders WHERE status = 'x'",
        "SELECT id FROM orders -- of the shop", "SELECT id AS shop FROM orders AS status /* status */",
        """SELECT id FROM orders WHERE status = '5"' OR id IN (SELECT id FROM lines WHERE status <> '6"')""",
        "WITH status AS (FROM orders) SELECT id FROM status",
        "WITH RECURSIVE status(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM status WHERE id < 1) FROM status",
        "WITH shop AS (FROM orders), lines AS (FROM shop) SELECT id FROM lines",
        "SELECT id FROM query_table('orders')", "SELECT id FROM query('SELECT id, status FROM orders')",
        "SELECT count(*) FROM (DESCRIBE orders) WHERE column_name = 'status'",
        "SELECT x FROM (PIVOT orders ON status USING count(*)); ", "SELECT id FROM 'orders'",
    ],
)  # fmt: skip
def test_only_what_stands_for_a_table_names_one(unread: Pipeline, sql: str) -> None:
    assert rows_of(unread, sql) == [(1,)]


def test_a_statement_may_be_long_and_deep(unread: Pipeline) -> None:
    for times in (200, 900):
        assert rows_of(unread, f"SELECT count(*) + {' + '.join(['0'] * times)} FROM orders") == [(1,)]
    assert len(rows_of(unread, " UNION ALL ".join(["SELECT id FROM orders"] * 300))) == 300


@pytest.mark.parametrize("sql", ["SHOW orders", "DESCRIBE orders", "SUMMARIZE shop.orders", "TABLE orders"])
def test_other_words_for_a_query_name_tables_too(unread: Pipeline, sql: str) -> None:
    assert {"status", 1} & {value for found in rows_of(unread, sql) for value in found}


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("FROM status", "status"), ("SELECT 1 FROM orders JOIN shop.Status ON true", "status"), ("FROM shop", "shop"),
        ("WITH status AS (FROM status) FROM status", "status"),
        ("FROM (WITH status AS (FROM orders) FROM status), status", "status"),
        ("SELECT (SELECT count(*) FROM shop.shop)", "shop"), ("FROM shop_history", "shop"),
        ("DESCRIBE status", "status"),
        ("FROM status_as_of('2026-11-22 10:30:00+00')", "status"), ("PIVOT status ON id USING count(*)", "status"),
    ],
)  # fmt: skip
def test_a_table_that_is_named_and_has_no_rows_yet_is_told(unread: Pipeline, sql: str, table: str) -> None:
    with pytest.raises(LakeReadError, match=NOT_THERE[table]):
        rows_of(unread, sql)


def test_a_column_of_a_lost_tables_name_does_not_ask_for_its_files(unread: Pipeline) -> None:
    file = Path(names.lake_root(unread), "_status.json")
    file.write_text(file.read_text().replace('"table":"lines"', '"table":"id"'))
    assert rows_of(unread, "SELECT id FROM orders") == [(1,)]


def test_a_table_of_another_database_is_not_read(unread: Pipeline) -> None:
    """Of two that have the same name the one whose database is told."""
    file = Path(names.lake_root(unread), "_status.json")
    file.write_text(file.read_text().replace('"db":"shop","table":"status"', '"db":"old","table":"orders"'))
    assert rows_of(unread, "SELECT id FROM shop.orders") == [(1,)]
    with pytest.raises(LakeReadError, match=r"^the lake has no rows of old\.orders yet"):
        rows_of(unread, "FROM old.orders")


@pytest.mark.parametrize(
    "sql",
    [
        "PIVOT orders ON status USING count(*)", "-- of\npivot orders ON status USING count(*) -- the shop",
        "FROM (PIVOT orders ON status USING count(*));", "WITH o AS (FROM orders) PIVOT o ON status USING count(*)",
        "PIVOT orders ON status IN ('x') USING count(*)",
    ],
)  # fmt: skip
def test_a_pivot_is_a_query(unread: Pipeline, sql: str) -> None:
    found = query(unread, sql)
    assert (found.columns, list(found.rows())) == (["id", "x"], [(1, 1)])


@pytest.mark.parametrize(
    "sql",
    [
        "COPY ({pivot}) TO '{file}'", "CREATE TABLE x AS {pivot}", "INSERT INTO orders {pivot}", "{pivot}; {pivot}",
        "WITH p AS ({pivot}) INSERT INTO orders FROM p", "FROM ({pivot}); COPY ({pivot}) TO '{file}'",
    ],
)  # fmt: skip
def test_what_writes_a_pivot_is_none(unread: Pipeline, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "written.csv"
    with pytest.raises(LakeReadError, match="one query is wanted, and nothing that writes"):
        query(unread, sql.format(pivot="PIVOT orders ON status USING count(*)", file=file))
    assert not file.exists()


@pytest.mark.parametrize("name", ["found", "names", "sql", "database", "pl"])
def test_a_name_that_the_lake_does_not_have_is_no_variable_of_the_program(pipeline: Pipeline, name: str) -> None:
    with pytest.raises(LakeReadError, match=rf"^the lake has no {name}\."):
        query(pipeline, f"SELECT * FROM {name}")
