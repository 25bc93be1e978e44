"""The tables of a check that are not compared, since the pipeline file changes or drops their rows: what the user's own
expectations are asked of.

None that follows from the source's schema is: a transform may keep to none of it, and rows that the source has no more
are of schemas and constraints of before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from contract.schema import TableSchema
from contract.status import LakeStatus, TableStatus, parse
from quality import suite_files
from spark.errors import TableGoneError
from spark.failures import message_of
from spark.lake.foreign_commits import same_rows
from spark.lake.lake import Lake
from spark.proof.finding import GONE, LACKS
from spark.proof.judged import ROWS
from spark.proof.verification import Shapes, Verification
from spark.source.choice import shown_of
from spark.tables.schema import Schemas


@dataclass(frozen=True)
class Aside:
    """By `db.table`: as `suite.run` has them. Of each table there is a frame and its schema, or why there is none."""

    frames: dict[str, DataFrame] = field(default_factory=dict)
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    unjudged: dict[str, dict[str, str]] = field(default_factory=dict)


def aside(check: Verification, names: Iterable[str], shapes: Shapes) -> Aside:
    """Of the tables of these names that have a suite file, as the check's status has them."""
    found, status = Aside(), check.status
    mine = suite_files.tables(check.lake.pipeline).intersection(names)
    schemas = shapes() if mine else Schemas([])
    for name in sorted(mine):
        table = status.tables.get(name) if status else None
        if status is None or table is None or table.version is None:
            found.unjudged[name] = {ROWS: LACKS}
            continue
        try:
            found.schemas[name] = _shape(check, table, status, schemas)
            path = check.lake.table(table.db, table.table)
            found.frames[name] = check.lake.frame(path, same_rows(check.lake, path, table.version))
        except Exception as error:  # it keeps no other from being judged
            found.unjudged[name] = {ROWS: message_of(error, check.pipeline)}
            found.schemas.pop(name, None)
    return found


def status_of(lake: Lake) -> LakeStatus | None:
    text = lake.text(lake.status)
    return parse(text) if text else None


def _shape(check: Verification, table: TableStatus, status: LakeStatus, schemas: Schemas) -> TableSchema:
    """That of the table's last change that the lake has; of one without a change, what the source has. Raises
    LakeError."""
    place = status.checkpoint.place if status.checkpoint else check.low.place
    known = [one for one in schemas.all(table.db, table.table) if not one.since or tuple(one.since[:3]) < place]
    if known:
        return known[-1]
    check.source.awake()
    if (now := check.source.schema(table.db, table.table)) is None:
        raise TableGoneError(f"{table.db}.{table.table}: {GONE}")
    return shown_of(check.pipeline, now).schema
