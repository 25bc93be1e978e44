"""The hand-off: a staged snapshot becomes the tables, between the two steps of a compaction run.

Staged rows are as fresh as P0 at least, maybe fresher, and get `_seq` = P0. A staged row is dropped if
`_changes` holds a change of its key after P0 (the change carries the whole row); changes that come later are
newer than P0 and win. Rows of the table that are not newer than P0 go: those that were read come back from
the staging, the others should not be there. So the table is its newer rows and the staged ones, written as
one commit, with the same result when it is done again. It is consistent once merged to P1.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from delta.tables import DeltaTable
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.applied import Applied, AppliedSnapshots
from spark.broken import broken_table
from spark.erasing.erasures import Erasures
from spark.errors import TableStoppedError
from spark.failpoints import reached
from spark.lake import Lake
from spark.manifests import Manifest, manifests
from spark.merge import behind, misfit, sequence
from spark.renames import as_now, renames_of, since
from spark.rows import keyed, nulled, parsed, quoted
from spark.schema import columns_of, fields, fitted, landed_otherwise, prepare
from spark.stopped import Name, StoppedTables
from spark.tables import THREADS
from spark.truncated import Truncated


@dataclass
class HandOff:
    """What a run did with the staged snapshots. `applied`: the tables made anew. `refused`: why a table could not
    take its part, which the next run tries again. `snapshots`: each table's newest, of this run or an earlier.
    `nulled`: for how many values of the applied rows the lake has a null."""

    snapshots: AppliedSnapshots
    stopped: StoppedTables
    applied: set[Name] = field(default_factory=set)
    refused: dict[Name, str] = field(default_factory=dict)
    nulled: dict[Name, int] = field(default_factory=dict)


def apply_ready(spark: SparkSession, lake: Lake) -> HandOff:
    """Applies every snapshot that is staged whole and not applied yet, the oldest first. A staging of which nothing
    is needed any more is removed."""
    result = HandOff(AppliedSnapshots(lake), StoppedTables(lake))
    renames = renames_of(lake)
    for manifest in manifests(lake):
        tables = [
            as_now(schema, since(renames, schema, manifest.sequence(schema)))
            for schema in manifest.tables
            if lake.pipeline.tables.match(schema.db, schema.table)
        ]
        beside = inheritable_thread_target(spark)(partial(_hand_off, spark, lake, manifest, result))
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(beside, tables))
        if all(result.snapshots.has((schema.db, schema.table), manifest.id) for schema in tables):
            lake.delete(manifest.folder(lake))
            reached("staging removed")
    return result


def _hand_off(spark: SparkSession, lake: Lake, manifest: Manifest, result: HandOff, schema: TableSchema) -> None:
    table = (schema.db, schema.table)
    if not result.snapshots.has(table, manifest.id):
        try:
            count = _apply_somehow(spark, lake, manifest, schema, result.stopped)
            result.nulled[table] = result.nulled.get(table, 0) + count
        except TableStoppedError as error:
            result.refused[table] = str(error)
            return
        except Exception as error:
            if (text := misfit(table, error)) is None:
                raise
            result.refused[table] = text
            return
        result.snapshots.note(table, _facts(manifest, schema, lake.version(lake.table(*table))))
        reached("snapshot noted")
        result.applied.add(table)
    result.refused.pop(table, None)
    lake.delete(manifest.rows(lake, schema))
    reached("staged rows removed")


def _facts(manifest: Manifest, schema: TableSchema, version: int | None) -> Applied:
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
        version=version,
    )


def _apply_somehow(
    spark: SparkSession, lake: Lake, manifest: Manifest, schema: TableSchema, stopped: StoppedTables
) -> int:
    """Also where the table itself cannot be read, or has values in another form: then it is the staged rows, and all
    changes since P0 are merged into it again, for which the table counts as stopped there. Gives for how many values
    the lake has a null."""
    name = (schema.db, schema.table)
    path = lake.table(*name)
    try:
        reason = landed_otherwise(schema, columns_of(spark, path)) if lake.is_table(path) else None
        if reason is None:
            return _apply(spark, lake, manifest, schema)
    except Exception as error:
        if (reason := broken_table(name, path, error)) is None:
            raise
    stopped.stop(name, manifest.sequence(schema), reason)
    return _apply(spark, lake, manifest, schema, readable=False)


def _apply(spark: SparkSession, lake: Lake, manifest: Manifest, schema: TableSchema, readable: bool = True) -> int:
    path = lake.table(schema.db, schema.table)
    wanted = fields(schema)
    staged = _staged(spark, lake, manifest, schema)
    staged = Erasures(lake).unstaged(staged, f"{schema.db}.{schema.table}", manifest.sequence(schema))
    if Truncated(lake).of((schema.db, schema.table)) > manifest.sequence(schema):
        staged = staged.limit(0)  # read before the truncation, or of a change that came after it
    if not DeltaTable.isDeltaTable(spark, path):
        prepare(spark, path, schema, schema, lake.deletion_vectors)
    present = columns_of(spark, path)
    # The snapshot's types are the table's from now on; a column that the source dropped stays.
    columns = {**{name: kind for name, kind in present.items() if not _has(wanted, name)}, **wanted}
    ordered = {name: columns[name] for name in [*wanted, *(n for n in columns if n not in wanted)]}
    superseded = _keys_after(spark, lake, schema, manifest.sequence(schema)) if readable else None
    current = fitted(spark.read.format("delta").load(path), ordered)
    current = current if readable else current.limit(0)
    table = replaced(current, staged, superseded, schema, manifest, ordered)
    table.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    reached("snapshot written")
    return nulled(staged, "after", schema)


def _staged(spark: SparkSession, lake: Lake, manifest: Manifest, schema: TableSchema) -> DataFrame:
    """The staged rows, all of them: a row that is missing here would leave the lake."""
    name, parts = f"{schema.db}.{schema.table}", manifest.parts(lake, schema)
    rows = spark.read.schema("key string, after string").parquet(*parts) if parts else None
    found, read = rows.count() if rows is not None else 0, manifest.counts[name]
    if rows is None or found != read:
        raise TableStoppedError(
            f"{name}: the snapshot {manifest.id} read {read:,} rows, and its folder {manifest.rows(lake, schema)} has "
            f"{found:,}: something removed the others. The table is as it was; run the snapshot DAG for it again"
        )
    return rows


def _has(columns: dict[str, str], name: str) -> bool:
    return name.lower() in {column.lower() for column in columns}


def replaced(
    current: DataFrame,
    staged: DataFrame,
    superseded: DataFrame | None,
    schema: TableSchema,
    manifest: Manifest,
    columns: Iterable[str],
) -> DataFrame:
    """The table after the snapshot. `staged`: the rows' texts in `after`; `superseded`: the keys' columns."""
    p0, ts_ms = sequence(manifest.sequence(schema)), manifest.begun(schema).ts_ms
    rows = staged.withColumn("_wire", parsed("after", schema.columns))
    if superseded is not None:  # first: a row that was mended since is no reason to refuse the others
        rows = rows.select("_wire", *keyed("_wire", key_of(schema)))
        rows = rows.join(superseded, list(schema.key), "left_anti")
    at = [p0.alias("_seq"), fn.timestamp_millis(fn.lit(ts_ms)).alias("_ts")]
    rows = rows.select(*keyed("_wire", schema), *at)
    newer = current.where(fn.col("_seq") > p0)
    together = newer.unionByName(rows, allowMissingColumns=True)
    return together.select(*[fn.col(quoted(name)) for name in columns], "_seq", "_ts")


def key_of(schema: TableSchema) -> TableSchema:
    """The key's columns alone."""
    return schema.model_copy(update={"columns": tuple(schema.column(name) for name in schema.key)})


def _keys_after(spark: SparkSession, lake: Lake, schema: TableSchema, p0: list[int]) -> DataFrame | None:
    if not lake.is_table(lake.changes):
        return None
    changes = spark.read.format("delta").load(lake.changes)
    rows = behind(changes, (schema.db, schema.table), p0).where(fn.col("op") != "t")
    texts = rows.select("key").distinct()
    # By value: where ALTER TABLE changed a key column meanwhile, the texts of one key differ. What cannot be read as
    # the snapshot's key is of another key and raises, as a null.
    key = key_of(schema)
    return texts.withColumn("_wire", parsed("key", key.columns, "PERMISSIVE")).select(*keyed("_wire", key))
