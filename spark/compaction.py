"""One compaction run: land, apply ready snapshots, merge, and say how the lake stands.

The commit log is read before the topics' ends are: everything up to that checkpoint is then in the lake, which
makes it the lake's. A failed run leaves nothing to mend; the next one goes on.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.status import LakeStatus, TableStatus, parse
from spark.changes import Landing
from spark.handoff import HandOff, apply_ready
from spark.job import JobFailedError
from spark.kafka import Broker
from spark.lake import Lake
from spark.schema import Schemas
from spark.stopped import Name
from spark.tables import Merging

UNFINISHED = "_running.json"  # there while a run is under way: its counts are not in the status yet


def compact(spark: SparkSession, pipeline: Pipeline, tables: list[str]) -> dict[str, Any]:
    """Runs both steps for all of the pipeline's tables. Raises LakeError, JobFailedError where a table is stopped."""
    began = time.time()
    lake = Lake(spark, pipeline)
    lake.prove_writable()
    broker = Broker(pipeline)
    checkpoint = broker.checkpoint()
    landing = Landing(spark, pipeline, lake)
    topics = broker.topics(landing.topics())
    ids, ends = broker.topic_ids(topics), broker.ends(topics)
    clean = not lake.exists(lake.at(UNFINISHED))
    lake.write(lake.at(UNFINISHED), {"began": began})

    landing.run(ends, ids)
    landed_at = time.time()
    handoff = apply_ready(spark, lake)
    if checkpoint:
        handoff.snapshots.find_gaps(checkpoint)
    merging = Merging(spark, lake, Schemas(broker.schemas()), handoff.snapshots.floors())
    last = parse(text) if (text := lake.text(lake.status)) else None
    if not (clean and last and last.changes_version == lake.version(lake.changes)):
        merging.run()
    merging.retry()

    status = Standing(spark, lake, merging, handoff, clean).status(checkpoint, began)
    lake.write(lake.status, status.model_dump(mode="json"))
    lake.delete(lake.at(UNFINISHED))
    return _facts(status, landing, landed_at - began)


def _facts(status: LakeStatus, landing: Landing, landing_seconds: float) -> dict[str, Any]:
    checkpoint = status.checkpoint
    facts = {
        "changes": landing.landed,
        "seconds": status.seconds,
        "landing_seconds": round(landing_seconds, 1),
        "complete_to": checkpoint.gtid_set if checkpoint else None,
        "complete_to_ms": checkpoint.ts_ms if checkpoint else None,
        "tables": {
            name: {
                "rows": t.rows,
                "changes": t.changes_last_run,
                "snapshot": t.snapshot is not None,
                "stopped": t.stopped,
            }
            for name, t in status.tables.items()
        },
    }
    stopped = [t.stopped for t in status.tables.values() if t.stopped]
    if stopped:
        many = f"{len(stopped)} table(s) stopped, the others are complete: " if len(status.tables) > 1 else ""
        raise JobFailedError(many + "; ".join(stopped), facts)
    return facts


class Standing:
    """What this run makes of the last status. After a run that did not end (`clean` is false) the counts are
    taken anew from the lake."""

    def __init__(self, spark: SparkSession, lake: Lake, merging: Merging, handoff: HandOff, clean: bool) -> None:
        self.spark, self.lake, self.merging, self.handoff, self.clean = spark, lake, merging, handoff, clean
        text = lake.text(lake.status)
        self.last = parse(text) if text else None
        self.counts = {} if clean else self._counts()

    def status(self, checkpoint: Checkpoint | None, began: float) -> LakeStatus:
        known = {(t.db, t.table) for t in self.last.tables.values()} if self.last else set()
        touched = {*self.merging.merged, *self.handoff.snapshots.tables, *self._stopped(), *self.counts}
        wanted = sorted(name for name in known | touched if self.lake.pipeline.tables.match(*name))
        tables = {f"{db}.{table}": self._table(db, table, checkpoint) for db, table in wanted}
        return LakeStatus(
            pipeline=self.lake.pipeline.name,
            run=self.last.run + 1 if self.last else 1,
            written_at=int(time.time() * 1000),
            seconds=round(time.time() - began, 1),
            checkpoint=checkpoint,
            changes_version=self.lake.version(self.lake.changes),
            tables=tables,
        )

    def _table(self, db: str, table: str, checkpoint: Checkpoint | None) -> TableStatus:
        name, path = (db, table), self.lake.table(db, table)
        last = self.last.tables.get(f"{db}.{table}") if self.last else None
        merged, stop = self.merging.merged.get(name, 0), self._stopped().get(name)
        at, snapshots = self.lake.version(path), self.handoff.snapshots
        if last and self.clean and name not in self.handoff.applied | self.merging.emptied:
            rows = last.rows + self.merging.rows.get(name, 0)
        else:
            rows = self.spark.read.format("delta").load(path).count() if at is not None else 0
        return TableStatus(
            db=db,
            table=table,
            rows=rows,
            changes=self.counts.get(name, 0) if not self.clean else (last.changes if last else 0) + merged,
            changes_last_run=merged,
            freshness_ms=None if snapshots.gap(name) else self._fresh(last, stop, checkpoint),
            version=at,
            snapshot=None if snapshots.gap(name) else snapshots.tables.get(name),
            stopped=stop,
            unequal=self._unequal(name, checkpoint),
        )

    def _unequal(self, name: Name, checkpoint: Checkpoint | None) -> str | None:
        """A snapshot that begins behind the change has it."""
        place = checkpoint.unequal.get(".".join(name)) if checkpoint else None
        applied = self.handoff.snapshots.tables.get(name)
        if place is None or (applied and tuple(applied.floor[:3]) > place):
            return None
        return (
            f"a record too large for Kafka was put aside (the topic {names.dead_letter_topic(self.lake.pipeline)} says "
            "where): run the snapshot DAG for the table, which reads such rows from the source"
        )

    def _fresh(self, last: TableStatus | None, stop: str | None, checkpoint: Checkpoint | None) -> int | None:
        if stop:
            return last.freshness_ms if last else None
        return checkpoint.ts_ms if checkpoint else None

    def _stopped(self) -> dict[Name, str]:
        waiting = {name: stop.reason for name, stop in self.merging.stopped.tables.items()}
        return {**waiting, **self.handoff.refused}

    def _counts(self) -> dict[Name, int]:
        if not self.lake.is_table(self.lake.changes):
            return {}
        found = (
            self.spark.read.format("delta").load(self.lake.changes).groupBy("db", "tbl").agg(fn.count("*").alias("n"))
        )
        return {(row["db"], row["tbl"][len(row["db"]) + 1 :]): row["n"] for row in found.collect()}
