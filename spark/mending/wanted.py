"""Which rows a person means: keys, or a range of the key, as the form of a DAG or the command line has them.

In: texts. Out: `Chosen`, in Spark's SQL and in the source's. Raises LakeError for what cannot be meant, before anything
is read. A key that is wrong is told by its number, the job's log alone has it: an error goes to alerts and their
webhook, and a key may be what nobody is to read there. The ends of a range, numbers and moments, are told.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import InvalidOperation
from typing import Any

from contract import types
from contract.chosen_rows import DIGITS, ChosenRowsError, key_list, turned
from contract.counted import counted
from contract.erased_key import told
from contract.key_values import HALVED, is_halved, value_of
from contract.names import quoted
from contract.pipeline_columns import Shown
from contract.schema import Column, TableSchema
from spark.errors import LakeError
from spark.merging.parts import Chosen, wire_text
from spark.proof.splits import INTEGERS
from spark.source import chunks
from spark.source.charsets import Ask, coded_of, converted

MOMENTS = ("date", "datetime", "timestamp")
BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
WORDS = {str: "a text", int: "a whole number", bool: "true or false"}


class NoValueError(ValueError):
    """What is wrong with a value, without the value."""


def keys(schema: TableSchema, text: str) -> Chosen:
    """`text`: a JSON list; each key a value, a list of the key's values in order, or an object by column. Each may be a
    line of a form, a text of the same; empty ones are none."""
    try:
        wanted = key_list(text)
    except ChosenRowsError as error:
        raise LakeError(str(error)) from None
    found = dict.fromkeys(wire_text(_numbered(schema, at, one)) for at, one in enumerate(wanted, 1))
    return Chosen(counted(len(found), "key"), keys=tuple(found))


def _numbered(schema: TableSchema, at: int, given: Any) -> dict[str, object]:
    try:
        return _key(schema, _line(schema, given))
    except NoValueError as error:
        print(f"key {at} is written {given!r}", flush=True)
        raise LakeError(f"key {at} (this job's log has it) {error}") from None


def _line(schema: TableSchema, given: Any) -> Any:
    """A text that is an object of the key's columns is one; where there are several columns, a list of their values is
    one too: of one column a bracket may be a text's own."""
    brackets = "{[" if len(schema.key) > 1 else "{"
    if not isinstance(given, str) or given.strip()[0] not in brackets:
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise NoValueError(f"is no JSON: {error}") from None


def _key(schema: TableSchema, given: Any) -> dict[str, object]:
    name, values = f"{schema.db}.{schema.table}", given
    if isinstance(given, dict):
        if {*given} != {*schema.key}:
            raise NoValueError(f"has not the columns of the key of {name}: {', '.join(schema.key)}")
        values = [given[column] for column in schema.key]
    elif not isinstance(given, list):
        values = [given]
    if len(values) != len(schema.key):
        raise NoValueError(f"has {counted(len(values), 'value')}, that of {name} has {', '.join(schema.key)}")
    return {column: _whole(schema, column, value) for column, value in zip(schema.key, values, strict=True)}


def _whole(schema: TableSchema, name: str, value: Any) -> object:
    """As _wire, but of a moment between two that the column can hold: the key of another row would be meant."""
    column = schema.column(name)
    found = _wire(schema, name, value)
    if column.type in ("datetime", "timestamp"):
        meant = _moment(column.model_copy(update={"fsp": 6}), value.strip())
        finer = re.search(r"[.,]\d{6}0*[1-9]", value)  # than Python reads
        if finer or datetime.fromisoformat(meant) != datetime.fromisoformat(str(found)):
            digits = counted(column.fsp, "digit") if column.fsp else "no digits"
            raise _no_value(schema, column, f"it has {digits} behind the second")
    return found


def _wire(schema: TableSchema, name: str, value: Any) -> object:
    """The value as records have it."""
    column = schema.column(name)
    made = types.of(column)
    if isinstance(value, str) and is_halved(value):
        raise _no_value(schema, column, HALVED)
    try:
        if column.type in (*INTEGERS, "year"):
            return _integer(column, value)
        if made.wire == "boolean":
            return _only(TRUTHS.get(value, value) if isinstance(value, str) else value, bool)
        if column.type in MOMENTS:
            return _moment(column, _only(value, str).strip())
        text = _only(value, str, int) if column.type == "decimal" else _only(value, str)
        return text if column.mask else value_of(column, text)[0]
    except InvalidOperation:
        raise _no_value(schema, column, "it is to be a number") from None
    except (OverflowError, TypeError, ValueError) as error:  # of a moment that UTC has beyond the calendar's end, too
        raise _no_value(schema, column, str(error)) from None


def _no_value(schema: TableSchema, column: Column, why: str) -> NoValueError:
    return NoValueError(f"is no value of {schema.db}.{schema.table}.{column.name}, which is {told(column)}: {why}")


def _only(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:  # True is an int
        raise TypeError(f"it is to be {' or '.join(WORDS[kind] for kind in kinds)}")
    return value


def _integer(column: Column, value: Any) -> int:
    written = isinstance(value, str) and DIGITS.fullmatch(value)
    number = int(value if written else _only(value, int))
    bits = BITS.get(column.type, 16)
    low, high = (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= number <= high:
        raise ValueError(f"it holds {low} to {high}")
    return number


def _moment(column: Column, text: str) -> str:
    """As a record has it, without digits of a second that the column has not. Raises OverflowError, ValueError."""
    try:
        moment = datetime.fromisoformat(text) if column.type != "date" else date.fromisoformat(text)
    except ValueError as error:  # some of Python's words have the value
        raise ValueError("it is not written as one" if "isoformat string" in str(error) else str(error)) from None
    if not isinstance(moment, datetime):
        return moment.isoformat()
    if column.type == "datetime":
        if moment.tzinfo is not None:
            raise ValueError("it has no time zone")
        return _digits(column, moment, " ")
    if moment.tzinfo is None:
        raise ValueError("it needs a time zone, such as Z")
    return _digits(column, moment.astimezone(UTC).replace(tzinfo=None), "T") + "Z"


def _digits(column: Column, moment: datetime, between: str) -> str:
    text = moment.isoformat(between, "microseconds")
    return text[: len("yyyy-MM-dd HH:mm:ss.") + column.fsp] if column.fsp else text[: len("yyyy-MM-dd HH:mm:ss")]


def span(shown: Shown, low: str, high: str) -> Chosen:
    """The rows whose key's first column is `low` to `high`, both of them too; empty: from its beginning, to its end."""
    schema = shown.schema
    name = f"{schema.db}.{schema.table}"
    column = schema.column(schema.key[0])
    if column.type not in (*INTEGERS, *MOMENTS) or not own_key(shown):
        raise LakeError(
            f"a range of {name} cannot be told: its key begins with {column.name}, {column.type}"
            f"{' with a mask' if column.name in shown.masks else ''}, which the source sorts in another way than the "
            "lake does. Name the keys, or take the whole table"
        )
    ends = [_end(schema, column, text) for text in (low, high)]
    if None not in ends and ends[0] > ends[1]:  # type: ignore[operator]
        raise LakeError(str(turned(f"the range of {name}", low, high)))
    told = f"{column.name} from {low or 'the beginning'} to {high or 'the end'}"
    signs = [(sign, end) for sign, end in zip((">=", "<="), ends, strict=True) if end is not None]
    lake = " and ".join(f"{quoted(column.name)} {sign} {_lake_literal(column, end)}" for sign, end in signs)
    source = " and ".join(f"{quoted(column.name)} {sign} {_source_literal(column, end)}" for sign, end in signs)
    return Chosen(told, where=lake or "true", within=source or "1 = 1")


def _end(schema: TableSchema, column: Column, text: str) -> Any:
    if not text:
        return None
    try:
        return _wire(schema, column.name, text)
    except NoValueError as error:
        raise LakeError(f"{text!r} {error}") from None


def _lake_literal(column: Column, value: object) -> str:
    return f"cast('{value}' as {types.of(column).spark})"


def _source_literal(column: Column, value: object) -> str:
    return str(value) if column.type in INTEGERS else f"'{str(value).replace('T', ' ').rstrip('Z')}'"


def own_key(shown: Shown) -> bool:
    """Whether the source can be asked by the key: it is the table's own, without a mask."""
    return shown.schema.key == shown.source.key and not any(name in shown.masks for name in shown.schema.key)


def source_condition(schema: TableSchema, keys: list[dict[str, Any]], ask: Ask) -> str:
    """SQL of the source, over k0, k1 .. of the key: the rows of these keys (wire values), and maybe such whose keys are
    alike by the column's collation. `ask` runs SQL on the source and gives the first row."""
    columns = [schema.column(name) for name in schema.key]
    texts = {(c.charset, key[c.name]) for key in keys for c in columns if converted(c)}
    coded = coded_of(sorted(texts), ask)
    each = [
        " and ".join(f"k{at} = {literal(column, key[column.name], coded)}" for at, column in enumerate(columns))
        for key in keys
    ]
    return " or ".join(f"({one})" for one in each)


def literal(column: Column, value: Any, coded: Mapping[tuple[str | None, str], str]) -> str:
    """A wire value as the source's SQL has it."""
    if isinstance(value, bool | int):
        return str(int(value))
    text = str(value)
    if (column.charset, text) in coded:
        return f"_{column.charset} x'{coded[column.charset, text]}'"
    if column.type == "bit":
        return str(int.from_bytes(base64.b64decode(text)))
    if types.of(column).spark == "binary":
        return f"x'{base64.b64decode(text).hex()}'"
    if column.type in MOMENTS:
        return f"'{text.replace('T', ' ').rstrip('Z')}'"
    if column.type in chunks.OWN:
        return f"cast(_utf8mb4 x'{text.encode().hex()}' as {column.type})"
    return f"_utf8mb4 x'{text.encode().hex()}'"
