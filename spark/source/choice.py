"""Which tables a snapshot or a check is of."""

from __future__ import annotations

from dataclasses import replace

from contract import table_names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_columns import ColumnRuleError, Shown
from contract.pipeline_keys import told_of
from contract.schema import TableSchema
from spark.errors import LakeError, TableError
from spark.source.source import Source


def chosen(pipeline: Pipeline, source: Source, tables: list[str]) -> list[tuple[str, str]]:
    """The named `db.table`s, or every table of the pipeline that exists and has rows in the lake. Raises LakeError
    where there is none."""
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
    found = _with_rows(pipeline, found, bool(tables))
    if not found:
        globs = ", ".join(pipeline.tables.include)
        raise LakeError(f"the source has no table that matches {globs}: check tables.include in {pipeline.path}")
    return found


def _with_rows(pipeline: Pipeline, found: list[tuple[str, str]], named: bool) -> list[tuple[str, str]]:
    """Those of which the lake is to have rows; of the others it keeps the changes alone. Raises LakeError where a
    person `named` one of these, or there are none but these."""
    rows = [name for name in found if not pipeline.changes_only(*name)]
    only = [".".join(name) for name in found if name not in rows]
    if only and (named or not rows):
        raise LakeError(
            f"{told_of(', '.join(only))}, so there are no rows to read or to compare: name other tables, or remove "
            f"that rule of {pipeline.path} first"
        )
    if only:
        print(f"left out: {told_of(', '.join(only))}", flush=True)
    return rows


def refuse_unfollowed(p0: Checkpoint, tables: list[tuple[str, str]], job: str = "the snapshot") -> None:
    """Raises LakeError for tables whose changes behind P0 nobody delivers: the pipeline file was edited since. `job`:
    what is to be run again then."""
    if unfollowed := [f"{db}.{table}" for db, table in tables if not p0.follows(db, table)]:
        raise LakeError(
            f"the streamer does not follow {', '.join(unfollowed)} yet, so that changes made from now on would be "
            "lost: while it runs it takes the pipeline file's tables by itself within seconds (headrace status says "
            f"what it waits for); then run {job} again"
        )


def shown_of(pipeline: Pipeline, source: TableSchema) -> Shown:
    """The table as the stream tells it and the lake has it. Raises TableError where a rule of `columns` cannot hold for
    it."""
    try:
        shown = pipeline.show(source)
    except ColumnRuleError as error:
        raise TableError(error.told(pipeline.path)) from None
    return replace(shown, schema=pipeline.lake.lands(shown.schema))
