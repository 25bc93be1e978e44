"""Which tables a snapshot or a check is of."""

from __future__ import annotations

from dataclasses import replace

from contract import table_names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_columns import ColumnRuleError, Shown
from contract.schema import TableSchema
from spark.errors import LakeError
from spark.source import Source


def chosen(pipeline: Pipeline, source: Source, tables: list[str]) -> list[tuple[str, str]]:
    """The named `db.table`s, or every table of the pipeline that exists. Raises LakeError where there is none."""
    for name in tables:
        if why := table_names.refused(pipeline, name):
            raise LakeError(why)
    if versioned := [f"{db}.{table}" for db, table in source.versioned()]:
        raise LakeError(
            f"{', '.join(versioned)}: system-versioned, so the binlog has the rows' history beside the rows, and the "
            f"lake's table would not be the source's. Exclude it in {pipeline.path}, or ALTER TABLE ... DROP SYSTEM "
            "VERSIONING"
        )
    there = {f"{db}.{table}": (db, table) for db, table in source.tables()}
    found = [one for name, one in there.items() if not tables or name in tables]
    if missing := sorted(set(tables) - there.keys()):
        told = ", ".join(table_names.told(name, there) for name in missing)
        raise LakeError(f"the source has no table {told}: check the name")
    if not found:
        globs = ", ".join(pipeline.tables.include)
        raise LakeError(f"the source has no table that matches {globs}: check tables.include in {pipeline.path}")
    return found


def refuse_unfollowed(p0: Checkpoint, tables: list[tuple[str, str]]) -> None:
    """Raises LakeError for tables whose changes behind P0 nobody delivers: the pipeline file was edited since."""
    if unfollowed := [f"{db}.{table}" for db, table in tables if not p0.follows(db, table)]:
        raise LakeError(
            f"the streamer does not follow {', '.join(unfollowed)} yet, so that changes made from now on would be "
            "lost: while it runs it takes the pipeline file's tables by itself within seconds (headrace status says "
            "what it waits for); then run the snapshot again"
        )


def shown_of(pipeline: Pipeline, source: TableSchema) -> Shown:
    """The table as the stream tells it and the lake has it. Raises LakeError where a rule of `columns` cannot hold for
    it."""
    try:
        shown = pipeline.show(source)
    except ColumnRuleError as error:
        raise LakeError(error.told(pipeline.path)) from None
    return replace(shown, schema=pipeline.lake.lands(shown.schema))
