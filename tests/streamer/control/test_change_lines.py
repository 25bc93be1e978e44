"""A change as a line for a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.control.change_lines import LONGEST, line
from streamer.tail import Change, _change

CHANGE = (
    b'{"op":"c","before":null,"after":{"id":1},"source":{"db":"d","table":"t","ts_ms":9,"gtid":null,'
    b'"file":"binlog.000003","pos":500,"seq":[0,3,400,0,0]}}'
)


def told(op: str, before: Any, after: Any, key: Any = None) -> str:
    source = {"db": "shop", "table": "orders", "ts_ms": 3_661_007}
    return line(
        Change("sales.shop.orders", 0, 5, key, {"op": op, "before": before, "after": after, "source": source})
    ).plain


def test_an_update_shows_its_key_and_what_it_changed_alone() -> None:
    before = {"id": 1, "qty": 2, "note": "a", "same": True}
    after = before | {"qty": 3, "note": None}
    assert (
        told("u", before, after, {"id": 1}) == '01:01:01.007 update   shop.orders  id=1  qty: 2 → 3  note: "a" → null'
    )


def test_inserts_deletes_and_truncations() -> None:
    row = {"id": 1, "qty": 2}
    assert told("c", None, row, {"id": 1}) == "01:01:01.007 insert   shop.orders  id=1  qty: 2"
    assert told("d", row, None, {"id": 1}) == "01:01:01.007 delete   shop.orders  id=1  qty: 2"
    assert told("d", row, None) == "01:01:01.007 delete   shop.orders  id: 1  qty: 2", "a table without a key"
    assert told("t", None, None) == "01:01:01.007 truncate shop.orders"


def test_a_long_value_is_cut_and_says_so() -> None:
    shown = told("c", None, {"id": 1, "text": "x" * 5_000}, {"id": 1})
    assert len(shown) < LONGEST + 100
    assert "5,002 characters" in shown


def test_markup_in_a_row_is_text() -> None:
    assert "[red]x[/]" in told("c", None, {"id": 1, "text": "[red]x[/]"}, {"id": 1})


class Message:
    def __init__(self, key: bytes | None, value: bytes | None) -> None:
        self._key, self._value = key, value

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 2


def test_what_is_no_change_is_passed_by() -> None:
    for value in (None, b"", b"no json", b"[1]", b'{"a":1}', b'{"source":{}}'):
        assert _change(Message(b'{"id":1}', value)) is None


@pytest.mark.parametrize("lacking", ["op", "before", "source", "db", "ts_ms", "gtid", "seq"])
def test_what_others_write_into_the_topic_is_passed_by(lacking: str) -> None:
    whole = json.loads(CHANGE)
    assert _change(Message(None, CHANGE)) is not None
    (whole if lacking in whole else whole["source"]).pop(lacking)
    assert _change(Message(None, json.dumps(whole).encode())) is None


def test_json_with_its_schema_is_read_as_without() -> None:
    plain = CHANGE
    found = _change(Message(b'{"schema":{},"payload":{"id":1}}', b'{"schema":{},"payload":%b}' % plain))
    assert found is not None
    assert (found.table, found.key) == ("d.t", {"id": 1})
    assert found == _change(Message(b'{"id":1}', plain))
