"""CHECK constraints of MySQL and MariaDB as conditions of Spark SQL. Pure: text in, text out, or why not.

Only what means the same in both is translated: comparisons and sums of numbers, dates and times, and lengths of texts.
A text compared as a text is not: the server compares by a collation, to which `A` may be `a`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from contract.schema import Column, TableSchema

NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year")
MOMENTS = ("date", "datetime")
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
WORDS = {"and", "or", "not", "in", "between", "is", "null", "true", "false"}
LENGTH = {"char_length": "char_length", "character_length": "char_length"}
TOKEN = re.compile(
    r"\s*(?:(?P<column>`(?:[^`]|``)+`)|(?P<number>\d+(?:\.\d+)?)|(?P<sign><=|>=|<>|!=|[=<>(),+-])"
    r"|(?P<text>(?:_\w+)?\\?'(?P<inside>[-\d :.]*)\\?')|(?P<word>[A-Za-z_]\w*))"
)


class UntranslatableError(ValueError):
    """A constraint that may mean another thing in Spark, with the reason."""


def translated(clause: str, schema: TableSchema) -> str:
    """Spark SQL that is false for the rows that break the constraint. Raises UntranslatableError."""
    columns = {column.name.lower(): column for column in schema.columns}
    at, told, within = 0, [], ""
    while at < len(clause.rstrip()):
        found = TOKEN.match(clause, at)
        if found is None:
            raise UntranslatableError(f"{clause[at:].strip().split()[0]!r} is not translated")
        told.append(_token(found, columns, within))
        word = (found["word"] or "").lower()
        within = word if word in LENGTH else within if within and found["sign"] == "(" else ""
        at = found.end()
    return " ".join(told)


def _token(found: re.Match[str], columns: Mapping[str, Column], within: str) -> str:
    if found["column"]:
        return _column(found["column"], columns, within)
    if found["word"]:
        word = found["word"].lower()
        if word in LENGTH:
            return LENGTH[word]
        if word not in WORDS:
            raise UntranslatableError(f"{word} is not translated")
        return word
    if found["text"]:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?", found["inside"]):
            raise UntranslatableError("texts are compared by a collation")
        return f"timestamp_ntz'{found['inside']}'"
    return found["number"] or found["sign"]


def _column(name: str, columns: Mapping[str, Column], within: str) -> str:
    column = columns.get(name[1:-1].replace("``", "`").lower())
    if column is None or column.mask:
        raise UntranslatableError(f"the lake does not have the values of {name}")
    allowed = TEXTS if within else (*NUMBERS, *MOMENTS)
    if column.type not in allowed:
        raise UntranslatableError(f"{name} is {column.type}, which may compare in another way")
    if column.unfit == "string":
        raise UntranslatableError(f"{name} is a text in the lake (lake.unrepresentable)")
    return name
