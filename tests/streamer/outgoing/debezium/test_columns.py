"""Each type's field in a schema and its values, as Debezium's documentation has them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.pipeline_records import DebeziumModes
from contract.schema import Column
from contract.types import TABLE
from streamer.outgoing.debezium.columns import FORMS, Bent, form

DEFAULT = DebeziumModes()


def made(column: Column, value: Any, **modes: str) -> Any:
    found = form(column, DebeziumModes.model_validate(modes))
    return value if found.convert is None else found.convert(value)


def kind(column: Column, **modes: str) -> tuple[str, str | None]:
    node = form(column, DebeziumModes.model_validate(modes)).node
    return node["type"], node.get("name")


def test_every_type_of_the_type_table_has_a_form() -> None:
    assert FORMS.keys() == TABLE.keys()
    assert kind(Column(name="g", type="geomcollection"))[1] == "io.debezium.data.geometry.Geometry"


@pytest.mark.parametrize(
    ("type", "unsigned", "expected"),
    [
        ("tinyint", False, "int16"), ("tinyint", True, "int16"), ("smallint", False, "int16"),
        ("smallint", True, "int32"), ("mediumint", True, "int32"), ("int", False, "int32"), ("int", True, "int64"),
        ("bigint", False, "int64"), ("bigint", True, "int64"),
    ],
)  # fmt: skip
def test_integers_fit(type: str, unsigned: bool, expected: str) -> None:
    assert kind(Column(name="n", type=type, unsigned=unsigned)) == (expected, None)


def test_an_unsigned_bigint_beyond_int64_is_bent_or_precise() -> None:
    column = Column(name="n", type="bigint", unsigned=True)
    assert made(column, 2**63 - 1) == 2**63 - 1
    assert made(column, 2**64 - 1) == Bent(-1)
    assert made(column, 2**64 - 1, bigint_unsigned="precise") == "AP//////////"
    assert kind(column, bigint_unsigned="precise") == ("bytes", "org.apache.kafka.connect.data.Decimal")


@given(st.integers(-(10**65), 10**65), st.integers(0, 30))
def test_a_precise_decimal_is_its_unscaled_number_as_short_as_java_makes_it(number: int, scale: int) -> None:
    column = Column(name="d", type="decimal", precision=65, scale=scale)
    digits = f"{abs(number):0{scale + 1}d}"
    text = "-" * (number < 0) + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)
    raw = b64decode(made(column, text))
    assert int.from_bytes(raw, "big", signed=True) == number
    assert len(raw) == 1 or int.from_bytes(raw[1:], "big", signed=True) != number, "no byte is too many"


def test_decimals_by_their_handling_mode() -> None:
    column = Column(name="d", type="decimal", precision=10, scale=2)
    node = form(column, DEFAULT).node
    assert node["parameters"] == {"scale": "2", "connect.decimal.precision": "10"}
    assert made(column, "1.50", decimal="string") == "1.50"
    assert made(column, "1.50", decimal="double") == 1.5
    assert [kind(column, decimal=mode)[0] for mode in ("string", "double")] == ["string", "double"]


@pytest.mark.parametrize(
    ("mode", "date", "time", "short", "long"),
    [
        ("adaptive_time_microseconds", ("int32", "time.Date"), ("int64", "time.MicroTime"), "time.Timestamp",
         "time.MicroTimestamp"),
        ("microseconds", ("int32", "time.Date"), ("int64", "time.MicroTime"), "time.MicroTimestamp",
         "time.MicroTimestamp"),
        ("connect", ("int32", "data.Date"), ("int32", "data.Time"), "data.Timestamp", "data.Timestamp"),
        ("isostring", ("string", "time.IsoDate"), ("string", "time.IsoTime"), "time.IsoTimestamp", "time.IsoTimestamp"),
    ],
)  # fmt: skip
def test_times_by_their_precision_mode(
    mode: str, date: tuple[str, str], time: tuple[str, str], short: str, long: str
) -> None:
    def told(type: str, fsp: int = 0) -> tuple[str, str]:
        found, name = kind(Column(name="t", type=type, fsp=fsp), time=mode)
        return found, ".".join((name or "").split(".")[-2:])

    assert (told("date"), told("time", 6)) == (date, time)
    assert (told("datetime", 3)[1], told("datetime", 4)[1]) == (short, long)
    assert told("timestamp", 6) == ("string", "time.ZonedTimestamp")


def test_a_datetimes_fraction_decides_its_unit() -> None:
    assert made(Column(name="t", type="datetime", fsp=3), "1970-01-01 00:00:01.500") == 1500
    assert made(Column(name="t", type="datetime", fsp=6), "1970-01-01 00:00:01.500000") == 1_500_000


def test_bits_bytes_members_and_shapes() -> None:
    assert kind(Column(name="b", type="bit", length=1)) == ("boolean", None)
    assert made(Column(name="b", type="bit", length=9), b64encode(b"\x01\x02").decode()) == "AgE="
    binary = Column(name="b", type="varbinary", length=9)
    assert [made(binary, "/+8=", binary=mode) for mode in ("bytes", "base64", "base64-url-safe", "hex")] == [
        "/+8=", "/+8=", "_-8=", "ffef",
    ]  # fmt: skip
    assert [kind(binary, binary=mode)[0] for mode in ("bytes", "hex")] == ["bytes", "string"]
    enum = Column(name="e", type="enum", members=("a,b", "c\\d", "e"))
    assert form(enum, DEFAULT).node["parameters"] == {"allowed": "a\\,b,c\\\\d,e"}
    assert made(enum, "a,b") == "a,b", "as it was stored"
    wkb = b64encode(bytes.fromhex("0101000000000000000000f03f0000000000000040")).decode()
    assert made(Column(name="p", type="point"), {"wkb": wkb, "srid": 0}) == {
        "x": 1.0, "y": 2.0, "wkb": wkb, "srid": None,
    }  # fmt: skip
    assert made(Column(name="g", type="geometry"), {"wkb": wkb, "srid": 4326}) == {"wkb": wkb, "srid": 4326}
    assert form(Column(name="g", type="geometry", nullable=False), DEFAULT).node["optional"] is True
