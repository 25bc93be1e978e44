"""The snapshot job: the rows of a pipeline's tables into the staging; the next compaction applies them."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

from contract import steps
from contract.checkpoint import Checkpoint
from contract.counted import counted
from contract.pipeline import Pipeline
from spark.compaction.compacting import OPTION, take_in
from spark.errors import LakeError
from spark.job import JobFailedError, run
from spark.kafka.broker import Broker
from spark.kafka.topic_places import seen
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.lake.owner import refuse_others
from spark.snapshot.places import Places
from spark.snapshot.snapshot import Staging
from spark.snapshot.snapshot_records import SnapshotRecords
from spark.snapshot.transformed import refuse_other_rules
from spark.source.choice import chosen, refuse_unfollowed
from spark.source.source import Source
from spark.source.streamed import reading, streamed


def snapshot(
    spark: SparkSession, pipeline: Pipeline, tables: list[str], existing: str = "", compact: str = ""
) -> dict[str, Any]:
    """Stages the named tables, or all; with `existing` those of them that the source has; with `compact` the lake has
    them at the end. Raises LakeError, and JobFailedError where some were left out."""
    began = time.time()
    lake = Lake(spark, pipeline)
    lake.prove_writable()
    broker = Broker(pipeline)
    p0 = broker.checkpoint()
    if p0 is None:
        raise LakeError(
            f"the commit log of {pipeline.name} is empty, and a snapshot begins at a checkpoint of the streamer: "
            "start the streamer, then run the snapshot again"
        )
    refuse_others(lake, lambda: p0)
    records = SnapshotRecords(pipeline, broker) if pipeline.snapshot.to_kafka else None
    with streamed(pipeline, p0) as source:
        if existing:
            there = {f"{db}.{table}" for db, table in source.tables()}
            for name in (gone := [name for name in tables if name not in there]):
                print(f"{name}: the source does not have it; the lake keeps it as it was", flush=True)
            if tables and len(gone) == len(tables):
                return {"snapshot": None, "p0": p0.gtid_set, "p1": p0.gtid_set, "rows": 0, "tables": {}}
            tables = [name for name in tables if name in there]
        wanted = chosen(pipeline, source, tables)
        places = _places(source, p0, wanted)
        with reading(source) as reader:
            found = seen(pipeline, broker, wanted)  # before P0, which has all that is gone by now
            staging = Staging(spark, source.pipeline, lake, source, places, reader, _tell, records=records, seen=found)
            manifest = staging.run(wanted, named=bool(tables) and not existing, all=not tables)
    facts = _facts(manifest, time.time() - began)
    if compact and facts["tables"]:
        facts = take_in(spark, pipeline, facts)
    if refused := {name: why for name, why in staging.refused.items() if name not in staging.gone}:
        facts["passed_by"] = {name: why.removeprefix(f"{name}: ") for name, why in refused.items()}
        raise JobFailedError(_left_out(pipeline, facts), facts)
    return facts


def _left_out(pipeline: Pipeline, facts: dict[str, Any]) -> str:
    told = "; ".join(f"{name} was left out: {why}" for name, why in facts["passed_by"].items())
    done = "in the lake" if "compacted_seconds" in facts else steps.staged(pipeline)
    return f"{told}. {counted(len(facts['tables']), 'other table')} {done}"


def _facts(manifest: Manifest, seconds: float) -> dict[str, Any]:
    rows = sum(manifest.counts.values())
    return {
        "snapshot": manifest.id,
        "p0": manifest.p0.gtid_set,
        "p1": manifest.p1,
        "rows": rows,
        "seconds": round(seconds, 1),
        "tables": {name: {"rows": count} for name, count in manifest.counts.items()},
    }


def _places(source: Source, p0: Checkpoint, tables: list[tuple[str, str]]) -> Places:
    def refuse(checkpoint: Checkpoint) -> None:
        refuse_unfollowed(checkpoint, tables)
        refuse_other_rules(source.pipeline, checkpoint)

    refuse(p0)
    return Places(source, p0, Broker(source.pipeline).checkpoint, refuse, _tell)


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    existing = "of the tables those alone that the source has: any text, such as yes"
    run("snapshot", snapshot, {"existing": existing, "compact": OPTION})
