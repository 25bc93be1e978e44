"""Whole records in Debezium's form: schema and payload of key and value, and what is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from streamer.outgoing.debezium import encoder
from streamer.outgoing.debezium.encoder import DebeziumRecords
from streamer.outgoing.record import Outgoing
from tests.streamer.fakes import pipeline

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="price", type="decimal", precision=6, scale=2),
    Column(name="day", type="date", nullable=False),
)
SCHEMA = TableSchema(db="shop", table="t", columns=COLUMNS, key=("id",))
TOPIC = "sales.shop.t"
SOURCE = {
    "version": "1", "connector": "mysql", "name": "sales", "ts_ms": 5, "ts_us": 5_001, "snapshot": "false",
    "db": "shop", "table": "t", "server_id": 1, "gtid": "", "file": "binlog.000001", "pos": 4, "row": 0, "thread": 9,
    "query": None, "seq": [0, 1, 4, 0, 0], "schema": 3,
}  # fmt: skip


def records(**asked: Any) -> DebeziumRecords:
    plain = pipeline()
    told = plain.model_dump() | {"source": plain.source, "lake": {}}
    told["records"] = {"format": "debezium", "debezium": asked}
    return DebeziumRecords(Pipeline.model_validate(told))


def change(after: dict[str, Any] | None, topic: str = TOPIC, key: Any = None) -> Outgoing:
    envelope = {"before": None, "after": after, "source": SOURCE, "op": "c", "ts_ms": 7, "transaction": None}
    told = {"id": 1} if key is None else key
    return Outgoing(topic, json.dumps(told).encode(), json.dumps(envelope).encode())


def names(node: dict[str, Any]) -> list[str]:
    return [field["field"] for field in node["fields"]]


def test_a_record_has_its_schema_and_the_payload_that_fits_it() -> None:
    made = records().row(change({"id": 1, "price": "1.50", "day": "1970-01-02"}), SCHEMA)
    value, key = json.loads(made.value or b""), json.loads(made.key or b"")
    schema, payload = value["schema"], value["payload"]
    assert (schema["name"], schema["version"], schema["optional"]) == (f"{TOPIC}.Envelope", 2, False)
    assert names(schema) == list(payload) == [
        "before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns",
    ]  # fmt: skip
    before, after, source, *_ = schema["fields"]
    assert {**before, "field": ""} == {**after, "field": ""}
    assert names(after) == list(payload["after"])
    assert after["fields"][0] == {"type": "int32", "optional": False, "field": "id"}
    assert payload["after"] == {"id": 1, "price": "AJY=", "day": 1}
    assert names(source) == list(payload["source"])
    told = {name: payload["source"][name] for name in ("gtid", "sequence", "ts_us", "ts_ns")}
    assert told == {"gtid": None, "sequence": "[0,1,4,0,0]", "ts_us": 5_001, "ts_ns": 5_001_000}
    assert (payload["ts_ms"], payload["ts_us"], payload["ts_ns"]) == (7, 7_000, 7_000_000)
    assert key == {
        "schema": {
            "type": "struct", "optional": False, "name": f"{TOPIC}.Key",
            "fields": [{"type": "int32", "optional": False, "field": "id"}],
        },
        "payload": {"id": 1},
    }  # fmt: skip


def test_what_has_no_room_is_null_or_the_types_beginning_and_is_counted() -> None:
    columns = (*COLUMNS, Column(name="at", type="datetime"), Column(name="n", type="bigint", unsigned=True))
    schema = SCHEMA.model_copy(update={"columns": columns})
    made = records()
    row = {"id": 1, "price": None, "day": "0000-00-00", "at": "2024-00-00 10:00:00", "n": 2**64 - 1}
    with capture_logs() as logs:
        made.row(change(row), schema, sent=False)
        assert (made.bent, logs) == ({}, [])
        for _ in range(2):
            told = json.loads(made.row(change(row), schema).value or b"")["payload"]["after"]
    assert told == {"id": 1, "price": None, "day": 0, "at": None, "n": -1}
    assert made.bent == {"shop.t": 6}
    assert sorted(entry["column"] for entry in logs) == ["at", "day", "n"], "each column is told once"
    assert "2024" not in str(logs)


def test_another_shape_of_a_table_has_another_schema_and_other_topics_other_names() -> None:
    made = records(decimal="string")
    row = {"id": 1, "price": "1.50", "day": "1970-01-02"}
    first = json.loads(made.row(change(row), SCHEMA).value or b"")
    assert first["payload"]["after"]["price"] == "1.50"
    assert json.loads(made.row(change(row, "elsewhere"), SCHEMA).value or b"")["schema"]["name"] == "elsewhere.Envelope"
    narrow = SCHEMA.model_copy(update={"columns": COLUMNS[:1]})
    assert names(json.loads(made.row(change({"id": 1}), narrow).value or b"")["schema"]["fields"][0]) == ["id"]


def test_a_tombstone_has_the_key_alone_and_both_keep_what_else_the_record_has() -> None:
    tombstone = Outgoing(TOPIC, b'{"id":1}', None, event=False)
    tombstone.partition, tombstone.headers = 1, [("__op", b"d")]
    made = records().row(tombstone, SCHEMA)
    assert (made.value, json.loads(made.key or b"")["payload"]) == (None, {"id": 1})
    assert (made.partition, made.headers, made.event) == (1, [("__op", b"d")], False)


def test_a_key_of_a_transforms_own_making_has_a_schema_too() -> None:
    keyless = SCHEMA.model_copy(update={"key": ()})
    key = {"a": 1, "b": "x", "c": [1], "d": 1.5, "e": True, "f": None}
    made = json.loads(records().row(change({"id": 1, "price": None, "day": "1970-01-01"}, key=key), keyless).key or b"")
    assert [field["type"] for field in made["schema"]["fields"]] == [
        "int64", "string", "string", "double", "boolean", "string",
    ]  # fmt: skip
    assert made["payload"] == {**key, "c": "[1]"}


def test_topics_without_end_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "KEPT", 3)
    made = records()
    for number in range(20):
        made.row(change({"id": 1, "price": None, "day": "1970-01-01"}, f"t{number}"), SCHEMA)
    [table] = made._tables.values()
    assert len(table._values) <= 3
    assert len(table._keys) <= 3


def test_a_truncation_of_a_table_that_is_not_known_yet_has_rows_without_columns() -> None:
    envelope = {"before": None, "after": None, "source": SOURCE, "op": "t", "ts_ms": 7, "transaction": None}
    key, value = records().truncation(TOPIC, b"{}", json.dumps(envelope).encode(), None)
    told = json.loads(value)
    assert (told["payload"]["op"], told["schema"]["fields"][0]["fields"]) == ("t", [])
    assert json.loads(key or b"")["payload"] == {}
    assert records().truncation(TOPIC, None, json.dumps(envelope).encode(), SCHEMA)[0] is None


def test_the_pipelines_own_topics_have_schemas_too() -> None:
    made = records()
    for topic, key, value in (
        ("sales.transactions", {"id": "a:1"}, {"status": "BEGIN", "id": "a:1", "ts_ms": 1}),
        ("sales.heartbeat", {"serverName": "sales"}, {"ts_ms": 1, "file": "f", "pos": 4}),
    ):
        record = made.own(Outgoing(topic, json.dumps(key).encode(), json.dumps(value).encode(), event=False))
        told = json.loads(record.value or b"")
        assert told["payload"] == value
        assert names(told["schema"])[-1] == "ts_ms"
        assert json.loads(record.key or b"")["payload"] == key
