"""The schemas of what Debezium's records have in common: the source's block, a transaction's, their own topics'."""

from __future__ import annotations

from typing import Any

from streamer.outgoing.debezium.columns import Node, field, named, plain

SNAPSHOTS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"


def struct(fields: list[Node], optional: bool = False, **more: Any) -> Node:
    return {"type": "struct", "fields": fields, "optional": optional, **more}


def fields(kind: str, *names: str, optional: bool = False) -> list[Node]:
    return [field(plain(kind), name, optional) for name in names]


def source(flavor: str) -> Node:
    """Of the connector for MySQL, or that for MariaDB."""
    snapshot = named("string", "io.debezium.data.Enum", allowed=SNAPSHOTS) | {"default": "false"}
    told = [
        *fields("string", "version", "connector", "name"),
        *fields("int64", "ts_ms"),
        field(snapshot, "snapshot", optional=True),
        *fields("string", "db"),
        *fields("string", "sequence", optional=True),
        *fields("int64", "ts_us", "ts_ns", optional=True),
        *fields("string", "table", optional=True),
        *fields("int64", "server_id"),
        *fields("string", "gtid", optional=True),
        *fields("string", "file"),
        *fields("int64", "pos"),
        *fields("int32", "row"),
        *fields("int64", "thread", optional=True),
        *fields("string", "query", optional=True),
    ]
    return struct(told, name=f"io.debezium.connector.{flavor}.Source", version=1)


def envelope(topic: str, columns: list[Node], flavor: str) -> Node:
    """Of a value; `columns`: the table's fields."""
    row = struct(columns, optional=True, name=f"{topic}.Value")
    place = [*fields("string", "id"), *fields("int64", "total_order", "data_collection_order")]
    told = [
        field(row, "before"),
        field(row, "after"),
        field(source(flavor), "source"),
        field(struct(place, optional=True, name="event.block", version=1), "transaction"),
        *fields("string", "op"),
        *fields("int64", "ts_ms", "ts_us", "ts_ns", optional=True),
    ]
    return struct(told, name=f"{topic}.Envelope", version=2)


OWN = "io.debezium.connector.common"
HEARTBEAT_KEY = struct(fields("string", "serverName"), name=f"{OWN}.ServerNameKey", version=1)
HEARTBEAT = struct(fields("int64", "ts_ms"), name=f"{OWN}.Heartbeat", version=1)
TRANSACTION_KEY = struct(fields("string", "id"), name=f"{OWN}.TransactionMetadataKey", version=1)
COUNTED = struct(
    [*fields("string", "data_collection"), *fields("int64", "event_count")],
    optional=True, name="event.collection", version=1,
)  # fmt: skip
TRANSACTION = struct(
    [
        *fields("string", "status", "id"),
        *fields("int64", "event_count", optional=True),
        field({"type": "array", "items": COUNTED}, "data_collections", optional=True),
        *fields("int64", "ts_ms"),
    ],
    name=f"{OWN}.TransactionMetadataValue", version=1,
)  # fmt: skip
