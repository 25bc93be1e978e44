"""The rows and changes of a small lake, as delta-rs writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
from deltalake import write_deltalake

from contract import names
from contract.pipeline import Pipeline
from readers.lake import query

FILE = """format: 1
name: shop
source: {{host: h, user: u, password: "${{NOT_SET_HERE}}", server_id: 7}}
tables: {{include: ["shop.*"]}}
kafka: {{bootstrap: "h:9092"}}
lake: {{path: {lake}}}
"""
PLACE = pl.Struct(dict.fromkeys(("epoch", "file", "pos", "event", "row"), pl.Int64))
SOLD = datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
SHAPE: dict[str, Any] = {
    "id": pl.Decimal(20, 0), "a name": pl.String, "price": pl.Decimal(10, 2), "sold": pl.Datetime("us", "UTC"),
    "local": pl.Datetime("us"), "raw": pl.Binary, "day": pl.Date, "good": pl.Boolean, "weight": pl.Float64,
    "at": pl.Struct({"wkb": pl.Binary, "srid": pl.Int64}), "vec": pl.List(pl.Float32), "_seq": PLACE,
    "_ts": pl.Datetime("us", "UTC"),
}  # fmt: skip
BIG = 2**64 - 1


def at(minute: int) -> datetime:
    return datetime(2026, 11, 22, 10, minute, tzinfo=UTC)


def place(minute: int) -> dict[str, int]:
    return {"epoch": 0, "file": 1, "pos": minute, "event": 0, "row": 0}


def row(id: int, name: str | None, price: str = "1.50") -> dict[str, Any]:
    return {
        "id": id, "a name": name, "price": Decimal(price), "sold": SOLD,
        "local": SOLD.replace(tzinfo=None), "raw": b"\x00\xff", "day": None, "good": True, "weight": 0.1,
        "at": {"wkb": b"\x01", "srid": 4326}, "vec": [0.5, -1.0],
        "_seq": place(5), "_ts": at(5),
    }  # fmt: skip


def wire(id: int, name: str | None, price: str = "1.50") -> dict[str, Any]:
    return {
        "id": id, "a name": name, "price": price, "sold": "2026-01-01T00:00:00.5Z", "local": "2026-01-01 00:00:00.5",
        "raw": "AP8=", "day": "0000-00-00", "good": True, "weight": 0.1, "at": {"wkb": "AQ==", "srid": 4326},
        "vec": [0.5, -1.0],
    }  # fmt: skip


def change(minute: int, op: str, before: Any = None, after: Any = None, table: str = "items") -> dict[str, Any]:
    known = after or before
    texts = [None if one is None else json.dumps(one) for one in (before, after)]
    return {
        "db": "shop", "tbl": f"shop.{table}", "key": json.dumps({"id": known["id"]}) if known else None, "op": op,
        "before": texts[0], "after": texts[1], "_seq": place(minute), "gtid": f"u:{minute}", "ts": at(minute),
    }  # fmt: skip


CHANGES = [
    change(5, "c", None, {"id": 1}, "others"),
    change(10, "u", wire(1, "a"), wire(1, "b")),
    change(20, "c", None, wire(BIG, "new")),
    change(30, "u", wire(1, "b"), wire(1, "c", "2.00")),
    change(40, "d", wire(3, "gone")),
    change(50, "d", wire(BIG, "new")),
]


def rows_of(pipeline: Pipeline, sql: str) -> list[tuple[Any, ...]]:
    return list(query(pipeline, sql).rows())


def append(pipeline: Pipeline, changes: list[dict[str, Any]]) -> None:
    texts = dict.fromkeys(("db", "tbl", "key", "op", "before", "after", "gtid"), pl.String)
    frame = pl.DataFrame(changes, {**texts, "_seq": PLACE, "ts": pl.Datetime("us", "UTC")})
    write_deltalake(f"{names.lake_root(pipeline)}/{names.CHANGES}", frame, mode="append", partition_by=["tbl"])
