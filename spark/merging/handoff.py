"""The hand-off: a staged snapshot becomes the tables, between the two steps of a compaction run.

Staged rows are as fresh as P0 at least, maybe fresher, and get `_seq` = P0. A staged row is dropped if a change
of its key after P0 is merged already (the table has what that left), or it was mended from the source as of a place
after P0; changes that are merged later are newer than P0 and win, and until then the staged row stands. Rows of the
table that are not newer than P0 go: those that were read come back from the staging, the others should not be there.
So the table is its newer rows and the staged ones (made_anew.py), with the same result when it is done again. It is
consistent once merged to P1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.errors import TableStoppedError
from spark.evolution.renames import as_now, renames_of, since
from spark.failpoints import reached
from spark.kafka.topic_places import TopicPlace, seen_for
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.broken import broken_table
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL
from spark.lake.manifests import Manifest, manifests
from spark.lake.stopped import WAIT, Name, StoppedTables
from spark.lake.truncated import Truncated
from spark.merging.made_anew import by_move, by_write, movable
from spark.merging.tables import THREADS
from spark.merging.taken import note_taken
from spark.snapshot.staged import StagedRows
from spark.tables.merge import sequence
from spark.tables.refused import unfit
from spark.tables.schema import columns_of, fields, lacks_key, landed_otherwise, widened_since


@dataclass
class HandOff:
    """What a run did with the staged snapshots. `applied`: the tables made anew. `refused`: why a table could not
    take its part, which the next run tries again. `snapshots`: each table's newest, of this run or an earlier.
    `nulled`: for how many values of the applied rows the lake has a null. `changes`: those that are merged, None
    where none is. `doubted`: why a table's own rows do not count, None where they do; told the snapshot of which this
    run has made the table already."""

    snapshots: AppliedSnapshots
    stopped: StoppedTables
    changes: DataFrame | None
    doubted: Callable[[Name, Applied | None], str | None]
    applied: set[Name] = field(default_factory=set)
    refused: dict[Name, str] = field(default_factory=dict)
    nulled: dict[Name, int] = field(default_factory=dict)


def apply_ready(
    spark: SparkSession,
    lake: Lake,
    changes: DataFrame | None = None,
    doubted: Callable[[Name, Applied | None], str | None] = lambda name, applied: None,
) -> HandOff:
    """Applies every snapshot that is staged whole and not applied yet, the oldest first. A staging of which nothing
    is needed any more is removed: all is applied, or of tables that are to have no rows by now. `changes`, `doubted`:
    as of HandOff."""
    result = HandOff(AppliedSnapshots(lake), StoppedTables(lake), changes, doubted)
    renames = renames_of(lake)
    for manifest in manifests(lake):
        wanted = [one for one in manifest.tables if not lake.pipeline.changes_only(one.db, one.table)]
        # One that is excluded may come back, and its changes with it, which wait meanwhile.
        included = [one for one in wanted if lake.pipeline.tables.match(one.db, one.table)]
        tables = [as_now(schema, since(renames, schema, manifest.sequence(schema))) for schema in included]
        note_taken(spark, lake, {(table.db, table.table) for table in tables})
        beside = inheritable_thread_target(spark)(partial(_hand_off, spark, lake, manifest, result))
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(beside, tables))
        if all(result.snapshots.has((schema.db, schema.table), manifest.id) for schema in wanted):
            lake.delete(manifest.folder(lake))
            reached("staging removed")
    return result


def _hand_off(spark: SparkSession, lake: Lake, manifest: Manifest, result: HandOff, schema: TableSchema) -> None:
    table = (schema.db, schema.table)
    if not result.snapshots.has(table, manifest.id):
        try:
            version = _apply_somehow(spark, lake, manifest, schema, result)
        except TableStoppedError as error:
            result.refused[table] = str(error)
            return
        except Exception as error:
            if (text := unfit(lake, table, error)) is None:
                raise
            result.refused[table] = text
            return
        if count := manifest.nulled.get(f"{schema.db}.{schema.table}"):
            result.nulled[table] = result.nulled.get(table, 0) + count
        seen = seen_for(lake.pipeline, manifest.seen, *table)
        result.snapshots.note(table, _facts(manifest, schema, version, seen))
        reached("snapshot noted")
        result.applied.add(table)
    result.refused.pop(table, None)
    lake.delete(manifest.rows(lake, schema))
    reached("staged rows removed")


def _facts(manifest: Manifest, schema: TableSchema, version: int | None, seen: dict[str, TopicPlace]) -> Applied:
    return Applied(
        id=manifest.id,
        p0=manifest.begun(schema).gtid_set,
        p1=manifest.p1,
        rows=manifest.counts[f"{schema.db}.{schema.table}"],
        applied_at=int(time.time() * 1000),
        floor=manifest.sequence(schema),
        p0_ms=manifest.begun(schema).ts_ms,
        rules=manifest.begun(schema).rules,
        letters=manifest.letters,
        erasures=manifest.erasures.get(f"{schema.db}.{schema.table}", BEFORE_ALL),
        version=version,
        seen=seen,
        shape=schema,
    )


def _apply_somehow(
    spark: SparkSession, lake: Lake, manifest: Manifest, schema: TableSchema, result: HandOff
) -> int | None:
    """Gives the version of the table that has the rows. Where a run that died has moved them there, that is the one
    that was counted: whatever somebody else did since is behind it.

    Also where the table itself cannot be read, or has values in another form, or no column of the key, or a wider type
    than was read, or somebody else wrote it: then it is the staged rows, and all changes since P0 are merged into it
    again, for which the table counts as stopped there."""
    name = (schema.db, schema.table)
    path = lake.table(*name)
    first = name not in result.snapshots.tables
    try:
        if first and _staged(spark, lake, manifest, schema).moved_to(path):
            return manifest.counted(schema)  # asked before anything else: its log is not the last run's
        present = columns_of(spark, path) if lake.is_table(path) else fields(schema)
        reason = landed_otherwise(schema, present) or lacks_key(schema, present) or widened_since(schema, present)
        applied = result.snapshots.tables[name] if name in result.applied else None
        if reason is None and (reason := result.doubted(name, applied)) is None:
            _apply(spark, lake, manifest, schema, _merged(result, name), first)
            return lake.version(path)
    except Exception as error:
        if (found := broken_table(name, path, error)) is None:
            raise
        reason = f"{found}; {WAIT}"
    result.stopped.stop(name, manifest.sequence(schema), reason)
    _apply(spark, lake, manifest, schema, result.changes, first=False, readable=False)
    return lake.version(path)


def _merged(result: HandOff, name: Name) -> DataFrame | None:
    """Of a stopped table's changes those that wait are in `_changes` alone, too."""
    stop = result.stopped.tables.get(name)
    if stop is None or result.changes is None:
        return result.changes
    return result.changes.where(fn.col("_seq") < sequence(stop.since))


def _staged(spark: SparkSession, lake: Lake, manifest: Manifest, schema: TableSchema) -> StagedRows:
    return StagedRows(spark, lake, manifest.rows(lake, schema), manifest.id)


def _apply(
    spark: SparkSession, lake: Lake, manifest: Manifest, schema: TableSchema, changes: DataFrame | None, first: bool,
    readable: bool = True,
) -> None:  # fmt: skip
    """`first`: the table has no snapshot yet, so nobody goes back to a version of it."""
    name, p0 = f"{schema.db}.{schema.table}", manifest.sequence(schema)
    staged = _staged(spark, lake, manifest, schema)
    found = staged.whole(schema, manifest.counts[name], manifest.counted(schema))
    rows = Erasures(lake).unstaged(found, schema, p0, manifest.erasures.get(name, BEFORE_ALL))
    if Truncated(lake).of((schema.db, schema.table)) > p0:
        rows = found.limit(0)  # read before the truncation, or of a change that came after it
    if first and rows is found and movable(spark, lake, schema) and not staged.scattered():
        by_move(spark, lake, staged, schema, p0, changes)
    else:
        by_write(spark, lake, rows, schema, p0, changes, readable)
    reached("snapshot written")
