"""Keys as people write them, as records have them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from contract import masks
from contract.erased_key import ErasedKeyError, findable, keys_of, text_in
from contract.masks import Mask
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
        (of("year"), "[0]", 0),
        (of("bigint", unsigned=True), "18446744073709551615", 18446744073709551615),
        (of("varchar", length=20), "bob@example.org", "bob@example.org"),
        (of("varchar", length=20), '"007"', "007"),
        (of("varchar", length=20), '{"id": "{ä\\"}"}', '{ä"}'),
        (of("decimal", precision=10, scale=2), "5", "5.00"),
        (of("date"), "2026-01-31", "2026-01-31"),
        (of("datetime", fsp=3), "2026-01-31T10:00:00.5", "2026-01-31 10:00:00.500"),
        (of("timestamp"), "2026-01-31 10:00:00", "2026-01-31T10:00:00Z"),
        (of("time", fsp=1), "-838:59:59", "-838:59:59.0"),
        (of("datetime", fsp=3), "2026-01-31 23:59:59.123000", "2026-01-31 23:59:59.123"),
        (of("date"), "0000-00-00", "0000-00-00"),
        (of("date"), "2026-00-10", "2026-00-10"),
        (of("date"), "2026-02-30", "2026-02-30"),
        (of("datetime"), "2026-02-30 10:00:00", "2026-02-30 10:00:00"),
        (of("timestamp", fsp=1), "0000-00-00 00:00:00", "0000-00-00T00:00:00.0Z"),
        (of("time"), "000:00:59", "00:00:59"),
        (of("time"), "-012:00:00", "-12:00:00"),
        (of("time"), "-00:00:00", "00:00:00"),
        (of("binary", length=2), "0xFF00", base64.b64encode(b"\xff\0").decode()),
        (of("varbinary", length=9), "/wA=", "/wA="),
        (of("bit", length=1), "1", True),
        (of("bit", length=9), "0x0101", "AQE="),
        (of("enum", members=("a", "b")), "b", "b"),
        (of("enum", members=("a", "b")), '[{"id": ""}]', ""),
        (of("set", members=("b", "a", "c")), "a,b,a", "b,a"),
        (of("set", members=("b", "a", "c")), '[{"id": ""}]', ""),
        (of("decimal", precision=5, scale=1), "-0", "0.0"),
        (of("decimal", precision=5, scale=1), "0.000", "0.0"),
        (of("decimal", precision=5, scale=1), "0e999999999", "0.0"),
        (of("decimal", precision=5, scale=1), "-9999.9", "-9999.9"),
        (of("decimal", precision=2, scale=2), "0.99", "0.99"),
        (of("decimal", precision=40, scale=4), f"{'9' * 36}.123400", f"{'9' * 36}.1234"),
        (of("decimal", precision=40, scale=4), "1e30", f"1{'0' * 30}.0000"),
        (of("char", length=3), '"bob  "', "bob"),
        (of("varchar", length=5), '"bob  "', "bob  "),
        (of("varchar", length=9), '[{"id": 123e4567}]', "123e4567"),
        (of("varchar", length=9), "[1.50]", "1.50"),
        (of("varchar", length=9), "[-0]", "-0"),
        (of("uuid"), "123E4567E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        (of("inet4"), "10.0.0.7", "10.0.0.7"),
        (of("inet6"), "0:0:0:0:0:0:0:1", "::1"),
        (of("inet6"), "2001:0DB8::FFFF", "2001:db8::ffff"),
        (of("inet6"), "::ffff:a00:7", "::ffff:10.0.0.7"),
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
        (of("year"), "99", "it is beyond 1901 to 2155, and not 0"),
        (of("int"), '{"idd": 1}', "key 1 has the columns idd; the key has id"),
        (of("int"), "{1", "key 1 is no JSON"),
        (of("date"), "31.1.2026", "no date"),
        (of("decimal", precision=5, scale=1), "0.25", "more than 1 digits"),
        (of("decimal", precision=40, scale=4), f"{'1' * 30}.123456", "more than 4 digits"),
        (of("decimal", precision=6, scale=2), "99999999", "more than 4 digits before the point"),
        (of("decimal", precision=2, scale=2), "1", "more than 0 digits before the point"),
        (of("decimal"), "1e999999999", "more than 10 digits before the point"),
        (of("decimal"), "-1e-999999999", "more than 0 digits behind the point"),
        (of("decimal"), "Infinity", "no decimal"),
        (of("varchar", length=3), "abcd", "it has 4 characters, the column has 3"),
        (of("varchar", length=3), '["\\ud800"]', "it has a half of a character, which no server keeps"),
        (of("varchar", length=3), '{"id": ' + 9999 * "[", "key 1 is no JSON: it goes too deep"),
        (of("binary", length=3), "0x00", "it has 1 bytes"),
        (of("enum", members=("a",)), "b", "none of its members"),
        (of("set", members=("a",)), "a,b", "not each is one of its members"),
        (of("uuid"), "abcd", "no uuid: 32 hexadecimal digits are expected"),
        (of("inet4"), "abcd", "no inet4: it is not written as one"),
        (of("inet6"), "fe80::1%abcd", "no inet6: it is not written as one"),
        (of("varchar", length=64, mask="hash"), "7", "its key is hashed, and the pipeline file has no columns.secret"),
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


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("date", "2026-13-01"), ("date", "2026-12-32"), ("date", "２０２６-01-01"),
        ("datetime", "2026-01-01 24:00:00"), ("datetime", "2026-01-01 23:60:00"), ("datetime", "2026-01-01 23:59:60"),
        ("datetime", "2026-13-45 00:00:00"), ("timestamp", "2026-02-30 00:00:00"), ("timestamp", "2026-00-01 00:00:00"),
        ("timestamp", "0000-00-00 00:00:01"), ("time", "839:00:00"), ("time", "-999:59:59"), ("time", "12:61:00"),
        ("time", "12:00:61"),
    ],
)  # fmt: skip
def test_a_moment_that_no_server_has_is_no_key(kind: str, given: str) -> None:
    with pytest.raises(ErasedKeyError, match=f"key 1: its id is no {kind}: it is n") as error:
        keys_of(json.dumps(given), of(kind))
    assert given not in str(error.value)


def hashed(text: str) -> str:
    return hmac.new(SECRET, text.encode(), hashlib.sha256).hexdigest()


def shown(schema: TableSchema) -> TableSchema:
    """With a mask of its key."""
    return schema.model_copy(update={"columns": tuple(masks.shown(one, Mask("hash")) for one in schema.columns)})


@pytest.mark.parametrize(
    ("source", "given", "wire"),
    [
        (of("binary", length=2), '"0xABCD"', "q80="),
        (of("decimal", precision=6, scale=2), '"1.5"', "1.50"),
        (of("decimal", precision=6, scale=2), "1.5", "1.50"),
        (of("timestamp"), '"2026-01-01 10:00:00"', "2026-01-01T10:00:00Z"),
        (of("datetime", fsp=3), '"2026-01-01 10:00:00"', "2026-01-01 10:00:00.000"),
        (of("int"), '"007"', "7"),
        (of("bit", length=1), "1", "true"),
        (of("uuid"), '"123E4567-E89B-12D3-A456-426614174000"', "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_a_masked_key_is_written_as_the_same_key_without_a_mask(source: TableSchema, given: str, wire: str) -> None:
    [plain] = keys_of(given, source)
    [found] = keys_of(given, shown(source), SECRET, source)
    assert (json.loads(found.text)["id"], found.values) == (hashed(wire), plain.values)
    assert text_in(source, found, b"") == plain.text, "as records had it before the mask"
    assert text_in(shown(source), plain, SECRET) == found.text


def test_without_the_sources_columns_a_masked_value_is_taken_as_it_is_written() -> None:
    [found] = keys_of("1.5", shown(of("decimal", precision=6, scale=2)), SECRET)
    assert json.loads(found.text)["id"] == hashed("1.5")


def test_a_value_that_a_masked_column_cannot_have_is_refused_as_the_sources() -> None:
    with pytest.raises(ErasedKeyError, match="its id is no int: digits are expected"):
        keys_of('"seven"', shown(of("int")), SECRET, of("int"))


def test_of_which_shapes_records_tell_a_key() -> None:
    plain, [wide] = of("varchar", length=3), keys_of('"wide"', of("varchar", length=9))
    assert text_in(plain, wide, SECRET) is None, "no value there is so long"
    hidden = plain.model_copy(update={"columns": (masks.shown(plain.columns[0], Mask("truncate", 2)),)})
    shapes = [plain, shown(plain), hidden, table(Column(name="other", type="int"))]
    assert [findable(shape, ("id",), SECRET) for shape in shapes] == [True, True, False, False]
    assert not findable(shown(plain), ("id",), b"")
