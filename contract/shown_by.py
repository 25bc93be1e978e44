"""The rules by which rows are shown, one by one, as a checkpoint keeps them: so that a change of them is known to be
about some tables and not about the others."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from contract import patterns

EVERY = "*.*"


class Rule(BaseModel):
    """`tables`: patterns of `db.table` that it may be about. `mark`: a hash of what it does."""

    model_config = ConfigDict(frozen=True)

    tables: tuple[str, ...]
    mark: str


def changed(before: tuple[Rule, ...] | None, after: tuple[Rule, ...]) -> tuple[str, ...]:
    """Patterns of the tables that are shown otherwise by `after`; of all where `before` is not known."""
    if before is None:
        return (EVERY,)
    kept, still = [rule for rule in before if rule in after], [rule for rule in after if rule in before]
    others = [rule for rule in (*before, *after) if rule not in before or rule not in after]
    if kept != still:  # of several rules the first one counts, and transforms are applied in their order
        others += kept
    return tuple(dict.fromkeys(name for rule in others for name in rule.tables))


def chooses(tables: Iterable[str], db: str, table: str) -> bool:
    """Without regard to case, as a column's rule is."""
    return patterns.any_matches(tables, db, table, ignore_case=True)


def table_of(pattern: str) -> str:
    """The pattern of a column's table; of all tables where only the column tells."""
    return EVERY if patterns.is_regex(pattern) else pattern.rpartition(".")[0]
