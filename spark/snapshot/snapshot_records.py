"""The rows of a snapshot for consumers of Kafka: records of op `r` in a topic of their own, `<pipeline>.snapshot-rows`.

Not in the tables' topics: there `seq` only grows in a partition, by which a replay's duplicates are known. A row is as
fresh as P0 at least, and has P0's `seq`, before every change behind P0; so a consumer of both keeps of each key what
has the greatest, deletes among them. That holds too for the rows of a snapshot that came to no end. The lake takes its
rows from the staging, and never reads this topic.

At least once: a part is sent before it is noted, so what was not noted when a snapshot was killed comes again.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from contract import names, steps
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.sequence import file_number
from spark.errors import LakeError, PassingError, chain, reason
from spark.failures import passing
from spark.kafka.broker import Broker
from spark.kafka.settings import spark_options

TOO_LARGE = "RecordTooLargeException"


class SnapshotRecords:
    """Raises LakeError where the topic is missing."""

    def __init__(self, pipeline: Pipeline, broker: Broker) -> None:
        self.pipeline, self.topic = pipeline, names.snapshot_topic(pipeline)
        if not broker.has(self.topic):
            raise LakeError(
                f"snapshot.to_kafka in {pipeline.path} asks for the topic {self.topic}, which is not there: "
                f"{steps.topics(pipeline)}, then the snapshot again"
            )
        self.known = {(one.db, one.table, one.shape()): one.version for one in broker.schemas()}

    def send(self, rows: DataFrame, schema: TableSchema, p0: Checkpoint) -> None:
        """`rows`: `key` and `after`. Raises LakeError where the topic does not take all of them."""
        source = json.dumps(self._source(schema, p0), ensure_ascii=False, separators=(",", ":"))
        now = fn.unix_millis(fn.current_timestamp()).cast("string")
        head, tail = fn.lit('{"before":null,"after":'), fn.lit(f',"source":{source},"op":"r","ts_ms":')
        value = fn.concat(head, "after", tail, now, fn.lit(',"transaction":null}'))
        kafka = self.pipeline.kafka
        options = {
            **spark_options(self.pipeline),
            "kafka.bootstrap.servers": kafka.bootstrap,
            "kafka.max.request.size": str(kafka.max_message_bytes),
            "kafka.compression.type": kafka.compression,
            "topic": self.topic,
        }
        try:
            rows.select("key", value.alias("value")).write.format("kafka").options(**options).save()
        except Exception as error:
            fix = "start it, or mend kafka.bootstrap"
            if any(TOO_LARGE in text for text in chain(error)):
                fix = "raise kafka.max_message_bytes and the topic's max.message.bytes"
            kind = PassingError if passing(error) else LakeError
            raise kind(
                f"{self.topic} does not take the rows of {schema.db}.{schema.table}: {reason(error)}. See to Kafka "
                f"({fix}), or leave out snapshot.to_kafka; the next run goes on where this one stopped"
            ) from error

    def _source(self, schema: TableSchema, p0: Checkpoint) -> dict[str, Any]:
        """As a change's, without what a row has not: a transaction, a thread; and, before the first change of its
        shape, a version of the schema."""
        return {
            "connector": self.pipeline.source.flavor, "name": self.pipeline.name,
            "ts_ms": p0.ts_ms, "ts_us": p0.ts_ms * 1000, "snapshot": "true", "db": schema.db, "table": schema.table,
            "server_id": p0.server_id, "gtid": None, "file": p0.file, "pos": p0.pos, "row": 0, "thread": None,
            "query": None, "seq": [p0.epoch, file_number(p0.file), p0.pos, -1, -1],
            "schema": self.known.get((schema.db, schema.table, self.pipeline.lake.lands(schema).shape())),
        }  # fmt: skip
