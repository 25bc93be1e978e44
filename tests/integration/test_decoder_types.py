"""Every type's edge values: what the decoder makes of the binlog is, byte for byte, what MySQL says in a query.

The query is the snapshot's: `contract.types` gives the SQL of each column's wire value.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import pytest

from contract import types
from contract.pipeline import Pipeline
from contract.schema import Column
from spark.source import Source
from stack.database import USER, Database
from streamer.errors import UnsupportedTypeError
from streamer.protocol.model import Item, RowsBatch
from tests.integration.decoding import HOST, executed, items, recorded, run

MIN_TIMES = ("'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'24:00:00'", "'12:34:56'")
COLORS = ["blue", "it''s", "größe", "", 'quo"te', "back\\\\slash"]
MEMBERS = [f"m{n}" for n in range(64)]

# Column type, and the literals that are stored; NULL is stored besides.
CASES: dict[str, Sequence[str]] = {
    "tinyint": ("-128", "127", "0", "-1"),
    "tinyint unsigned": ("0", "255", "128"),
    "smallint": ("-32768", "32767", "0"),
    "smallint unsigned": ("0", "65535"),
    "mediumint": ("-8388608", "8388607", "-1", "0", "65536", "-65537"),
    "mediumint unsigned": ("0", "16777215", "8388608"),
    "int": ("-2147483648", "2147483647", "0"),
    "int unsigned": ("0", "4294967295"),
    "int(8) unsigned zerofill": ("0", "42", "4294967295"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0", "9007199254740993"),
    "bigint unsigned": ("0", "18446744073709551615", "9223372036854775808"),
    "bool": ("0", "1"),
    "year": ("0", "1901", "2155", "2026"),
    "decimal(1,0)": ("0", "9", "-9"),
    "decimal(5,2)": ("0", "-999.99", "999.99", "0.01", "-0.01", "-1"),
    "decimal(9,9)": ("0.123456789", "-0.000000001"),
    "decimal(10,0)": ("-9999999999", "1", "0"),
    "decimal(18,9)": ("123456789.987654321", "-123456789.000000001"),
    "decimal(20,1)": ("1234567890123456789.5", "-0.1", "100000000000000000.0"),
    "decimal(38,10)": ("-1234567890123456789012345678.0123456789",),
    "decimal(65,30)": (
        "99999999999999999999999999999999999.999999999999999999999999999999",
        "-99999999999999999999999999999999999.999999999999999999999999999999",
        "0.000000000000000000000000000001",
        "-10",
    ),
    "decimal(65,0)": ("9" * 65, "-1", "-" + "1" + "0" * 64),
    "decimal(12,2) unsigned zerofill": ("0", "7.5", "9999999999.99"),
    "float": ("0", "0.1", "-0.1", "3.4028235e38", "1.17549435e-38", "16777217", "1e-45", "123456.789", "1e10", "-0e0"),
    "float unsigned": ("0", "1.5"),
    "double": (
        "0",
        "0.1",
        "-0.1",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "123456789012345680000",
        "-0e0",
    ),
    "bit(1)": ("b'0'", "b'1'"),
    "bit(7)": ("b'0'", "b'1010101'"),
    "bit(9)": ("b'100000001'",),
    "bit(64)": ("b'1'", "18446744073709551615", "0"),
    "date": ("'0000-00-00'", "'2024-00-10'", "'2024-02-00'", "'1000-01-01'", "'9999-12-31'", "'0001-01-01'"),
    "time": MIN_TIMES,
    **{
        f"time({n})": (*MIN_TIMES, f"'-838:59:58.{'9' * n}'", f"'00:00:00.{'0' * (n - 1)}1'", f"'-00:00:00.{'5' * n}'")
        for n in range(1, 7)
    },
    "datetime": ("'0000-00-00 00:00:00'", "'2024-00-00 23:59:59'", "'9999-12-31 23:59:59'", "'1000-01-01 00:00:00'"),
    **{
        f"datetime({n})": (
            f"'2026-07-31 16:00:00.{'1' * n}'",
            f"'9999-12-31 23:59:59.{'9' * n}'",
            "'0000-00-00 00:00:00'",
        )
        for n in range(1, 7)
    },
    "timestamp null": ("'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"),
    **{
        f"timestamp({n}) null": (f"'2026-03-29 01:30:00.{'7' * n}'", "'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'")
        for n in range(1, 7)
    },
    "char(10)": ("''", "'abc'", "'   lead'", "'äöü€😀'"),
    "char(255)": ("repeat('ü', 255)", "'x'"),
    "varchar(20)": ("''", "'trail   '", "'tab\\tnl\\nquote\"back\\\\nul\\0x\\Z'", "'😀'", "'100%'", "char(127)"),
    "varchar(300)": ("repeat('€', 300)", "'short'"),
    "tinytext": ("'tiny'", "''"),
    "text": ("repeat('ab\"', 1000)",),
    "mediumtext": ("repeat('x', 70000)", "''"),
    "longtext": ("'long'",),
    "binary(5)": ("''", "'ab'", "x'0000'", "x'ff00ff0000'", "x'2020'"),
    "binary(255)": ("repeat('q', 255)", "''"),
    "varbinary(300)": ("x'00ff'", "''", "repeat(x'00', 300)"),
    "tinyblob": ("x'00'", "''"),
    "blob": ("repeat(x'fe', 1000)",),
    "mediumblob": ("repeat('a', 57)", "repeat('a', 58)"),
    "longblob": ("x'0d0a'",),
    "enum('{}')".format("','".join(COLORS)): tuple(f"'{color}'" for color in COLORS),
    "enum({})".format(",".join(f"'e{n}'" for n in range(300))): ("'e0'", "'e255'", "'e299'", "0"),
    "set('a','b','c')": ("''", "'a'", "'a,c'", "'c,b,a'"),
    "set({})".format(",".join(f"'{m}'" for m in MEMBERS[:20])): ("'m0,m19'", "''"),
    "set({})".format(",".join(f"'{m}'" for m in MEMBERS)): ("'m0,m63'", "''", "'{}'".format(",".join(MEMBERS))),
    "json": (
        "'null'",
        "'true'",
        "'[]'",
        "'{}'",
        "'\"\"'",
        "'-1'",
        "'18446744073709551615'",
        "'-9223372036854775808'",
        "'1.5'",
        "'1e0'",
        "'1e100'",
        "'-0.0'",
        "'0.1'",
        "'123456789012345680000'",
        "'1e-7'",
        "'1.0'",
        '\'{"bb": 1, "a": [1, 2, {"c": null}], "ccc": "x\\\\u0000\\\\"\\\\\\\\ü😀"}\'',
        "'[32767, 32768, 65535, 65536, -32769]'",
        "json_array(cast(1.50 as decimal(10,2)), date'2024-02-29', time'-01:02:03.5', timestamp'2024-01-01 00:00:00')",
        "json_array(cast('-838:59:59.000001' as time(6)), cast(-0.05 as decimal(30,20)), cast(x'00ff' as binary))",
        "json_array(repeat('x', 127), repeat('y', 128), repeat('z', 70000))",
        "json_array(cast(repeat('b', 57) as binary), cast(repeat('b', 58) as binary), b'101', cast(2020 as year))",
        "json_object('k', json_array(json_object('deep', json_array())))",
        "json_array(-2147483649, 4294967296, 2147483648)",
    ),
}
CHARSETS = {
    "latin1": ("'é€'", "x'81'", "x'8d9d'"),
    "utf8mb3": ("'é€'",),
    "ascii": ("'abc'",),
    "latin2": ("'łŁ'",),
    "ucs2": ("'é€漢'",),
    "utf16": ("'é€😀'",),
    "utf16le": ("'é😀'",),
    "utf32": ("'é😀'",),
    "gb18030": ("'漢字€😀'",),
    "gbk": ("'汉字'",),
    "gb2312": ("'汉字'",),
    "big5": ("'漢字'",),
    "sjis": ("'漢字カﾅ'", "x'815f'"),
    "cp932": ("'漢字～'", "x'8740'"),
    "ujis": ("'漢字'", "x'8fb0a1'", "x'8eb1'"),
    "eucjpms": ("'漢字～'",),
    "euckr": ("'한글똠'",),
    "cp1250": ("'řž€'",),
    "cp1251": ("'Привет'",),
    "cp1256": ("'سلام'",),
    "cp1257": ("'ąž'",),
    "koi8r": ("'Привет'",),
    "koi8u": ("'Їжак'", "x'95'"),
    "cp850": ("'éß'",),
    "cp852": ("'łž'",),
    "cp866": ("'Привет'", "x'fcfd'"),
    "greek": ("'αβγ'", "x'a1a2'"),
    "hebrew": ("'שלום'", "x'af'"),
    "latin5": ("'ığş'",),
    "latin7": ("'ąč'",),
    "tis620": ("'ไทย'",),
    "macce": ("'ěř'",),
    "macroman": ("'éü'",),
    "dec8": ("'éŒ'",),
    "hp8": ("'é'",),
    "swe7": ("'åÄö'",),
    "armscii8": ("'Աբ'",),
    "keybcs2": ("'ěř'",),
    "geostd8": ("'აბ'",),
}
CASES |= {
    f"{kind} character set {name}": values
    for name, values in CHARSETS.items()
    for kind in ("varchar(20)", "char(20)", "text")
}
CASES |= {
    "enum('é','ü') character set latin1": ("'é'", "'ü'"),
    "set('é','ü') character set gbk": ("'é,ü'", "''"),
    "varchar(20) character set utf8mb4 collate utf8mb4_bin": ("'x'",),
    "varchar(20) character set latin1 collate latin1_german1_ci": ("'x'",),
}


@pytest.fixture
def pipeline(server: Database) -> Pipeline:
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "edges",
            "source": {"host": HOST, "port": server.port, "user": USER, "password": server.password, "server_id": 4712},
            "tables": {"include": ["edges.*"]},
            "kafka": {"bootstrap": "localhost:9092"},
            "lake": {"path": "lake"},
        }
    )


@pytest.mark.lacks("mariadb", "the snapshot's SQL is MySQL's; its values are compared in test_decoder_mariadb.py")
def test_every_edge_value_is_what_a_query_says(server: Database, pipeline: Pipeline) -> None:
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(CASES))
    zero_dates = "SET sql_mode = ''"
    run(server, "DROP DATABASE IF EXISTS edges", "CREATE DATABASE edges", zero_dates)
    run(server, zero_dates, f"CREATE TABLE edges.edge (id int primary key, {columns}) ROW_FORMAT=DYNAMIC")
    with recorded(server) as found:
        run(server, zero_dates, "SET NAMES utf8mb4", *(insert.replace(*_spelling(server)) for insert in _inserts()))
    decoded = [row for item in found if isinstance(item, RowsBatch) for row in item.rows]
    with Source(pipeline) as asked:
        schema = asked.schema("edges", "edge")
        assert schema is not None
        streamed = next(item.table.schema for item in found if isinstance(item, RowsBatch))
        assert [pair for pair in zip(schema.columns, streamed.columns, strict=True) if pair[0] != pair[1]] == []
        assert schema == streamed
        for column, spelled in zip(schema.columns, ("int", *CASES), strict=True):
            sql = types.of(column).snapshot_sql(f"`{column.name}`")
            texts = asked.rows(f"SELECT {sql} FROM edges.edge ORDER BY id")
            said = [None if text is None else _text(text) for (text,) in texts]
            assert _pieces(decoded, column) == [_piece(text, column) for text in said], spelled


NEWER = [pytest.mark.lacks("mysql80", "VECTOR came with 9.0"), pytest.mark.lacks("mariadb", "VECTOR came with 11.7")]


@pytest.mark.parametrize(("kind", "named"), [("point", "geometry"), pytest.param("vector(3)", "vector", marks=NEWER)])
def test_a_type_without_exact_wire_value_stops_by_name(server: Database, kind: str, named: str) -> None:
    value = "point(1, 2)" if kind == "point" else "to_vector('[1,2,3]')"
    table = ["CREATE DATABASE IF NOT EXISTS edges", "DROP TABLE IF EXISTS edges.odd, edges.plain"]
    table += ["CREATE TABLE edges.plain (id int primary key)"]
    begin = executed(server)
    run(server, *table, f"CREATE TABLE edges.odd (id int primary key, c {kind})", "INSERT INTO edges.plain VALUES (1)")
    run(server, f"INSERT INTO edges.odd VALUES (1, {value})", "INSERT INTO edges.plain VALUES (2)")
    given: list[Item] = []
    with pytest.raises(UnsupportedTypeError, match=named) as error:
        given.extend(items(server, begin, executed(server)))  # keeps what came before the error
    assert "column c of edges.odd" in str(error.value)
    rows = [row for item in given if isinstance(item, RowsBatch) for row in item.rows]
    assert rows == [b'{"id":1}']
    chosen = items(server, begin, executed(server), wanted=lambda db, name: name == "plain")
    assert [row for item in chosen if isinstance(item, RowsBatch) for row in item.rows] == [b'{"id":1}', b'{"id":2}']


def _spelling(server: Database) -> tuple[str, str]:
    """What this server has no words for, and what stands in its place."""
    return ("cast(2020 as year)", "2020") if server.name == "mysql80" else ("", "")


def _inserts() -> list[str]:
    """One row per place in the longest list of values: a column repeats its own."""
    most = max(map(len, CASES.values()))
    rows = [", ".join(values[n % len(values)] for values in CASES.values()) for n in range(most)]
    nulls = ", ".join(["NULL"] * len(CASES))
    return [f"INSERT INTO edges.edge VALUES ({n}, {row})" for n, row in enumerate([*rows, nulls])]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _pieces(rows: Sequence[bytes], column: Column) -> list[object]:
    """The column's own JSON text in each row."""
    found: list[object] = []
    for row in rows:
        text = row.decode()
        start = text.index(f'"{column.name}":') + len(column.name) + 3
        value, end = json.JSONDecoder().raw_decode(text, start)
        found.append(_piece(None if value is None else text[start:end], column))
    return found


def _piece(text: str | None, column: Column) -> object:
    """Floats are the same number, all else the same text."""
    if text is None or column.type not in ("float", "double"):
        return text
    return struct.pack("<f" if column.type == "float" else "<d", float(text))
