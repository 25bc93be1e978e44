"""The pipeline file's section `keys`: the columns by which a table's rows are known, in place of its primary key."""

from __future__ import annotations

from pydantic import Field, field_validator

from contract import patterns
from contract.mistake import MistakeError
from contract.patterns import TablePattern
from contract.pipeline_columns import ColumnRuleError, Place
from contract.pipeline_kafka import Section
from contract.schema import Column, TableSchema
from contract.types import INEXACT


class KeyRule(Section):
    """The key of the tables that the patterns choose; of several rules the first one counts."""

    tables: tuple[TablePattern, ...] = Field(min_length=1)
    columns: tuple[str, ...] = Field(min_length=1)

    @field_validator("columns")
    @classmethod
    def _once(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if len({name.casefold() for name in columns}) < len(columns):
            raise MistakeError("names a column twice", "name each column once")
        return columns


def rule_of(rules: tuple[KeyRule, ...], db: str, table: str) -> int | None:
    """The place of the table's rule."""
    return next((at for at, rule in enumerate(rules) if patterns.any_matches(rule.tables, db, table)), None)


def key_of(rules: tuple[KeyRule, ...], schema: TableSchema) -> tuple[str, ...] | None:
    """The chosen key, in the rule's order; None for a table without a rule. Raises ColumnRuleError."""
    at = rule_of(rules, schema.db, schema.table)
    if at is None:
        return None
    place: Place = ("keys", at, "columns")
    known = {column.name.casefold(): column for column in schema.columns}
    return tuple(_fit(schema, known.get(name.casefold()), name, place) for name in rules[at].columns)


def _fit(schema: TableSchema, column: Column | None, name: str, place: Place) -> str:
    full, fix = f"{schema.db}.{schema.table}.{name}", "Choose other columns"
    if column is None:
        raise ColumnRuleError(place, f"it makes {full} a part of the key, and there is no such column", fix)
    if column.nullable:
        cause = f"it makes {full} a part of the key, and the column may be NULL, which tells no row from another"
        raise ColumnRuleError(place, cause, f"{fix}, or make it NOT NULL")
    if column.type in INEXACT:
        cause = f"it makes {full} of type {column.type} a part of the key, of which no text is exact"
        raise ColumnRuleError(place, cause, fix)
    return column.name
