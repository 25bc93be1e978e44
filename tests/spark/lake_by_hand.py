"""A lake whose `_changes` and stagings are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.schema import TableSchema
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.manifests import MANIFEST, Manifest
from spark.lake.unfinished import BEAT
from spark.landing.foreign import Looked
from spark.merging.parts import Part, put, write_keys
from spark.merging.tables import Merging
from spark.snapshot.staged import StagedRows
from spark.tables.rows import parsed
from spark.tables.schema import Schemas
from tests import checkpoints
from tests.spark.changes_by_hand import ITEMS, changes, compact_json, key_of

NAME = ("shop", "items")
AT = 100  # P0's position


def seq(pos: int) -> tuple[int, int, int, int, int]:
    return 0, 1, pos, 0, 0


def item(n: int, name: str = "a") -> dict[str, Any]:
    return {"id": n, "name": name, "price": None}


def checkpoint(pos: int) -> Checkpoint:
    known = {"pipeline": "shop", "server_uuid": "u", "ts_ms": 1_700_000_000_000}
    return checkpoints.checkpoint(**known, pos=pos, gtid_set=executed(pos))


def executed(pos: int) -> str:
    """The GTID set of a source that has written its binlog up to there."""
    return f"{checkpoints.SOURCE}:1-{pos}"


def stage(
    spark: SparkSession,
    lake: Lake,
    id: str,
    pos: int,
    *rows: dict[str, Any],
    of: TableSchema = ITEMS,
    end: int | None = None,
) -> Manifest:
    """A snapshot of one table that ended before anything more was written, or at the position `end`."""
    p1, counts = executed(end or pos), {f"shop.{of.table}": len(rows)}
    erased = {name: Erasures(lake).known.number for name in counts}
    manifest = Manifest(id=id, pipeline="shop", p0=checkpoint(pos), p1=p1, tables=[of], counts=counts, erasures=erased)
    return staged(spark, lake, manifest, *rows)


def staged(spark: SparkSession, lake: Lake, manifest: Manifest, *rows: dict[str, Any]) -> Manifest:
    """The manifest of one table, written behind these rows."""
    [of] = manifest.tables
    schema, name = lake.pipeline.lake.lands(of), f"{of.db}.{of.table}"
    table = StagedRows(spark, lake, manifest.rows(lake, of), manifest.id)
    table.begin(schema)
    texts = spark.createDataFrame([(compact_json(row),) for row in rows], "after string")
    wires = texts.withColumn("_wire", parsed("after", schema.columns))
    added = table.append(wires, schema, manifest.begun(of))
    assert added.rows == len(rows)
    whole = manifest.model_copy(update={"nulled": {name: added.nulled}, "versions": {name: added.version}})
    lake.write(f"{manifest.folder(lake)}/{MANIFEST}", whole.model_dump(mode="json"))
    return whole


def unwatched(lake: Lake) -> Callable[[], Looked]:
    """Nobody else writes into `_changes`."""
    return lambda: Looked(lake.version(lake.changes))


def land(spark: SparkSession, lake: Lake, *rows: tuple[Any, ...]) -> None:
    changes(spark, *rows).write.format("delta").mode("append").save(lake.changes)


def merge(spark: SparkSession, lake: Lake, *rows: tuple[Any, ...]) -> None:
    """Into the table alone, one commit a row: a staged table that takes its place has fewer."""
    merging = Merging(spark, lake, Schemas([ITEMS]), unwatched(lake))
    for row in rows:
        merging._batch(changes(spark, row), 0, "q")


def ids(spark: SparkSession, lake: Lake, name: tuple[str, str] = NAME) -> list[tuple[int, str]]:
    frame = spark.read.format("delta").load(lake.table(*name)).select("id", "name")
    return sorted((row["id"], row["name"]) for row in frame.collect())


def part(
    spark: SparkSession, lake: Lake, id: str, pos: int, *rows: dict[str, Any], of: TableSchema = ITEMS, **which: Any
) -> Part:
    """Rows that a repair read from the source. `which`: the part's `keys` (rows of them) or `where`, else all; the
    `count` of rows that it tells and their `source`, if that is another; `p0`, where the checkpoint is none of this
    file's."""
    keys, p0 = which.get("keys"), which.get("p0", checkpoint(pos))
    made = Part(
        id=id, pipeline=lake.pipeline.name, job="repair", by="test", shape=of, told="some rows",
        source=which.get("source", "mysql"), where=which.get("where"), keyed=keys is not None, texts=True, p0=p0, p1="",
        count=which.get("count", len(rows)), erasures=Erasures(lake).known.number,
    )  # fmt: skip
    texts = [(key_of(of, row), compact_json(row)) for row in rows]
    spark.createDataFrame(texts, "key string, after string").write.parquet(f"{made.folder(lake)}/rows")
    if keys is not None:
        write_keys(lake, made.folder(lake), tuple(key_of(of, key) for key in keys))
    lake.write(f"{made.folder(lake)}/{BEAT}", {"at": 0.0, "by": "test"})
    put(lake, made)
    return made
