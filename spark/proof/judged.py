"""By which shape and which CHECK constraints the expectations judge the lake's tables.

A table of the lake is younger than what the source answered of it: a statement in between may allow what the answer's
shape does not. So the source is asked on both sides of that. What it tells alike held all the while; where it does not,
the lake's last change tells the shape, and where none does, nothing of the table is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pymysql

from contract.schema import TableSchema
from contract.status import LakeStatus
from spark.errors import LakeError
from spark.lake.stopped import Name
from spark.proof.answer import Answer
from spark.source.source import Source
from spark.tables.schema import Schemas

ROWS = "its rows"
ALTERED = "it was altered meanwhile: verify again"


@dataclass(frozen=True)
class Rules:
    """Of one table. `schema`: None where nothing of it is judged. `checks`: CHECK clauses by name; `unjudged`: what is
    left out, and why."""

    schema: TableSchema | None
    checks: Mapping[str, str]
    unjudged: Mapping[str, str]


@dataclass(frozen=True)
class Judging:
    """`before`: each table's CHECK clauses, as they were before the source answered."""

    source: Source
    before: Mapping[str, Mapping[str, str]]

    @classmethod
    def begun(cls, source: Source, tables: Iterable[Name]) -> Judging:
        return cls(source, {f"{db}.{table}": source.checks(db, table) for db, table in tables})

    def rules(self, answer: Answer, later: TableSchema | None, columns: Iterable[str]) -> Rules:
        """For a table that the lake has by now, with these columns. `later`: as of `last_shape`."""
        db, table = answer.schema.db, answer.schema.table
        try:
            self.source.awake()
            now, checks = self.source.schema(db, table), self.source.checks(db, table)
        except (pymysql.Error, OSError, LakeError) as error:  # the comparison is not to be lost for that
            return Rules(None, {}, {ROWS: f"the source does not answer any more ({error}): verify again"})
        if (schema := _held(answer, now, later, columns)) is None:
            return Rules(None, {}, {ROWS: ALTERED})
        before = self.before[answer.name]
        alike = {name: clause for name, clause in before.items() if checks.get(name) == clause}
        return Rules(schema, alike, {f"CHECK {name}": ALTERED for name in sorted({*before, *checks} - {*alike})})


def last_shape(answer: Answer, status: LakeStatus, schemas: Schemas) -> TableSchema | None:
    """That of the lake's last change since the answer which was of another shape than the ones before it."""
    if status.checkpoint is None:
        return None
    known = schemas.all(answer.schema.db, answer.schema.table)
    there = [one for one in known if one.since and answer.high <= tuple(one.since[:3]) < status.checkpoint.place]
    return there[-1] if there else None


def _held(
    answer: Answer, now: TableSchema | None, later: TableSchema | None, columns: Iterable[str]
) -> TableSchema | None:
    """The shape by which the lake's rows were written."""
    altered = now is None or now.shape() != answer.shown.source.shape()
    if not altered and (later is None or later.shape() == answer.schema.shape()):
        return answer.schema
    there = {name.lower() for name in columns}  # the lake renames columns before a change tells of it
    return later if later and {column.name.lower() for column in later.columns} <= there else None
