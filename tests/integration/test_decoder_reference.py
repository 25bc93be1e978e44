"""The decoder and mysql-replication read the same binlog of a mixed workload, and agree event by event.

Known defects of the reference (1.0.17), kept out of the workload or evened out below: an empty VARBINARY comes as text,
an empty SET as None; a TIME with a fraction is wrong below zero, also inside JSON; a primary key's columns come in the
table's order; a table without one has the key ""; GTIDs with tags, and sets of them, are not read; a compressed
transaction is skipped in silence; zero and partial dates become None.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from contract.gtid import GtidSet
from contract.schema import Column
from stack.database import USER, Database
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from tests.integration.decoding import HOST, executed, items, run

TABLES = (
    "CREATE TABLE orders (id bigint unsigned primary key auto_increment, customer int not null, qty smallint, "
    "amount decimal(12,2), status enum('new','paid','sent'), tags set('a','b','c'), note varchar(500), ratio double, "
    "weight float, created datetime(6), day date, flag bit(5), doc json, raw varbinary(20), year year)",
    "CREATE TABLE items (order_id bigint, line mediumint, text mediumtext character set latin1, t time(3), "
    "primary key (line, order_id))",
    "CREATE TABLE loose (a int, b char(5))",
)

COPY = "CREATE TABLE copied (primary key (id)) AS SELECT * FROM orders"


def _workload(rng: random.Random, copy: str) -> Iterator[str]:
    """Statements, COMMITs and ROLLBACKs of one session. `copy` makes the table `copied` from `orders`."""
    for n in range(300):
        match rng.randrange(10):
            case 0 | 1 | 2:
                yield f"INSERT INTO orders VALUES {', '.join(_order(rng) for _ in range(rng.randrange(1, 40)))}"
            case 3:
                yield f"UPDATE orders SET qty = {rng.randrange(99)}, note = NULL WHERE id % 7 = {rng.randrange(7)}"
            case 4:
                yield f"DELETE FROM orders WHERE id % 31 = {rng.randrange(31)}"
            case 5:
                yield f"REPLACE INTO items VALUES ({n}, {rng.randrange(-9, 9)}, 'é {n}', '112:00:00.{n:03}')"
            case 6:
                yield "UPDATE orders, items SET qty = 5, text = 'both' WHERE orders.id = items.order_id"
            case 7:
                yield f"INSERT INTO loose (a, b) VALUES ({n}, 'x'), (NULL, NULL)"
            case 8:
                yield "SAVEPOINT s"
                yield f"UPDATE items SET line = line + 100 WHERE order_id = {n - 1} AND line < 50"
                yield rng.choice(["ROLLBACK TO s", "RELEASE SAVEPOINT s"])
            case 9:
                yield rng.choice(["COMMIT", "COMMIT", "ROLLBACK", f"ALTER TABLE loose ADD COLUMN c{n} int DEFAULT {n}"])
    yield "COMMIT"
    yield copy
    yield "TRUNCATE TABLE loose"
    yield "INSERT INTO copied (id, customer) VALUES (9000000, 1)"
    yield "COMMIT"


def _order(rng: random.Random) -> str:
    def maybe(text: str) -> str:
        return "NULL" if rng.random() < 0.2 else text

    values = [
        "NULL",
        str(rng.randrange(-(2**31), 2**31)),
        maybe(str(rng.randrange(-300, 300))),
        maybe(str(rng.randrange(-(10**6), 10**6) / 100)),
        maybe(rng.choice(["'new'", "'paid'", "'sent'"])),
        maybe(rng.choice(["''", "'a'", "'a,c'", "'b,c'"])),
        maybe("'" + rng.choice(["plain", 'qu\\"ote', "ü€😀", "", "x" * 300]) + "'"),
        maybe(repr(rng.uniform(-1e9, 1e9))),
        maybe(str(rng.randrange(1000) / 8)),
        maybe(f"'20{rng.randrange(10, 38)}-0{rng.randrange(1, 10)}-11 10:20:30.{rng.randrange(10**6):06}'"),
        maybe(f"'1{rng.randrange(100, 999)}-12-31'"),
        maybe(str(rng.randrange(32))),
        maybe(rng.choice(["'{\"a\": [1, 2.5, null, true]}'", "'[]'", "'\"text\"'"])),
        maybe(rng.choice(["x'00ff'", "''"])),
        maybe(str(rng.randrange(1901, 2155))),
    ]
    return f"({', '.join(values)})"


@pytest.mark.lacks("mariadb", "the reference is asked by file and position, and for MySQL's GTID events")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pymysqlreplication")
def test_agrees_with_the_reference_on_a_mixed_workload(server: Database) -> None:
    run(server, "DROP DATABASE IF EXISTS mixed", "CREATE DATABASE mixed")
    begin, place = executed(server), _place(server)
    copy = "CREATE TABLE copied LIKE orders" if server.name == "mysql80" else COPY
    run(server, *TABLES, *_workload(random.Random(20), copy), database="mixed", autocommit=False)
    end = executed(server)
    ours = list(_ours(items(server, begin, end)))
    reference = list(_reference(server, place, end))
    assert len(ours) > 500
    for number, (one, other) in enumerate(zip(ours, reference, strict=False)):
        assert one == other, number
    assert len(ours) == len(reference)


def _ours(found: Iterator[Item]) -> Iterator[tuple[Any, ...]]:
    for item in found:
        if isinstance(item, RowsBatch):
            for row in item.rows:
                image = {
                    c.name: _comparable(v, c) for c, v in zip(item.table.columns, json.loads(row).values(), strict=True)
                }
                yield item.gtid, item.op, item.table.table, sorted(item.table.key), image
        elif isinstance(item, Ddl):
            yield item.gtid, "ddl", item.statement
        elif isinstance(item, Commit) and item.xid is not None:
            yield item.gtid, "xid", item.xid


def _place(server: Database) -> tuple[str, int]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")  # the one name for this that every server has
        file, pos, *_ = cursor.fetchall()[-1]
    return file, pos


def _reference(server: Database, place: tuple[str, int], end: GtidSet) -> Iterator[tuple[Any, ...]]:
    reader = BinLogStreamReader(
        {"host": HOST, "port": server.port, "user": USER, "passwd": server.password},
        server_id=4713,
        log_file=place[0],  # it does not read GTID sets with tags, which another test may have left
        log_pos=place[1],
        resume_stream=True,
        blocking=False,
        enable_logging=False,
        only_events=[GtidEvent, QueryEvent, XidEvent, DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
    )
    gtid = ""
    try:
        for event in reader:
            if isinstance(event, GtidEvent):
                gtid = event.gtid
                if not end.contains(gtid):
                    return
            elif isinstance(event, QueryEvent):
                if event.query != "BEGIN" and not event.query.startswith(("SAVEPOINT", "ROLLBACK")):
                    yield gtid, "ddl", event.query
            elif isinstance(event, XidEvent):
                yield gtid, "xid", event.xid
            else:
                yield from _reference_rows(gtid, event)
    finally:
        reader.close()


def _reference_rows(gtid: str, event: Any) -> Iterator[tuple[Any, ...]]:
    op = {WriteRowsEvent: "c", UpdateRowsEvent: "u", DeleteRowsEvent: "d"}[type(event)]
    key = event.primary_key
    for row in event.rows:
        images = [row["before_values"], row["after_values"]] if op == "u" else [row["values"]]
        for image in images:
            yield gtid, op, event.table, _names(key), _values(image)


def _values(image: dict[str, Any]) -> dict[str, Any]:
    values = {name: _text(value) if name == "doc" else _reference_value(value) for name, value in image.items()}
    return values | ({"raw": b""} if values.get("raw") == "" else {})


def _names(key: Any) -> list[str]:
    return sorted([key] if isinstance(key, str) else key) if key else []


def _reference_value(value: Any) -> Any:
    """The reference's Python value as our wire value."""
    match value:
        case decimal.Decimal() | datetime.date() | datetime.datetime():
            return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime.datetime) else str(value)
        case datetime.timedelta():
            millis = round(value / datetime.timedelta(milliseconds=1))
            seconds, part = divmod(abs(millis), 1000)
            return (
                f"{'-' if millis < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{part:03}"
            )
        case set():
            return sorted(value)
    return value


def _comparable(value: Any, column: Column) -> Any:
    """Our wire value where the reference has none like it: JSON as a tree, SET without order, bits as text, and the
    FLOAT that a DOUBLE of the reference's is."""
    if value is None:
        return None
    match column.type:
        case "json":
            return json.loads(value)
        case "set":
            return sorted(filter(None, value.split(","))) or None  # as the reference has an empty one
        case "bit":
            return f"{int.from_bytes(base64.b64decode(value)):0{column.length}b}"
        case "varbinary":
            return base64.b64decode(value)
    return value


def _text(tree: Any) -> Any:
    """JSON as the reference gives it has bytes for texts."""
    match tree:
        case bytes():
            return tree.decode()
        case dict():
            return {_text(name): _text(value) for name, value in tree.items()}
        case list():
            return [_text(value) for value in tree]
    return tree
