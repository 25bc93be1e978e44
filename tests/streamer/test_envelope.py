"""Envelopes are read back by a JSON parser and compared field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.schema import TableSchema
from streamer import VERSION
from streamer.envelope import Envelope
from streamer.protocol.model import Op, RowsBatch, TableMap

AWKWARD = ["orders", 'a"b', "100%", "%d%b", "back\\slash", "naïve", "OP", "表"]


def never(*_: Any) -> None:
    raise AssertionError


def batch(op: Op, rows: list[Any], keys: list[Any], table: str = "orders") -> RowsBatch:
    shape = TableMap(TableSchema(db="shop", table=table, columns=(), key=("id",) if keys else ()), never, "")
    dump = [json.dumps(row, separators=(",", ":")).encode() for row in rows]
    key_bytes = [json.dumps({"id": key}, separators=(",", ":")).encode() for key in keys]
    return RowsBatch(op, shape, dump, key_bytes, 1_700_000_000_123_456, "u:7", 9, 1, "binlog.000012", 12, 500, 300, 4)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("op", ["c", "u"])
def test_without_gtids_the_place_that_names_a_transaction_is_no_gtid(op: Op, count: int) -> None:
    rows = [{"id": n, "x": "50%"} for n in range(count)]
    item = batch(op, rows * (2 if op == "u" else 1), [row["id"] for row in rows] * (2 if op == "u" else 1))
    if op == "u":
        item.rows = [row for row in item.rows[:count] for _ in range(2)]
        item.keys = [key for key in item.keys[:count] for _ in range(2)]
    with_one = records(item)
    item.gtid = "file=binlog.000012,pos=300"
    without = records(item)
    for (key, value), (key_before, value_before) in zip(without, with_one, strict=True):
        assert value["source"].pop("gtid") is None
        assert value_before["source"].pop("gtid") == "u:7"
        assert (key, {**value, "ts_ms": 0}) == (key_before, {**value_before, "ts_ms": 0})


def records(item: RowsBatch, db: str = "shop") -> list[tuple[Any, Any]]:
    names = (json.dumps(name, ensure_ascii=False).encode() for name in (db, item.table.table))
    keys, values = Envelope(VERSION, "sales", *names, 3, epoch=2).records(item)
    assert len(keys) == len(values)
    return [(key and json.loads(key), json.loads(value)) for key, value in zip(keys, values, strict=True)]


@pytest.mark.parametrize("count", [1, 2, 500])
def test_inserts(count: int) -> None:
    found = records(batch("c", [{"id": n, "x": "50%"} for n in range(count)], list(range(count))))
    assert [key for key, _ in found] == [{"id": n} for n in range(count)]
    for n, (_, value) in enumerate(found):
        assert value["before"] is None
        assert value["after"] == {"id": n, "x": "50%"}
        assert (value["op"], value["transaction"]) == ("c", None)
        assert value["ts_ms"] > 1_700_000_000_000
        assert value["source"] == {
            "version": VERSION,
            "connector": "mysql",
            "name": "sales",
            "ts_ms": 1_700_000_000_123,
            "ts_us": 1_700_000_000_123_456,
            "snapshot": "false",
            "db": "shop",
            "table": "orders",
            "server_id": 1,
            "gtid": "u:7",
            "file": "binlog.000012",
            "pos": 500,
            "row": n,
            "thread": 9,
            "query": None,
            "seq": [2, 12, 300, 4, n],
            "schema": 3,
        }


@pytest.mark.parametrize("count", [1, 3])
def test_updates_and_deletes(count: int) -> None:
    keys = [n for n in range(count) for _ in "ab"]
    updates = records(batch("u", [{"v": n} for n in range(2 * count)], keys))
    assert [(v["before"], v["after"]) for _, v in updates] == [({"v": 2 * n}, {"v": 2 * n + 1}) for n in range(count)]
    deletes = records(batch("d", [{"v": n} for n in range(count)], list(range(count))))
    assert [(k, v["before"], v["after"]) for k, v in deletes] == [({"id": n}, {"v": n}, None) for n in range(count)]


def test_a_moved_primary_key_is_a_delete_and_a_create() -> None:
    rows = [{"v": n} for n in range(6)]
    found = records(batch("u", rows, [1, 1, 2, 20, 3, 3]))
    shown = [(k["id"], v["op"], v["before"], v["after"], v["source"]["row"], v["source"]["seq"][-1]) for k, v in found]
    assert shown == [
        (1, "u", {"v": 0}, {"v": 1}, 0, 0),
        (2, "d", {"v": 2}, None, 1, 1),
        (20, "c", None, {"v": 3}, 1, 2),
        (3, "u", {"v": 4}, {"v": 5}, 2, 3),
    ]


@pytest.mark.parametrize("op", ["c", "u", "d"])
def test_without_a_primary_key(op: Op) -> None:
    rows = [{"v": n} for n in range(4)]
    assert {key for key, _ in records(batch(op, rows, []))} == {None}
    assert {key for key, _ in records(batch(op, rows[:2], []))} == {None}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("count", [1, 2])
def test_awkward_names(name: str, count: int) -> None:
    for _, value in records(batch("c", [{name: name}] * count, [1] * count, table=name), db=name):
        assert (value["source"]["db"], value["source"]["table"], value["after"]) == (name, name, {name: name})


@pytest.mark.parametrize("count", [1, 3])
def test_the_statement_stands_with_the_rows_that_it_made_and_with_no_other(count: int) -> None:
    envelope = Envelope(VERSION, "sales", b'"shop"', b'"orders"', 3, epoch=2)
    rows, keys = [{"id": n, "query": None} for n in range(count)], list(range(count))
    text = "INSERT INTO orders VALUES ('100%', \"%d\", '%b')"
    told = batch("c", rows, keys)
    told.query = json.dumps(text).encode()
    for item, expected in ((told, text), (batch("c", rows, keys), None)):
        found = [json.loads(value) for value in envelope.records(item)[1]]
        assert [value["source"]["query"] for value in found] == [expected] * count
        assert [value["after"] for value in found] == rows


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("op", ["c", "u", "d"])
def test_of_mariadb_the_thread_is_not_known(op: Op, rows: int) -> None:
    made = batch(op, [{"x": "5%d"}] * rows * (2 if op == "u" else 1), list(range(rows * (2 if op == "u" else 1))))
    _, values = Envelope(VERSION, "sales", b'"shop"', b'"orders"', 3, 2, "mariadb").records(made)
    for n, source in enumerate(json.loads(value)["source"] for value in values):
        assert (source["connector"], source["thread"], source["pos"]) == ("mariadb", None, 500)
        assert source["seq"] == [2, 12, 300, 4, n]
