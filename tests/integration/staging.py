"""Snapshots without a streamer: its checkpoint is what a test says, or all that the server has executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.checkpoint import Checkpoint
from contract.pipeline import Lake as LakeSection
from contract.pipeline import Pipeline
from contract.pipeline_snapshot import Snapshot
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.snapshot.places import Places
from spark.snapshot.snapshot import Staging
from spark.source.source import Source
from spark.tables.schema import OWN
from stack.database import Database
from tests.checkpoints import checkpoint
from tests.integration.decoding import executed
from tests.integration.decoding import pipeline as pipeline_of


def pipeline(server: Database, folder: Path, include: str, **snapshot: Any) -> Pipeline:
    """`snapshot`: its section; chunks may be smaller than a file may say."""
    rules = Snapshot().model_copy(update={"chunk_rows": 10, **snapshot})
    update = {"lake": LakeSection(path=str(folder)), "snapshot": rules}
    return pipeline_of(server, include).model_copy(update=update)


def streamed(server: Database, gtid_set: str = "") -> Checkpoint:
    """Of a streamer that has released the set, else everything."""
    uuid = "0-1" if server.flavor == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    return checkpoint(pipeline="checked", server_uuid=uuid, gtid_set=gtid_set or str(executed(server)), ts_ms=1)


class Snapshots:
    """Those of one pipeline. `told`: their lines; `gone`: as of the last one's Staging."""

    def __init__(self, spark: SparkSession, server: Database, pipeline: Pipeline) -> None:
        self.spark, self.server, self.pipeline = spark, server, pipeline
        self.lake, self.told = Lake(spark, pipeline), list[str]()
        self.gone = set[str]()

    def run(
        self,
        p0: Checkpoint | None = None,
        reader: Source | None = None,
        tables: Any = None,
        named: bool = False,
        **more: Any,
    ) -> Manifest:
        """Of every table, or of some; `p0` is the newest checkpoint that there is."""
        with Source(self.pipeline) as source:
            places = Places(
                source, p0 or streamed(self.server), lambda: p0 or streamed(self.server), tell=self.told.append
            )
            staging = Staging(self.spark, self.pipeline, self.lake, source, places, reader, self.told.append, **more)
            self.gone = staging.gone
            return staging.run(tables or source.tables(), named, all=not tables)

    def rows(self, manifest: Manifest, table: str) -> list[str]:
        """The staged rows' texts, sorted."""
        schema = next(schema for schema in manifest.tables if schema.table == table)
        read = self.spark.read.format("delta").load(manifest.rows(self.lake, schema)).drop(*OWN)
        text = fn.to_json(fn.struct(*read.columns), {"ignoreNullFields": "false"})
        found = sorted(row[0] for row in read.select(text).collect())
        assert len(found) == manifest.counts[f"{schema.db}.{table}"]
        return found
