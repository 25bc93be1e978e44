"""The snapshot: every table's rows, read by key ranges over JDBC into a staging folder.

P0 is a checkpoint of the streamer, and no chunk is read before MySQL shows every transaction of it. The rows
come as the very texts that the stream carries, made by MySQL. The manifest is written last: without it a
staging is never applied. It holds P1, the position after the last chunk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_columns import ColumnRuleError, Shown
from contract.schema import TableSchema
from spark import chunks
from spark import schema as shapes
from spark.errors import LakeError, TableStoppedError
from spark.lake import Lake
from spark.manifests import MANIFEST, Manifest, rows_folder
from spark.source import Source, session_of
from spark.transformed import SnapshotTransforms

BEAT = "beat.json"  # when a snapshot that runs was last seen to write
ABANDONED = 3600.0  # seconds without a beat; far more than a group of chunks takes
ATTEMPTS = 3  # of a table whose shape changes while it is read
GROUP = 4  # chunks a reader takes one after the other in one Spark job; progress is told between jobs


def chosen(pipeline: Pipeline, source: Source, tables: list[str]) -> list[tuple[str, str]]:
    """The named `db.table`s, or every table of the pipeline that exists. Raises LakeError where there is none."""
    for name in tables:
        if not pipeline.tables.match(*name.split(".", 1)):
            raise LakeError(f"{name} is not one of the pipeline's tables: see tables in {pipeline.path}")
    if versioned := [f"{db}.{table}" for db, table in source.versioned()]:
        raise LakeError(
            f"{', '.join(versioned)}: system-versioned, so the binlog has the rows' history beside the rows, and the "
            f"lake's table would not be the source's. Exclude it in {pipeline.path}, or ALTER TABLE ... DROP SYSTEM "
            "VERSIONING"
        )
    found = [(db, table) for db, table in source.tables() if not tables or f"{db}.{table}" in tables]
    if missing := set(tables) - {f"{db}.{table}" for db, table in found}:
        raise LakeError(f"the source has no table {', '.join(sorted(missing))}: check the name")
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


def row_json(shown: Shown, flavor: str, columns: tuple[str, ...] | None = None) -> str:
    """SQL of the flavor that gives a row's JSON text, the same bytes as the stream's; of its key with `columns`."""
    parts, before = [], "{"
    for name in columns or [column.name for column in shown.schema.columns]:
        label = before + json.dumps(name, ensure_ascii=False) + ":"
        column = chunks.quoted(name)
        value = shown.type_of(name, flavor).snapshot_sql(column)
        # By the column and not by its text, which is NULL as well if it is too long: that makes the row NULL.
        parts.append(f"{text_literal(label)}, if({column} is null, 'null', {value})")
        before = ","
    return f"concat({', '.join(parts)}, '}}')"


def text_literal(text: str) -> str:
    return f"_utf8mb4 x'{text.encode().hex()}'"


def jdbc_options(pipeline: Pipeline) -> dict[str, str]:
    """How Spark reaches the source: row by row (the default holds whole results in memory), in UTC."""
    source = pipeline.source
    session = quote(",".join(f"{name}={value}" for name, value in session_of(pipeline).items()), safe="")
    return {
        "url": f"jdbc:mysql://{source.host}:{source.port}/?sessionVariables={session}"
        "&characterEncoding=UTF-8&tinyInt1isBit=false&allowPublicKeyRetrieval=true",
        "driver": "com.mysql.cj.jdbc.Driver",
        "user": source.user,
        "password": source.secret(),
        "fetchsize": str(-(2**31)),
    }


def rows_of(spark: SparkSession, pipeline: Pipeline, schema: TableSchema, wanted: list[str]) -> DataFrame:
    """`key` and `after` of the rows of each condition (over k0, k1 .. of the key), one partition a condition.
    `schema`: the source's; the texts are of what the pipeline shows of it."""
    flavor, shown = pipeline.source.flavor, pipeline.show(schema)
    keys = [f"{chunks.quoted(name)} AS k{at}" for at, name in enumerate(schema.key)]
    texts = [f"{row_json(shown, flavor, shown.schema.key)} AS row_key", f"{row_json(shown, flavor)} AS row_after"]
    query = f"(SELECT {', '.join([*keys, *texts])} FROM {chunks.table_sql(schema)}) AS q"
    options = jdbc_options(pipeline)
    url = options.pop("url")
    rows = spark.read.jdbc(url, query, predicates=wanted, properties=options)
    # A row or a value longer than max_allowed_packet comes as NULL.
    too_long = fn.raise_error(
        fn.lit(
            f"a row of {schema.db}.{schema.table} is longer than the server's max_allowed_packet: raise that (a blob "
            "takes 4/3 of its size), or exclude the table"
        )
    )
    after = fn.when(fn.col("row_after").isNull(), too_long).otherwise(fn.col("row_after"))
    return rows.select(fn.col("row_key").alias("key"), after.alias("after"))


def shown_of(pipeline: Pipeline, source: TableSchema) -> Shown:
    """The table as the stream tells it. Raises LakeError where a rule of `columns` cannot hold for it."""
    try:
        return pipeline.show(source)
    except ColumnRuleError as error:
        raise LakeError(error.told(pipeline.path)) from None


@dataclass
class Staging:
    """One snapshot under way. `tell` gets a line of progress; `between` is called before each group of chunks
    is read (a test may change the table there)."""

    spark: SparkSession
    pipeline: Pipeline
    lake: Lake
    source: Source
    tell: Callable[[str], None] = print
    between: Callable[[TableSchema, int], None] | None = None

    def run(self, p0: Checkpoint, tables: list[tuple[str, str]]) -> Manifest:
        """Stages the tables. Raises LakeError; nothing is left of them then."""
        self.source.wait_for(p0.gtid_set, 60)
        self._transforms = SnapshotTransforms(self.spark, self.pipeline, p0, self.tell)
        planned = [self._plan(db, table) for db, table in tables]
        # Names sort by time; two snapshots at one millisecond would be of one job.
        name = time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"{int(time.time() * 1000) % 1000:03d}Z"
        folder = self.lake.at(names.STAGING, name)
        self._sweep()
        try:
            return self._stage(name, folder, p0, planned)
        except Exception:  # on a full disk, compaction needs the space
            with suppress(Exception):
                self.lake.delete(folder)
            raise

    def _stage(self, name: str, folder: str, p0: Checkpoint, planned: list[TableSchema]) -> Manifest:
        counts: dict[str, int] = {}
        self._beat(folder)
        read = [self._table(folder, schema, counts) for schema in planned]
        shapes_read = [self.pipeline.show(schema).schema for schema in read]
        manifest = Manifest(
            id=name, pipeline=self.pipeline.name, p0=p0, p1=self.source.executed(), tables=shapes_read, counts=counts
        )
        self.lake.write(f"{folder}/{MANIFEST}", manifest.model_dump(mode="json"))
        return manifest

    def _plan(self, db: str, table: str) -> TableSchema:
        schema = self.source.schema(db, table)
        if schema is None:
            raise LakeError(f"{db}.{table} is no table of the source: check its name, or the user's SELECT right")
        try:
            shapes.fields(shown_of(self.pipeline, schema).schema)
        except TableStoppedError as error:
            raise LakeError(str(error)) from None
        return schema

    def _sweep(self) -> None:
        """Removes what a snapshot that did not end has left, and nothing of one that still runs somewhere."""
        for name in self.lake.list(self.lake.at(names.STAGING)):
            folder = self.lake.at(names.STAGING, name)
            beat = self.lake.read(f"{folder}/{BEAT}") or {"at": 0.0}
            if not self.lake.exists(f"{folder}/{MANIFEST}") and time.time() - beat["at"] > ABANDONED:
                self.lake.delete(folder)

    def _beat(self, folder: str) -> None:
        self.lake.write(f"{folder}/{BEAT}", {"at": time.time()})

    def _table(self, folder: str, schema: TableSchema, counts: dict[str, int]) -> TableSchema:
        """Reads a table, anew if DDL came in between: a column added with a default has its value in rows that
        were read without it, and no row event tells. Gives the shape that all of its rows were read by."""
        db, table = schema.db, schema.table
        for _ in range(ATTEMPTS):
            self.lake.delete(rows_folder(folder, schema))
            failure: Exception | None = None
            try:
                counts[f"{db}.{table}"] = self._read(folder, schema)
            except Exception as error:  # a column dropped meanwhile is such an error: the shape decides
                failure = error
            now = self._plan(db, table)
            if now.shape() == schema.shape():
                if failure:
                    raise failure
                return schema
            self.tell(f"{db}.{table}: its columns changed while it was read; it is read again")
            schema = now
        raise LakeError(
            f"{db}.{table}: its columns changed {ATTEMPTS} times while it was read. Run the snapshot again when "
            "the ALTER TABLEs are through"
        )

    def _read(self, folder: str, schema: TableSchema) -> int:
        target = rows_folder(folder, schema)
        name, began = f"{schema.db}.{schema.table}", time.time()
        # Without a primary key there is no index to walk: one chunk.
        size = self.pipeline.snapshot.chunk_rows
        boundaries = chunks.walk(schema, size, self.source.row) if schema.key else []
        wanted = chunks.conditions([f"k{at}" for at in range(len(schema.key))], boundaries)
        readers, done, rows = self.pipeline.snapshot.parallelism, 0, 0
        for at in range(0, len(wanted), readers * GROUP):
            if self.between:
                self.between(schema, at)
            group = wanted[at : at + readers * GROUP]
            part = f"{target}/{at:08d}"
            read = rows_of(self.spark, self.pipeline, schema, group).coalesce(readers)
            if self._transforms.of(schema):
                self._transforms.write(read, self.pipeline.show(schema).schema, part)
            else:
                read.write.parquet(part)
            rows += self.spark.read.parquet(part).count()
            self._beat(folder)
            done += len(group)
            rate = rows / max(time.time() - began, 0.001)
            self.tell(f"{name}: {done}/{len(wanted)} chunks, {rows:,} rows, {rate:,.0f} rows/s")
        self._refuse_shared_keys(schema, target, rows)
        return rows

    def _refuse_shared_keys(self, schema: TableSchema, target: str, rows: int) -> None:
        """Of a key that the pipeline file chose, or a transform made, nothing but the rows themselves say that it is
        one."""
        key = self.pipeline.show(schema).schema.key
        if (key == schema.key and not self._transforms.of(schema)) or not rows or not key:
            return
        shared = rows - self.spark.read.parquet(f"{target}/*").select("key").distinct().count()
        if shared:
            raise LakeError(
                f"{schema.db}.{schema.table}: {shared:,} row(s) have the key ({', '.join(key)}) of another one, and "
                f"the lake would have one row of each key: choose unique columns in keys of {self.pipeline.path}, or "
                "let no transform make one key of two"
            )
