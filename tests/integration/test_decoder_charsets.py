"""Charsets per column: every collation that a server has, and every code of every character set, as it converts it."""

from __future__ import annotations

import json
from typing import Any

import pymysql
import pytest

from contract import types
from contract.schema import Column
from stack.database import Database
from streamer.errors import UnsupportedTypeError
from streamer.protocol.charsets import BY_COLLATION
from streamer.protocol.model import Item, RowsBatch
from tests.integration.decoding import executed, items, recorded, run

UNICODE = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32", "gb18030")
WIDE = ("big5", "gb2312", "gbk", "euckr", "sjis", "cp932", "ujis", "eucjpms")
BEYOND = ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")  # hold characters beyond 65,535
PLANES = {2000: "0000", 3000: "0001", 4000: "000F"}  # the first digits of characters' numbers
OLD = {"utf8": "utf8mb3"}  # as servers called it
# With a strict mode MySQL refuses to try what is no text.
SESSION = ["SET sql_mode = ''", "SET SESSION group_concat_max_len = 100000000", "USE codes"]
DIGITS = " UNION ALL ".join(f"SELECT {n} AS b" for n in range(16))


def ask(server: Database, sql: str) -> list[tuple[Any, ...]]:
    with server.connect(database="codes") as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


@pytest.fixture(autouse=True)
def codes(server: Database) -> None:
    """Every byte and its two digits."""
    run(server, "DROP DATABASE IF EXISTS codes", "CREATE DATABASE codes", "USE codes",
        "CREATE TABLE bytes (b int PRIMARY KEY, h char(2) NOT NULL)",
        f"INSERT INTO bytes SELECT 16 * x.b + y.b, lpad(hex(16 * x.b + y.b), 2, '0') FROM ({DIGITS}) x, ({DIGITS}) y",
    )  # fmt: skip


def test_every_collation_of_the_server_is_known(server: Database) -> None:
    """Pitfall "Charsets per column": by the collation of the TABLE_MAP's metadata."""
    sql = "SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL"
    if server.flavor == "mariadb":
        sql = "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability"
    found = ask(server, sql)
    assert len(found) > 200
    wrong = [(n, name) for n, name in found if n not in BY_COLLATION or BY_COLLATION[n].name != OLD.get(name, name)]
    assert wrong == []


def test_every_code_of_every_charset_is_what_a_query_says(server: Database) -> None:
    """Of ascii, which servers hold to more or less: the test behind this one."""
    names = [str(row[0]) for row in ask(server, "SHOW CHARACTER SET") if row[0] not in ("binary", "ascii")]
    assert len(names) > 35
    with recorded(server) as found:
        for name in names:
            run(server, *SESSION, f"CREATE TABLE {name} (id int PRIMARY KEY, c longtext CHARACTER SET {name})",
                *(f"INSERT INTO {name} {texts}" for texts in _texts(name)))  # fmt: skip
    decoded: dict[str, dict[int, str]] = {name: {} for name in names}
    for item in found:
        if isinstance(item, RowsBatch):
            decoded[item.table.table] |= {row["id"]: row["c"] for row in map(json.loads, item.rows)}
    for name in names:
        column = Column(name="c", type="longtext", charset=OLD.get(name, name))
        quoted = types.of(column, server.flavor).snapshot_sql("c")
        said = {at: json.loads(text) for at, text in ask(server, f"SELECT id, {quoted} FROM {name}")}
        assert sum(map(len, said.values())) > 120, name
        assert {at: text for at, text in said.items() if decoded[name][at] != text} == {}, name


def _texts(name: str) -> list[str]:
    """Queries of texts, each with a number: of the one byte codes, of those that begin with a byte, and for Unicode
    some of the characters of each 256."""
    one, two = _converted("h", name), _converted("concat(x.h, y.h)", name)
    found = [f"SELECT 1000, group_concat({one} ORDER BY h SEPARATOR '') FROM bytes WHERE hex({one}) = h AND b > 0 "
             "HAVING max(b) > 0"]  # fmt: skip
    if OLD.get(name, name) in UNICODE:
        for at, plane in list(PLANES.items())[: 3 if name in BEYOND else 1]:
            number = f"concat('{plane}', x.h, y.h)"
            char = f"convert({_converted(number, 'utf32')} USING {name})"
            found.append(_listed(at, char, "(y.b + x.b) % 7 = 0 AND x.b NOT BETWEEN 216 AND 223"))
        return found
    if name not in WIDE:
        return found
    alone = f"hex({_converted('x.h', name)}) = x.h"
    found.append(_listed(0, two, f"x.b > 127 AND y.b > 47 AND hex({two}) = concat(x.h, y.h) AND NOT {alone}"))
    if name in ("ujis", "eucjpms"):
        three = _converted("concat('8F', x.h, y.h)", name)
        found.append(_listed(5000, three, f"x.b > 127 AND y.b > 127 AND hex({three}) = concat('8F', x.h, y.h)"))
    return found


def _converted(digits: str, name: str) -> str:
    return f"convert(unhex({digits}) USING {name})"


def _listed(at: int, char: str, condition: str) -> str:
    texts = f"group_concat({char} ORDER BY y.b SEPARATOR '')"
    return f"SELECT {at} + x.b, {texts} FROM bytes x, bytes y WHERE {condition} GROUP BY x.b"


def test_bytes_beyond_ascii_in_its_columns_are_what_a_snapshot_says(server: Database) -> None:
    """MySQL 8.0 and MariaDB take them from a binary string, and tables keep them through upgrades."""
    every = bytes(range(1, 128)).hex()
    with recorded(server) as found:
        run(server, *SESSION, "CREATE TABLE old (id int PRIMARY KEY, c varchar(200) CHARACTER SET ascii, "
            "d text CHARACTER SET ascii)")  # fmt: skip
        for n, code in enumerate((every, "41E942", "EDA080", "C3A9", "22E9")):
            run(server, *SESSION, f"INSERT INTO old VALUES ({n}, _binary x'{code}', _binary x'{code}')")
    decoded = {row["id"]: [row["c"], row["d"]] for item in found if isinstance(item, RowsBatch)
               for row in map(json.loads, item.rows)}  # fmt: skip
    sql = [types.of(Column(name=name, type=kind, charset="ascii"), server.flavor).snapshot_sql(name)
           for name, kind in (("c", "varchar"), ("d", "text"))]  # fmt: skip
    said = {at: [json.loads(c), json.loads(d)] for at, c, d in ask(server, f"SELECT id, {', '.join(sql)} FROM old")}
    assert decoded == said
    assert said[0] == [bytes(range(1, 128)).decode()] * 2
    if server.name != "mysql":  # which cuts them off
        assert [said[n][0] for n in range(1, 5)] == ["A?B", "???", "??", '"?']


@pytest.mark.parametrize("code", ["D800", "0041D83D0042", "D83DDE00"])
def test_half_a_character_of_ucs2_stops_with_its_column(server: Database, code: str) -> None:
    given: list[Item] = []
    begin = executed(server)
    run(server, *SESSION, "CREATE TABLE half (id int PRIMARY KEY, c varchar(9) CHARACTER SET ucs2)",
        "INSERT INTO half VALUES (1, 'a')", f"INSERT INTO half VALUES (2, _ucs2 x'{code}')")  # fmt: skip
    with pytest.raises(UnsupportedTypeError, match=r"column c of the character set ucs2.*surrogate"):
        given.extend(items(server, begin, executed(server)))
    assert [json.loads(row) for one in given if isinstance(one, RowsBatch) for row in one.rows] == [{"id": 1, "c": "a"}]


@pytest.mark.parametrize("charset", ["utf8mb3", "utf8mb4"])
@pytest.mark.parametrize("code", ["EDA080", "61EDBFBF62", "EDA0BDEDB880"])
def test_half_a_character_of_utf8_is_in_no_record(server: Database, charset: str, code: str) -> None:
    """MySQL refuses it; MariaDB keeps it, and no reader of JSON takes it for a text."""
    given: list[Item] = []
    begin = executed(server)
    run(server, *SESSION, f"CREATE TABLE half (id int PRIMARY KEY, c varchar(9) CHARACTER SET {charset})",
        "INSERT INTO half VALUES (1, '퟿힣')")  # fmt: skip
    try:
        run(server, *SESSION, f"INSERT INTO half VALUES (2, _{charset} x'{code}')")
    except pymysql.MySQLError:
        assert server.flavor == "mysql"
    if server.flavor == "mysql":
        given.extend(items(server, begin, executed(server)))
    else:
        with pytest.raises(UnsupportedTypeError, match=r"a column of the character set utf8mb3 or utf8mb4.*surrogate"):
            given.extend(items(server, begin, executed(server)))
    rows = [json.loads(row) for one in given if isinstance(one, RowsBatch) for row in one.rows]
    assert rows[0] == {"id": 1, "c": "퟿힣"}, "what begins with the same byte is text"
