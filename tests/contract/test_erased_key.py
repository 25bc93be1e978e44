"""Keys as people write them, as records have them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from contract.erased_key import ErasedKeyError, keys_of
from contract.schema import Column, TableSchema

SECRET = b"quagga"


def table(*columns: Column) -> TableSchema:
    return TableSchema(db="shop", table="t", columns=columns, key=tuple(column.name for column in columns))


def of(kind: str, **facts: Any) -> TableSchema:
    return table(Column(name="id", type=kind, nullable=False, **facts))


def texts(given: str, schema: TableSchema) -> list[Any]:
    return [json.loads(key.text)["id"] for key in keys_of(given, schema, SECRET)]


@pytest.mark.parametrize(
    ("schema", "given", "wire"),
    [
        (of("int"), "7", 7),
        (of("int"), '{"id": "7"}', 7),
        (of("bigint", unsigned=True), "18446744073709551615", 18446744073709551615),
        (of("varchar", length=20), "bob@example.org", "bob@example.org"),
        (of("varchar", length=20), '"007"', "007"),
        (of("varchar", length=20), '{"id": "{ä\\"}"}', '{ä"}'),
        (of("decimal", precision=10, scale=2), "5", "5.00"),
        (of("date"), "2026-01-31", "2026-01-31"),
        (of("datetime", fsp=3), "2026-01-31T10:00:00.5", "2026-01-31 10:00:00.500"),
        (of("timestamp"), "2026-01-31 10:00:00", "2026-01-31T10:00:00Z"),
        (of("time", fsp=1), "-838:59:59", "-838:59:59.0"),
        (of("binary", length=2), "0xFF00", base64.b64encode(b"\xff\0").decode()),
        (of("varbinary", length=9), "/wA=", "/wA="),
        (of("bit", length=1), "1", True),
        (of("bit", length=9), "0x0101", "AQE="),
        (of("enum", members=("a", "b")), "b", "b"),
        (of("varchar", length=64, mask="hash"), "5", hmac.new(SECRET, b"5", hashlib.sha256).hexdigest()),
    ],
)
def test_a_value_becomes_what_records_have(schema: TableSchema, given: str, wire: object) -> None:
    assert texts(given, schema) == [wire]


def test_a_list_of_any_form_in_the_order_of_the_key() -> None:
    assert texts('["1", 2, {"id": 3}, "{\\"id\\": 4}", ""]', of("int")) == [1, 2, 3, 4]
    lines = table(Column(name="region", type="varchar", length=5), Column(name="n", type="bigint"))
    [key] = keys_of('{"n": 7, "region": "ü/"}', lines)
    assert (key.text, key.values) == ('{"region":"ü/","n":7}', {"region": "ü/", "n": 7})


@pytest.mark.parametrize(
    ("schema", "given", "says"),
    [
        (of("int"), "", "no key is given; its key is (id)"),
        (of("int"), "seven", "shop.t: key 1: its id is no int: digits are expected"),
        (of("tinyint"), "[1, 128]", "key 2: its id is no tinyint: it is beyond -128 to 127"),
        (of("int", unsigned=True), "-1", "no int unsigned"),
        (of("int"), "1.5", "digits are expected"),
        (of("int"), '{"idd": 1}', "key 1 has the columns idd; the key has id"),
        (of("int"), "{1", "key 1 is no JSON"),
        (of("date"), "31.1.2026", "no date"),
        (of("decimal", precision=5, scale=1), "0.25", "more than 1 digits"),
        (of("varchar", length=3), "abcd", "it has 4 characters, the column has 3"),
        (of("binary", length=3), "0x00", "it has 1 bytes"),
        (of("enum", members=("a",)), "b", "none of its members"),
        (table(), "1", "has no key"),
        (table(Column(name="a", type="int"), Column(name="b", type="int")), "1", "the key has the columns a, b"),
    ],
)
def test_what_is_no_key_is_told_without_its_value(schema: TableSchema, given: str, says: str) -> None:
    with pytest.raises(ErasedKeyError) as error:
        keys_of(given, schema)
    assert says in str(error.value)
    for value in ("seven", "31.1.2026", "abcd", "0.25"):
        assert value not in str(error.value)
