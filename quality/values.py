"""What a CHECK constraint begins with: columns, numbers, and moments written as texts."""

from __future__ import annotations

import re
from datetime import datetime

from contract import types
from contract.schema import Column
from quality.operands import DIGITS, Operand, UntranslatableError

WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint")
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?")


def column_value(column: Column, name: str) -> Operand:
    if types.may_not_fit(column) and column.unfit == "string":
        raise UntranslatableError(f"{name} is a text in the lake (lake.unrepresentable)")
    if column.type in WHOLE:
        return Operand("number", name, whole=20)
    if column.type == "decimal" and (column.precision or 10) <= DIGITS:
        scale = column.scale or 0
        return Operand("number", name, (column.precision or 10) - scale, scale)
    if column.type == "year":
        return Operand("year", name, whole=4)
    if column.type in ("date", "datetime"):
        return Operand(column.type, name, lossy=column.unfit == "null")
    if column.type in TEXTS:
        return Operand("text", name)
    raise UntranslatableError(f"{name} is {column.type}, which may compare in another way")


def number(told: str) -> Operand:
    whole, _, fraction = told.partition(".")
    return Operand("number", f"{told}BD", len(whole), len(fraction), None if fraction else int(whole))


def moment(told: str) -> Operand:
    if not MOMENT.fullmatch(told) or not _is_moment(told):
        raise UntranslatableError("texts are compared by a collation")
    return Operand("moment", f"timestamp_ntz'{told}'", timed=len(told) > 10)


def _is_moment(told: str) -> bool:
    """Of the calendar: the 30th of February is none."""
    try:
        datetime.fromisoformat(told)
    except ValueError:
        return False
    return True
