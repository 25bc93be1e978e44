"""What a person writes in the form of a repair: the rows that are meant, in both SQLs, or why nothing can be meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.masks import Mask
from contract.pipeline_columns import Columns, Shown
from contract.schema import Column, TableSchema
from spark.errors import LakeError
from spark.mending import wanted
from tests.spark.changes_by_hand import ITEMS, LINES

ALL = Columns()


def table(kind: str, **facts: Any) -> TableSchema:
    return TableSchema(db="shop", table="t", columns=(Column(name="k", type=kind, **facts),), key=("k",))


def asked(sql: str) -> tuple[str, ...]:
    assert sql == "SELECT hex(convert(_utf8mb4 x'e282ac' using latin1))"
    return ("80",)


@pytest.mark.parametrize(
    ("schema", "text", "keys", "condition"),
    [
        (ITEMS, "[1, 2, 1]", ('{"id":1}', '{"id":2}'), "(k0 = 1) or (k0 = 2)"),
        (LINES, '[["ü", 7]]', ('{"region":"ü","n":7}',), "(k0 = _utf8mb4 x'c3bc' and k1 = 7)"),
        (LINES, '[{"n": 7, "region": "a"}]', ('{"region":"a","n":7}',), "(k0 = _utf8mb4 x'61' and k1 = 7)"),
        (table("binary", length=2), '["AAE="]', ('{"k":"AAE="}',), "(k0 = x'0001')"),
        (table("date"), '["2026-01-02"]', ('{"k":"2026-01-02"}',), "(k0 = '2026-01-02')"),
        (
            table("timestamp", fsp=3), '["2026-01-02 01:00:00.5+01:00"]', ('{"k":"2026-01-02T00:00:00.500Z"}',),
            "(k0 = '2026-01-02 00:00:00.500')",
        ),
        (
            table("datetime"), '["2026-01-02 01:00", "2026-01-02 01:00:00.000"]', ('{"k":"2026-01-02 01:00:00"}',),
            "(k0 = '2026-01-02 01:00:00')",
        ),
        (table("decimal", precision=9, scale=2), '["1.50"]', ('{"k":"1.50"}',), "(k0 = _utf8mb4 x'312e3530')"),
        (table("bit", length=9), '["AQA="]', ('{"k":"AQA="}',), "(k0 = 256)"),
        (table("char", length=2, charset="latin1"), '["€"]', ('{"k":"€"}',), "(k0 = _latin1 x'80')"),
        (
            table("decimal", precision=9, scale=2), '["1.5", 1]', ('{"k":"1.50"}', '{"k":"1.00"}'),
            "(k0 = _utf8mb4 x'312e3530') or (k0 = _utf8mb4 x'312e3030')",
        ),
        (
            table("inet6"), '["0:0::1"]', ('{"k":"::1"}',), "(k0 = cast(_utf8mb4 x'3a3a31' as inet6))",
        ),
    ],
)  # fmt: skip
def test_keys_as_records_have_them_and_as_the_source_is_asked(
    schema: TableSchema, text: str, keys: tuple[str, ...], condition: str
) -> None:
    chosen = wanted.keys(schema, text)
    assert chosen.keys == keys
    assert wanted.source_condition(schema, [json.loads(key) for key in keys], asked) == condition


UUID = "0A1B2C3D4E5F60718293A4B5C6D7E8F9"


@pytest.mark.parametrize(
    ("schema", "given", "key"),
    [
        (table("uuid"), UUID, "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
        (table("inet4"), "10.0.0.1", "10.0.0.1"),
        (table("time", fsp=3), "12:30:00", "12:30:00.000"),
        (table("time", fsp=3), "-838:59:59.5", "-838:59:59.500"),
        (table("char", length=4), "ab  ", "ab"),
        (table("set", members=("x", "y")), "y,x", "x,y"),
        (table("decimal", precision=9, scale=2), "-0", "0.00"),
        (table("binary", length=2), "0x0001", "AAE="),
        (table("varbinary", length=9), "0xQB", "0xQB"),
        (table("decimal", precision=6, scale=2), "1e3", "1000.00"),
    ],
)
def test_a_key_in_another_spelling_is_the_one_that_records_have(schema: TableSchema, given: str, key: str) -> None:
    assert wanted.keys(schema, json.dumps([given])).keys == (json.dumps({"k": key}, separators=(",", ":")),)


def test_what_an_enum_keeps_of_a_value_that_is_none_is_a_key() -> None:
    assert wanted.keys(table("enum", members=("x",)), '[{"k": ""}, [""]]').keys == ('{"k":""}',)


def test_a_masked_key_is_taken_as_records_have_it() -> None:
    hashed = table("char", length=2, mask="hash")
    assert wanted.keys(hashed, '["5d41402abc"]').keys == ('{"k":"5d41402abc"}',)


@pytest.mark.parametrize(
    ("schema", "text", "told"),
    [
        (ITEMS, "1, 2", "is no JSON"),
        (ITEMS, "{}", "is no list of keys"),
        (ITEMS, "[]", "is no list of keys"),
        (
            ITEMS,
            '["1, 2"]',
            r"^key 1 \(this job's log has it\) is no value of shop.items.id, which is int: it is to be a whole number",
        ),
        (ITEMS, '["", " "]', "is no list of keys"),
        (ITEMS, '[7, "[1, 2]"]', "^key 2 .* is no value of shop.items.id, which is int: it is to be a whole number"),
        (LINES, '["a"]', "has 1 value, that of shop.lines has region, n"),
        (LINES, '["{a: 1}"]', "is no JSON: Expecting property name"),
        (table("bit", length=1), '["yes"]', "it is to be true or false"),
        (table("decimal", precision=9, scale=2), '["1.505"]', "which is decimal: it has more than 2 digit"),
        (table("decimal", precision=9, scale=2), '["much"]', "which is decimal: it is to be a number"),
        (ITEMS, "[true]", "it is to be a whole number"),
        (ITEMS, "[2147483648]", "it holds -2147483648 to 2147483647"),
        (LINES, "[1]", "has 1 value, that of shop.lines has region, n"),
        (LINES, '[{"region": "a", "m": 1}]', "has not the columns of the key of shop.lines: region, n"),
        (LINES, '[["a", -1]]', "which is bigint unsigned: it holds 0 to"),
        (table("date"), '["2026-02-30"]', "which is date: day"),
        (table("timestamp"), '["2026-01-01 00:00:00"]', "it needs a time zone"),
        (table("timestamp"), '["9999-12-31T23:59:59-12:00"]', "which is timestamp: date value out of range"),
        (table("timestamp"), '["0001-01-01T00:00:00+12:00"]', "which is timestamp: date value out of range"),
        (table("timestamp", fsp=3), '["2026-01-01T00:00:00.0005Z"]', "which is timestamp: it has 3 digits"),
        (table("datetime"), '["2026-01-01 00:00:00.7"]', "which is datetime: it has no digit"),
        (table("timestamp", fsp=6), '["2026-01-01T00:00:00.0000001Z"]', "which is timestamp: it has 6 digit"),
        (table("varbinary", length=9), '["???"]', "which is varbinary"),
        (table("time"), '["1:2"]', "which is time: it is not written as one"),
        (table("enum", members=("x",)), '["z"]', "which is enum: it is none of its members"),
        (table("time"), '["839:00:00"]', "which is time: it is not written as one"),
        (table("decimal", precision=6, scale=2), '["99999999"]', "it has more than 4 digits before the point"),
        (table("decimal", precision=6, scale=2), '["1e999999999"]', "it has more than 4 digits before the point"),
        (table("binary", length=4), '["AAE="]', "which is binary: it has 2 bytes, the column has 4"),
    ],
)
def test_what_is_no_key_is_told_by_its_number(schema: TableSchema, text: str, told: str) -> None:
    with pytest.raises(LakeError, match=told):
        wanted.keys(schema, text)


WRITTEN = ("ann@exämple.org", {"k": "ann@exämple.org"}, "{ann@exämple.org", "1980-01-01\texämple", '1980 \'exämple" "')


@pytest.mark.parametrize(
    "schema",
    [
        ITEMS, LINES, table("date"), table("datetime"), table("timestamp"), table("time"), table("uuid"),
        table("inet6"), table("decimal", precision=9, scale=2), table("enum", members=("x",)), table("year"),
        table("bit", length=3), table("char", length=3), table("varchar", length=3), table("binary", length=3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("written", WRITTEN)
def test_an_error_has_no_value_of_a_key_and_the_jobs_log_has(
    capsys: pytest.CaptureFixture[str], schema: TableSchema, written: object
) -> None:
    """Of a key that is somebody's address, which goes to a webhook with the error."""
    with pytest.raises(LakeError) as caught:
        wanted.keys(schema, json.dumps([written]))
    assert "exämple" not in str(caught.value)
    assert "exämple" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("schema", "lines", "keys"),
    [
        (ITEMS, ["1", " 2 ", "", "-3"], ('{"id":1}', '{"id":2}', '{"id":-3}')),
        (ITEMS, ['{"id": 7}'], ('{"id":7}',)),
        (LINES, ['{"region": "ü", "n": 7}', '["eu", 8]'], ('{"region":"ü","n":7}', '{"region":"eu","n":8}')),
        (table("varchar", length=9), ["7", "[1]", " a"], ('{"k":"7"}', '{"k":"[1]"}', '{"k":" a"}')),
        (table("bit", length=1), ["true", "0"], ('{"k":true}', '{"k":false}')),
        (table("date"), ["2026-01-02 "], ('{"k":"2026-01-02"}',)),
    ],
)
def test_lines_of_a_form_are_what_their_column_is(schema: TableSchema, lines: list[str], keys: tuple[str, ...]) -> None:
    assert wanted.keys(schema, json.dumps(lines)).keys == keys


def test_a_range_has_both_ends_and_may_be_open() -> None:
    both = wanted.span(ALL.show(ITEMS), "1", "20")
    assert both.where == "`id` >= cast('1' as bigint) and `id` <= cast('20' as bigint)"
    assert both.within == "`id` >= 1 and `id` <= 20"
    moment = wanted.span(ALL.show(table("timestamp")), "2026-01-01T00:00:00Z", "")
    assert moment.where == "`k` >= cast('2026-01-01T00:00:00Z' as timestamp)"
    assert moment.within == "`k` >= '2026-01-01 00:00:00'"
    finer = wanted.span(ALL.show(table("datetime")), "", "2026-01-01 23:59:59.999999")
    assert finer.within == "`k` <= '2026-01-01 23:59:59'"


@pytest.mark.parametrize(
    ("shown", "low", "high", "told"),
    [
        (ALL.show(ITEMS), "20", "3", "the wrong way round: from 20 to 3. Nothing was read"),
        (ALL.show(ITEMS), "x", "", "'x' is no value of shop.items.id"),
        (ALL.show(LINES), "a", "b", "its key begins with region, varchar, which the source sorts in another way"),
        (Shown(ITEMS, ITEMS, {"id": Mask("hash")}), "1", "2", "its key begins with id, int with a mask"),
    ],
)
def test_a_range_that_cannot_be_is_told(shown: Shown, low: str, high: str, told: str) -> None:
    with pytest.raises(LakeError, match=told):
        wanted.span(shown, low, high)


def test_a_half_of_a_character_is_no_value() -> None:
    words = TableSchema(
        db="shop", table="w", version=1, key=("word",), columns=(Column(name="word", type="varchar", length=9),)
    )
    with pytest.raises(LakeError, match="it has a half of a character, which no server keeps"):
        wanted.keys(words, '["\\ud800"]')
