"""The pipeline's transforms at the rows of a snapshot: the very functions of the streamer, in Spark's Python workers.

A row is an event of op `r` with an image `after`; its place is that of the checkpoint at which the snapshot begins.
What a transform drops, or sends to a topic of its own, is not in the lake's table, as it would not be by the stream.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from pyspark import SparkFiles, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import fingerprint, names, pipeline_transforms, transforms
from contract.checkpoint import Checkpoint
from contract.counted import counted
from contract.dead_letter import letter, without_value
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.sequence import file_number
from contract.transforms import Step, TransformLoadError
from spark.errors import LakeError, PassingError
from spark.kafka.producing import produce
from spark.snapshot.transformed_rows import MADE, RowTransform

ROOT = Path(__file__).parents[2]
PACKAGES = ("contract", "spark")
SECONDS = 30.0
ENVELOPE_BYTES = 1_024  # of a Kafka record, beside key and value


def refuse_other_rules(pipeline: Pipeline, checkpoint: Checkpoint) -> None:
    """Raises LakeError where the streamer shows rows by other rules than the pipeline file has now."""
    if checkpoint.rules and checkpoint.rules != fingerprint.of(pipeline, _steps(pipeline)):
        raise LakeError(
            f"columns, keys, transforms or events in {pipeline.path} (or the secret, or a script) are not those with "
            "which the streamer was started, so that its changes and these rows would not fit together: restart the "
            "streamer, then run this again"
        )


def _steps(pipeline: Pipeline) -> list[Step]:
    try:
        return transforms.steps(pipeline)
    except TransformLoadError as error:
        raise LakeError(str(error)) from None


class SnapshotTransforms:
    """Those of one snapshot. `tell` gets a line of what failed."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, p0: Checkpoint, tell: Callable[[str], None]) -> None:
        self._spark, self._pipeline, self._p0, self._tell = spark, pipeline, p0, tell
        self._steps = _steps(pipeline)
        try:
            for step in self._steps:
                step.load()
        except TransformLoadError as error:
            raise LakeError(str(error)) from None
        if self._steps:
            _send_code(spark)

    def of(self, schema: TableSchema) -> bool:
        """Whether a transform chooses the table."""
        return bool(pipeline_transforms.chosen(self._pipeline.transforms, schema.db, schema.table))

    @contextmanager
    def applied(self, rows: DataFrame, schema: TableSchema) -> Iterator[DataFrame]:
        """The rows (`key`, `after`) as they are to be in the lake, read once however often they are used. Raises
        LakeError where a transform stops."""
        if self.of(schema):
            work = RowTransform(self._pipeline, schema, self._steps, self._source(schema))
            rows = self._spark.createDataFrame(rows.rdd.mapPartitions(work), MADE)
        made = rows.persist(StorageLevel.DISK_ONLY)
        try:
            if self.of(schema):
                self._faults(made, schema)
            yield made.where("after is not null").select("key", "after")
        finally:
            made.unpersist()

    def _faults(self, made: DataFrame, schema: TableSchema) -> None:
        name, failed = f"{schema.db}.{schema.table}", made.where("cause is not null or passed")
        counts = failed.groupBy("cause", "by", "stops", "passed").agg(fn.count("*").alias("n")).collect()
        for row in sorted(counts, key=lambda row: not row["stops"]):
            if row["stops"]:
                raise LakeError(
                    f"{name}: {row['by']} failed on {counted(row['n'], 'row')} of the snapshot: {row['cause']}. Mend "
                    "it and start the snapshot again, or set its on_error to dead_letter or pass"
                )
            what = "passed unchanged" if row["passed"] else f"sent to the dead letter topic ({row['cause']})"
            self._tell(f"{name}: a transform failed on {counted(row['n'], 'row')}: {what}")
        dead = failed.where("cause is not null")
        if any(row["cause"] is not None for row in counts):
            self._bury(dead, schema)

    def _bury(self, dead: DataFrame, schema: TableSchema) -> None:
        """Raises LakeError where not all of them are in the dead letter topic."""
        kafka, topic = self._pipeline.kafka, names.dead_letter_topic(self._pipeline)
        settings = {
            **kafka.properties,
            "bootstrap.servers": kafka.bootstrap,
            "message.max.bytes": kafka.max_message_bytes,
        }
        certain = {"enable.idempotence": True, "max.in.flight": 1}  # the second as in streamer.sinks.kafka
        producer = Producer({**settings, **certain, "message.timeout.ms": int(SECONDS * 1000)})
        own, failures = names.events_topic(self._pipeline, schema.db, schema.table), []
        told = partial(letter, self._pipeline.name, "transform", topic=own)
        try:
            for row in dead.toLocalIterator():
                envelope = {
                    "before": None, "after": json.loads(row["row"]), "source": self._source(schema), "op": "r",
                }  # fmt: skip
                value = told(row["cause"], row["by"], envelope=envelope, value=envelope)
                if len(value) + len(row["key"] or "") > kafka.max_message_bytes - ENVELOPE_BYTES:
                    value = without_value(value)
                produce(producer, topic, value, row["key"], lambda error, _: failures.append(error))
            left = producer.flush(SECONDS)
        except KafkaException as error:
            raise LakeError(f"{topic} does not take the dead letters of a snapshot: {error}") from None
        if left or (failures := [error for error in failures if error is not None]):
            raise PassingError(
                f"{topic} did not take {left or len(failures)} dead letter(s) of the snapshot: run it again"
            )

    def _source(self, schema: TableSchema) -> dict[str, Any]:
        p0 = self._p0
        return {
            "connector": self._pipeline.source.flavor, "name": self._pipeline.name, "ts_ms": p0.ts_ms,
            "snapshot": "true", "db": schema.db, "table": schema.table, "server_id": p0.server_id, "gtid": None,
            "file": p0.file, "pos": p0.pos, "row": 0, "seq": [p0.epoch, file_number(p0.file), p0.pos, -1, -1],
            "schema": None,
        }  # fmt: skip


def _send_code(spark: SparkSession) -> None:
    """The packages by which a worker on another machine knows what it is sent; once a session. They lie in Spark's own
    folder, which goes with the session."""
    folder = Path(SparkFiles.getRootDirectory(), "headrace-code")
    if folder.exists():
        return
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / "code" / package, ignore=shutil.ignore_patterns("__pycache__"))
    spark.sparkContext.addPyFile(shutil.make_archive(str(folder / "headrace"), "zip", folder / "code"))
