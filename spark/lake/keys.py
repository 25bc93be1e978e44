"""A row's key as text, made from the lake's typed columns: a JSON object of wire values, as records have it."""

from __future__ import annotations

from contract import types
from contract.names import quoted
from contract.schema import Column, TableSchema

SPELLED = ("0b", "0e", "0f", "1a", "1b", "1c", "1d", "1e", "1f")  # of control characters; the others are digits alone


def key_json(schema: TableSchema, struct: str = "") -> str:
    """Spark SQL. `struct`: the column that holds the row's columns; empty: they are the row's own."""
    inside = quoted(struct) + "." if struct else ""
    fields = []
    for name in schema.key:
        fields += [f"'{_escaped(name)}'", _wire(schema.column(name), inside + quoted(name))]
    made = f"to_json(named_struct({', '.join(fields)}), map('ignoreNullFields', 'false'))"
    texts = any(types.of(schema.column(name)).spark == "string" for name in schema.key)
    return _in_small_letters(made) if texts else made


def _in_small_letters(json: str) -> str:
    """Spark writes a control character as \\u001F, records have \\u001f. What is behind an escaped backslash is
    text."""
    made = "k"
    for code in SPELLED:
        made = rf"regexp_replace({made}, r'(?<!\\)((?:\\\\)*)\\u00{code.upper()}', r'$1\\u00{code}')"
    return rf"transform(array({json}), k -> if(instr(k, r'\u00') > 0, {made}, k))[0]"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


def _wire(column: Column, x: str) -> str:
    """Back from the lake's value to that of records (contract/types.py)."""
    made = types.of(column)
    text = made.checksum_spark or "cast({} as string)".format
    if made.spark == "string":
        return x
    if made.spark == "binary":
        return rf"translate(base64({x}), '\r\n', '')"  # Spark breaks it into lines of 76 characters
    if column.type == "timestamp":
        return f"concat(replace({text(x)}, ' ', 'T'), 'Z')"
    if made.spark in ("date", "timestamp_ntz") or column.type == "decimal":
        return text(x)
    return x
