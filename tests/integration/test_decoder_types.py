"""Every type's edge values: what the decoder makes of the binlog is, byte for byte, what the server says in a query.

The query is the snapshot's: `contract.types` gives the SQL of each column's wire value.
"""

from __future__ import annotations

import json

import pytest

from contract import types
from spark.source.source import Source
from stack.database import Database
from streamer.protocol.model import RowsBatch
from tests.integration.decoding import pipeline, recorded, run
from tests.integration.edge_values import CASES, cases, comparable, inserts, pieces, spelling


def test_every_edge_value_is_what_a_query_says(server: Database) -> None:
    """Pitfalls of values: TIME below zero, zero and partial dates, YEAR 0, BIGINT UNSIGNED, BIT, DECIMAL(65,30), FLOAT,
    empty SET, ENUM index 0, JSON, geometry, VECTOR, BINARY right padding (tests/integration/edge_values.py)."""
    kinds = cases(server)
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(kinds))
    settings = ("SET sql_mode = ''", "SET NAMES utf8mb4")
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    run(server, *settings, f"CREATE TABLE edges.edge (id int primary key, {columns}) ROW_FORMAT=DYNAMIC")
    with recorded(server) as found:
        run(server, *settings, *(insert.replace(*spelling(server)) for insert in inserts(kinds)))
    decoded = [row for item in found if isinstance(item, RowsBatch) for row in item.rows]
    with Source(pipeline(server)) as asked:
        schema = asked.schema("edges", "edge")
        assert schema is not None
        streamed = next(item.table.schema for item in found if isinstance(item, RowsBatch))
        assert [pair for pair in zip(schema.columns, streamed.columns, strict=True) if pair[0] != pair[1]] == []
        assert schema == streamed
        shown = asked.shown(schema)
        for column, spelled in zip(schema.columns, ("int", *kinds), strict=True):
            sql = shown.type_of(column.name, server.flavor).snapshot_sql(f"`{column.name}`")
            texts = asked.rows(f"SELECT {sql} FROM edges.edge ORDER BY id")
            said = [None if text is None else _text(text) for (text,) in texts]
            assert pieces(decoded, column) == [comparable(text, column) for text in said], spelled


OLD_TIMES = {kind: literals for kind, literals in CASES.items() if kind.startswith(("time", "datetime", "timestamp"))}


@pytest.mark.lacks("mysql", "it cannot write them any more")
@pytest.mark.lacks("mysql80", "it cannot write them any more")
def test_times_in_mariadbs_old_format(server: Database) -> None:
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(OLD_TIMES))
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges", "SET GLOBAL mysql56_temporal_format = OFF")
    try:
        run(server, "SET sql_mode = ''", f"CREATE TABLE edges.edge (id int primary key, {columns})")
    finally:
        run(server, "SET GLOBAL mysql56_temporal_format = ON")
    agree(server, OLD_TIMES)


BYTES = {
    "enum('a','b') character set binary": ("'a'", "'b'", "0"),
    "set('a','b') character set binary": ("'a,b'", "''"),
}


def test_enum_and_set_of_bytes(server: Database) -> None:
    """As far as their members are text; others are refused (test_decoder_stops)."""
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(BYTES))
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges", "SET sql_mode = ''",
        f"CREATE TABLE edges.edge (id int primary key, {columns})")  # fmt: skip
    agree(server, BYTES)


def test_a_large_json_object(server: Database) -> None:
    """Of more than 64 KiB: places of four bytes, of its keys and of its values, also of an object inside another."""
    members = ", ".join(f"'{n:04}{'key' * 10}', {n if n % 2 else repr('value' * 5)}" for n in range(2_500))
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    run(server, "CREATE TABLE edges.edge (id int primary key, doc json)")
    small = "json_object('a', 65536, 'b', json_array(1, 'x'))"
    agree(server, {"json": (f"json_object({members})", f"json_object('in', json_object({members}), 'small', {small})")})


@pytest.mark.lacks("mysql80", "VECTOR came with 9.0")
@pytest.mark.lacks("mariadb", "VECTOR came with 11.7")
def test_a_vector_has_any_name(server: Database) -> None:
    """Also one that the query by which its elements are asked for might use itself."""
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    kinds = {f"vector({n})": (f"to_vector('[{', '.join(['0.1', *[str(n)] * (n - 1)])}]')",) for n in range(1, 6)}
    columns = ", ".join(f"{name} {kind}" for name, kind in zip("iunfx", kinds, strict=True))
    run(server, f"CREATE TABLE edges.edge (id int primary key, {columns})")
    agree(server, kinds)


@pytest.mark.lacks("mysql80", "it takes no NULL there")
@pytest.mark.lacks("mysql", "it takes no NULL there")
def test_a_geometry_of_no_bytes_at_all(server: Database) -> None:
    """What INSERT IGNORE makes of NULL in a column that has none: no NULL, by either way."""
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    with recorded(server) as found:
        run(server, "CREATE TABLE edges.edge (id int primary key, g geometry not null)",
            "INSERT IGNORE INTO edges.edge VALUES (1, NULL)")  # fmt: skip
    [row] = [row for item in found if isinstance(item, RowsBatch) for row in item.rows]
    with Source(pipeline(server)) as asked:
        schema = asked.schema("edges", "edge")
        assert schema is not None
        [column] = [one for one in schema.columns if one.name == "g"]
        kind = types.of(column, server.flavor)
        assert kind.checksum_sql
        texts = f"{kind.snapshot_sql('g')}, {kind.checksum_sql('g')}, {kind.missing_sql('g')}"
        [(value, checked, missing)] = asked.rows(f"SELECT {texts} FROM edges.edge")
    assert json.loads(row)["g"] == json.loads(_text(value)) == {"wkb": "", "srid": 0}
    assert checked is not None
    assert not missing


def agree(server: Database, kinds: dict[str, tuple[str, ...]]) -> None:
    """Stream and query on edge values of the empty table edges.edge, which has these columns."""
    with recorded(server) as found:
        run(server, "SET sql_mode = ''", *inserts(kinds))
    decoded = [row for item in found if isinstance(item, RowsBatch) for row in item.rows]
    with Source(pipeline(server)) as asked:
        schema = asked.schema("edges", "edge")
        assert schema is not None
        assert schema == next(item.table.schema for item in found if isinstance(item, RowsBatch))
        for column in schema.columns:
            sql = types.of(column, server.flavor).snapshot_sql(f"`{column.name}`")
            texts = asked.rows(f"SELECT {sql} FROM edges.edge ORDER BY id")
            said = [None if text is None else comparable(_text(text), column) for (text,) in texts]
            assert pieces(decoded, column) == said, column


def test_invisible_and_generated_columns_are_columns(server: Database) -> None:
    """Pitfall "invisible columns, generated columns"."""
    stored, virtual = "int as (a + 1) stored", "varchar(20) as (concat('v', a)) virtual"
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    invisible = "" if server.name == "mysql80" else "invisible"  # came with 8.0.23
    table = f"CREATE TABLE edges.odd (id int primary key, h int default 7 {invisible}, a int, s {stored}, v {virtual})"
    with recorded(server) as found:
        run(server, table, "INSERT INTO edges.odd (id, a) VALUES (1, 5), (2, NULL)", "UPDATE edges.odd SET a = 6")
    given = [json.loads(row) for item in found if isinstance(item, RowsBatch) for row in item.rows]
    one, two = {"id": 1, "h": 7, "a": 5, "s": 6, "v": "v5"}, {"id": 2, "h": 7, "a": None, "s": None, "v": None}
    six = {"a": 6, "s": 7, "v": "v6"}
    assert given == [one, two, one, one | six, two, two | six]


@pytest.mark.lacks("mysql80", "it came with 8.0.30")
@pytest.mark.lacks("mariadb", "it has none")
def test_a_generated_invisible_primary_key_is_the_key(server: Database) -> None:
    """Pitfall "generated invisible primary keys"."""
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges")
    with recorded(server) as found:
        run(server, "SET sql_generate_invisible_primary_key = ON", "CREATE TABLE edges.keyless (a int)",
            "INSERT INTO edges.keyless VALUES (5), (5)", "DELETE FROM edges.keyless LIMIT 1")  # fmt: skip
    batches = [item for item in found if isinstance(item, RowsBatch)]
    assert [(item.op, item.keys) for item in batches] == [
        ("c", [b'{"my_row_id":1}', b'{"my_row_id":2}']), ("d", [b'{"my_row_id":1}']),
    ]  # fmt: skip
    assert batches[0].rows == [b'{"my_row_id":1,"a":5}', b'{"my_row_id":2,"a":5}']


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
