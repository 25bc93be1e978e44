"""Our records -> Debezium's: `{"schema": ..., "payload": ...}` in key and value, as Kafka Connect's JSON converter
writes them with schemas.enable. The last step before a record is sent.

In `source` `sequence`, which Debezium's MySQL connector leaves empty, has the order tuple; `seq` and `schema`, which
its records do not have, are left away.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import structlog

from contract import names
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.transforms import encode
from streamer.outgoing.debezium import blocks
from streamer.outgoing.debezium.columns import Bent, Convert, Form, Node, field, form, plain
from streamer.outgoing.record import Outgoing

log = structlog.get_logger("streamer")
SOURCE = (
    "version", "connector", "name", "ts_ms", "snapshot", "db", "sequence", "ts_us", "ts_ns", "table", "server_id",
    "gtid", "file", "pos", "row", "thread", "query",
)  # fmt: skip
Row = dict[str, Any]
KEPT = 1_000  # topics of a table, of which transforms may choose any number


class DebeziumRecords:
    """`bent`: values since the start that had no room in their fields, by `db.table`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._modes = pipeline.records.debezium
        self._flavor = pipeline.source.flavor
        self._own = {
            names.heartbeat_topic(pipeline): (_head(blocks.HEARTBEAT_KEY), _head(blocks.HEARTBEAT)),
            names.transactions_topic(pipeline): (_head(blocks.TRANSACTION_KEY), _head(blocks.TRANSACTION)),
        }
        self._tables: dict[tuple[str, str], _Table] = {}
        self._counts = True
        self._told: set[tuple[str, str]] = set()
        self.bent: Counter[str] = Counter()

    def row(self, record: Outgoing, schema: TableSchema, sent: bool = True) -> Outgoing:
        """A change of a row, or a tombstone, of a table in this shape. `sent`: else it is made to be measured."""
        self._counts = sent
        table = self._tables.get((schema.db, schema.table))
        if table is None or table.schema is not schema:
            table = self._tables[schema.db, schema.table] = self._table(schema)
        key = None if record.key is None else table.key(record.topic, json.loads(record.key))
        value = None if record.value is None else table.value(record.topic, json.loads(record.value))
        return _like(record, key, value)

    def truncation(
        self, topic: str, key: bytes | None, value: bytes, schema: TableSchema | None
    ) -> tuple[bytes | None, bytes]:
        """`schema`: None of a table of which nothing is known; its rows have no columns then."""
        envelope = json.loads(value)
        source = envelope["source"]
        table = self._table(schema or TableSchema(db=source["db"], table=source["table"], columns=()))
        return None if key is None else table.key(topic, json.loads(key)), table.value(topic, envelope)

    def own(self, record: Outgoing) -> Outgoing:
        """Of the topics of transactions and heartbeats. Who reads these by a schema finds no more than it names."""
        assert record.key is not None
        assert record.value is not None
        key, value = self._own[record.topic]
        return _like(record, key + record.key + b"}", value + record.value + b"}")

    def _table(self, schema: TableSchema) -> _Table:
        return _Table(schema, {one.name: form(one, self._modes) for one in schema.columns}, self._flavor, self._bends)

    def _bends(self, table: str, column: str) -> None:
        if not self._counts:
            return
        self.bent[table] += 1
        if (table, column) not in self._told:
            self._told.add((table, column))
            log.warning("a value has no room in Debezium's form", table=table, column=column, meaning=MEANING)


MEANING = "Null, the beginning of 1970 or a number below zero stands for it (docs/debezium.md); counted as bent."


class _Table:
    """One shape of a table. `bends(table, column)` hears of each value without room."""

    def __init__(
        self, schema: TableSchema, forms: dict[str, Form], flavor: str, bends: Callable[[str, str], None]
    ) -> None:
        self.schema = schema
        self._name = f"{schema.db}.{schema.table}"
        self._flavor = flavor
        self._bends = bends
        nullable = {column.name: column.nullable for column in schema.columns}
        self._fields = {name: field(one.node, name, nullable[name]) for name, one in forms.items()}
        self._converts: dict[str, tuple[Convert, Any]] = {
            name: (one.convert, None if nullable[name] else one.empty)
            for name, one in forms.items()
            if one.convert is not None
        }
        self._keys: dict[tuple[str, ...], bytes] = {}  # up to the payload, by the topic and what the key is of
        self._values: dict[str, bytes] = {}

    def value(self, topic: str, envelope: Row) -> bytes:
        head = self._values.get(topic)
        if head is None:
            _bounded(self._values)
            head = self._values[topic] = _head(blocks.envelope(topic, list(self._fields.values()), self._flavor))
        source, at = envelope["source"], envelope["ts_ms"]
        facts = source | {
            "sequence": encode(source["seq"]),
            "ts_ns": source["ts_us"] * 1000,
            "gtid": source["gtid"] or None,
        }
        payload = {
            "before": self._image(envelope["before"]),
            "after": self._image(envelope["after"]),
            "source": {name: facts[name] for name in SOURCE},
            "transaction": envelope["transaction"],
            "op": envelope["op"],
            "ts_ms": at,
            "ts_us": at * 1000,
            "ts_ns": at * 1_000_000,
        }
        return head + encode(payload).encode() + b"}"

    def key(self, topic: str, key: Row) -> bytes:
        if self.schema.key:
            kinds, made = tuple(key), self._image(key)
            fields = [self._fields[name] for name in key]
        else:  # of a transform's own making
            found = {name: _guessed(value) for name, value in key.items()}
            kinds = tuple(f"{name} {kind}" for name, (kind, _) in found.items())
            made = {name: value for name, (_, value) in found.items()}
            fields = [field(plain(kind), name, kind == "string") for name, (kind, _) in found.items()]
        head = self._keys.get((topic, *kinds))
        if head is None:
            _bounded(self._keys)
            head = self._keys[topic, *kinds] = _head(blocks.struct(fields, name=f"{topic}.Key"))
        return head + encode(made).encode() + b"}"

    def _image(self, image: Row | None) -> Row | None:
        if image is None:
            return None
        for name, (convert, empty) in self._converts.items():
            if (value := image.get(name)) is not None:
                made = convert(value)
                if made is None or type(made) is Bent:
                    made = made.value if made is not None else empty
                    self._bends(self._name, name)
                image[name] = made
        return image


KINDS = {bool: "boolean", int: "int64", float: "double", str: "string", type(None): "string"}


def _guessed(value: Any) -> tuple[str, Any]:
    """The kind of a value that no column tells of; what has parts is the text of its JSON."""
    kind = KINDS.get(type(value))
    return (kind, value) if kind is not None else ("string", encode(value))


def _bounded(heads: dict[Any, bytes]) -> None:
    if len(heads) >= KEPT:
        heads.clear()


def _head(schema: Node) -> bytes:
    return b'{"schema":' + encode(schema).encode() + b',"payload":'


def _like(record: Outgoing, key: bytes | None, value: bytes | None) -> Outgoing:
    made = Outgoing(record.topic, key, value, record.event)
    made.headers, made.partition = record.headers, record.partition
    return made
