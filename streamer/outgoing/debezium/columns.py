"""A column's type -> its field in a Kafka Connect schema, and what becomes of its values.

As Debezium documents its type mapping, with the handling modes of the pipeline file. In: values as they are in our own
records. A value that the field has no room for becomes null, or, in a column that takes no NULL, `empty`; or another
number, which is `Bent`. All as Debezium's do.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

from contract.pipeline_records import DebeziumModes
from contract.schema import Column
from contract.types import GEOMETRIES, SPELLINGS
from streamer.outgoing.debezium import moments

Node = dict[str, Any]
Convert = Callable[[Any], Any]  # None: there is no room for the value


class Bent(NamedTuple):
    """What stands for a value that the field has no room for."""

    value: Any


class Form(NamedTuple):
    """`node`: of the field's schema, but for its name. `convert`: None where values stay as they are."""

    node: Node
    convert: Convert | None = None
    empty: Any = None


def plain(kind: str) -> Node:
    return {"type": kind}


def named(kind: str, name: str, **parameters: str) -> Node:
    node: Node = {"type": kind, "name": name, "version": 1}
    return node | ({"parameters": parameters} if parameters else {})


def field(node: Node, name: str, optional: bool = False) -> Node:
    """In the converter's order."""
    kind: Node = {part: node[part] for part in ("type", "fields", "items") if part in node}
    return {**kind, "optional": node.get("optional", optional), **node, "field": name}


def form(column: Column, modes: DebeziumModes) -> Form:
    """Of a type that contract/types.py knows."""
    return FORMS[SPELLINGS.get(column.type, column.type)](column, modes)


WIDER = {"smallint": "int32", "int": "int64"}  # of the unsigned ones, of which the others fit
WIDTH = {"tinyint": "int16", "smallint": "int16", "mediumint": "int32", "int": "int32", "bigint": "int64"}
LONG = 2**63


def _integer(column: Column, modes: DebeziumModes) -> Form:
    kind = WIDTH[column.type]
    if not column.unsigned:
        return Form(plain(kind))
    if column.type != "bigint":
        return Form(plain(WIDER.get(column.type, kind)))
    if modes.bigint_unsigned == "precise":
        return Form(_decimal_node(20, 0), _unscaled, _unscaled(0))
    return Form(plain(kind), lambda value: value if value < LONG else Bent(value - 2 * LONG))


def _unscaled(number: int) -> str:
    """Two's complement, the highest byte first, in base64; as short as Java makes it."""
    size = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return b64encode(number.to_bytes(size, "big", signed=True)).decode()


def _decimal_node(precision: int, scale: int) -> Node:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return named("bytes", "org.apache.kafka.connect.data.Decimal", **parameters)


def _decimal(column: Column, modes: DebeziumModes) -> Form:
    if modes.decimal == "string":
        return Form(plain("string"))
    if modes.decimal == "double":
        return Form(plain("double"), float)
    precision, scale = column.precision or 10, column.scale or 0
    return Form(_decimal_node(precision, scale), lambda text: _unscaled(_digits(text, scale)))


def _digits(text: str, scale: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction.ljust(scale, "0"))


def _float(column: Column, _: DebeziumModes) -> Form:
    return Form(plain(column.type))


def _text(_: Column, __: DebeziumModes) -> Form:
    return Form(plain("string"))


def _json(_: Column, __: DebeziumModes) -> Form:
    return Form(named("string", "io.debezium.data.Json"))


def _uuid(_: Column, __: DebeziumModes) -> Form:
    return Form(named("string", "io.debezium.data.Uuid"))


def _members(name: str) -> Callable[[Column, DebeziumModes], Form]:
    def made(column: Column, _: DebeziumModes) -> Form:
        allowed = [member.replace("\\", "\\\\").replace(",", "\\,") for member in column.members]
        return Form(named("string", name, allowed=",".join(allowed)))

    return made


BINARY: dict[str, tuple[str, Convert | None]] = {
    "bytes": ("bytes", None),
    "base64": ("string", None),
    "base64-url-safe": ("string", lambda text: urlsafe_b64encode(b64decode(text)).decode()),
    "hex": ("string", lambda text: b64decode(text).hex()),
}


def _binary(_: Column, modes: DebeziumModes) -> Form:
    kind, convert = BINARY[modes.binary]
    return Form(plain(kind), convert)


def _bit(column: Column, _: DebeziumModes) -> Form:
    if (column.length or 1) == 1:
        return Form(plain("boolean"))
    node = named("bytes", "io.debezium.data.Bits", length=str(column.length))
    return Form(node, lambda text: b64encode(b64decode(text)[::-1]).decode())  # from the lowest byte on


def _year(_: Column, __: DebeziumModes) -> Form:
    return Form(named("int32", "io.debezium.time.Year"))


CONNECT, ISO, OWN = "org.apache.kafka.connect.data", "io.debezium.time.Iso", "io.debezium.time"


def _date(_: Column, modes: DebeziumModes) -> Form:
    if modes.time == "isostring":
        return Form(named("string", f"{ISO}Date"), moments.iso_date, "1970-01-01Z")
    home = CONNECT if modes.time == "connect" else OWN
    return Form(named("int32", f"{home}.Date"), moments.days, 0)


def _time(_: Column, modes: DebeziumModes) -> Form:
    if modes.time == "isostring":
        return Form(named("string", f"{ISO}Time"), moments.iso_time, "00:00:00Z")
    if modes.time == "connect":
        return Form(named("int32", f"{CONNECT}.Time"), moments.millis_of_day, 0)
    return Form(named("int64", f"{OWN}.MicroTime"), moments.of_time)


def _datetime(column: Column, modes: DebeziumModes) -> Form:
    if modes.time == "isostring":
        return Form(named("string", f"{ISO}Timestamp"), moments.iso_datetime, "1970-01-01T00:00:00Z")
    if modes.time == "connect":
        return Form(named("int64", f"{CONNECT}.Timestamp"), moments.millis, 0)
    if modes.time == "microseconds" or column.fsp > 3:
        return Form(named("int64", f"{OWN}.MicroTimestamp"), moments.micros, 0)
    return Form(named("int64", f"{OWN}.Timestamp"), moments.millis, 0)


def _timestamp(_: Column, __: DebeziumModes) -> Form:
    return Form(named("string", f"{OWN}.ZonedTimestamp"), moments.zoned, "1970-01-01T00:00:00Z")


def _geometry(_: Column, __: DebeziumModes) -> Form:
    fields = [field(plain("bytes"), "wkb"), field(plain("int32"), "srid", optional=True)]
    node = {"type": "struct", "fields": fields, "optional": True} | GEOMETRY
    return Form(node, lambda shape: {"wkb": shape["wkb"], "srid": shape["srid"] or None})


GEOMETRY = {"name": "io.debezium.data.geometry.Geometry", "version": 1, "doc": "Geometry"}
POINT = {"name": "io.debezium.data.geometry.Point", "version": 1, "doc": "Geometry (POINT)"}


def _point(_: Column, __: DebeziumModes) -> Form:
    fields = [field(plain("double"), "x"), field(plain("double"), "y")]
    fields += [field(plain("bytes"), "wkb", optional=True), field(plain("int32"), "srid", optional=True)]
    return Form({"type": "struct", "fields": fields} | POINT, _coordinates)


def _coordinates(shape: dict[str, Any]) -> dict[str, Any]:
    raw = b64decode(shape["wkb"])
    x, y = struct.unpack_from("<2d" if raw[0] else ">2d", raw, 5)
    return {"x": x, "y": y, "wkb": shape["wkb"], "srid": shape["srid"] or None}


def _vector(_: Column, __: DebeziumModes) -> Form:
    node = named("array", "io.debezium.data.FloatVector")
    return Form(node | {"items": {"type": "float", "optional": False}})


FORMS: dict[str, Callable[[Column, DebeziumModes], Form]] = {
    **dict.fromkeys(WIDTH, _integer),
    "year": _year,
    "decimal": _decimal,
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _text),
    **dict.fromkeys(("inet4", "inet6"), _text),
    "uuid": _uuid,
    "enum": _members("io.debezium.data.Enum"),
    "set": _members("io.debezium.data.EnumSet"),
    "json": _json,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _binary),
    "bit": _bit,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "timestamp": _timestamp,
    **dict.fromkeys(GEOMETRIES, _geometry),
    "point": _point,
    "vector": _vector,
}
