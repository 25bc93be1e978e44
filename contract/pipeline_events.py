"""The pipeline file's section `events`: kinds of changes that are left out of the stream, by table."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from contract import patterns
from contract.patterns import TablePattern
from contract.pipeline_kafka import Section

Kind = Literal["insert", "update", "delete", "ddl", "truncate"]
CHANGES_ROWS: frozenset[Kind] = frozenset(("insert", "update", "delete", "truncate"))


class EventRule(Section):
    """Kinds that the tables' changes are left out of."""

    tables: tuple[TablePattern, ...] = Field(min_length=1)
    drop: tuple[Kind, ...] = Field(min_length=1)


def dropped(rules: tuple[EventRule, ...], db: str, table: str) -> frozenset[Kind]:
    """What any of the rules leaves out of the table's changes."""
    found = (rule.drop for rule in rules if patterns.any_matches(rule.tables, db, table))
    return frozenset(kind for kinds in found for kind in kinds)
