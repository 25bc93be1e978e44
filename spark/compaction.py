"""One compaction run: land, apply ready snapshots, merge, and say how the lake stands.

The commit log is read before the topics' ends are: everything up to that checkpoint is then in the lake, which
makes it the lake's. A failed run leaves nothing to mend; the next one goes on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import LakeStatus, parse
from spark import ddl_topic
from spark.changes import Landing
from spark.evolution import Evolution
from spark.failpoints import reached
from spark.foreign import foreign_writes, forget_lost, marked, refuse_foreign_changes
from spark.handoff import apply_ready
from spark.job import JobFailedError
from spark.kafka import Broker
from spark.lake import Lake
from spark.letters import Letters
from spark.mending.apply import Mending
from spark.owner import refuse_foreign
from spark.renames import in_lake
from spark.schema import Schemas
from spark.slot import writing
from spark.standing import Standing
from spark.stopped import Name
from spark.tables import Merging

UNFINISHED = "_running.json"  # there while a run is under way: its counts are not in the status yet


def compact(spark: SparkSession, pipeline: Pipeline) -> dict[str, Any]:
    """Runs both steps for all of the pipeline's tables. Raises LakeError, JobFailedError where a table is stopped."""
    lake = Lake(spark, pipeline)
    try:
        lake.prove_writable()
        with writing(lake, "compact"):
            return run(spark, pipeline, lake)
    finally:
        lake.close()


def run(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> dict[str, Any]:
    """The same for who has the lake's slot."""
    began = time.time()
    broker = Broker(pipeline)
    checkpoint = broker.checkpoint()
    last = parse(text) if (text := lake.text(lake.status)) else None
    refuse_foreign(lake, last, checkpoint)
    clean = not lake.exists(lake.at(UNFINISHED))
    foreign = foreign_writes(spark, lake, last) if last else {}
    if last:
        refuse_foreign_changes(spark, lake, last)
    landing = Landing(spark, pipeline, lake)
    topics = broker.topics(landing.topics())
    ids, ends = broker.topic_ids(topics), broker.ends(topics)
    lake.write(lake.at(UNFINISHED), {"began": began})
    reached("run noted")

    landing.run(ends, ids, checkpoint)
    letters = landing.letters.count()
    landed_at = time.time()
    shapes = broker.schemas()
    evolution = Evolution(spark, lake, Schemas(shapes))
    evolution.refuse_lost_shapes()
    ddl_topic.prove(lake, broker, evolution, landing.seen)
    handoff = apply_ready(spark, lake)
    if checkpoint:
        handoff.snapshots.find_gaps(checkpoint, last.checkpoint if last else None)
    floors = handoff.snapshots.floors()
    evolution.follow(*broker.ddl(evolution.read), floors)
    foreign = {name: told for name, told in foreign.items() if name not in handoff.applied}
    forget_lost(lake, handoff.snapshots, foreign)
    for line in (*foreign.values(), *evolution.told):
        print(line, flush=True)
    schemas = in_lake(lake, shapes)
    merging = Merging(spark, lake, schemas, floors)
    if not (clean and last and last.changes_version == lake.version(lake.changes)):
        merging.run()
    merging.retry()
    mending = Mending(spark, lake, schemas, handoff.snapshots, [*merging.stopped.tables, *handoff.refused])
    mending.run(checkpoint)
    merging.emptied |= {*foreign} | mending.tables  # nobody counted their rows

    standing = Standing(spark, lake, merging, handoff, clean, evolution.stale(), landing.letters)
    more = {"unreadable": letters, "parts": mending.told(last.parts if last else {})}
    status = standing.status(checkpoint, began).model_copy(update=more)
    status = marked(status, lake, last, foreign, mending.whole)
    lake.write(lake.status, status.model_dump(mode="json"))
    reached("status written")
    mending.clear()
    lake.delete(lake.at(UNFINISHED))
    reached("run ended")
    counts: dict[str, Any] = {"changes": landing.landed, "landing_seconds": round(landed_at - began, 1)}
    counts |= {"unreadable": _put_aside(landing.letters, letters, last)}
    counts |= {"nulled": _nulled(standing.nulled)}
    counts |= {"parts": {id: part.model_dump() for id, part in mending.done.items()}}
    return _facts(status, counts, evolution.told)


def _put_aside(letters: Letters, count: int, last: LakeStatus | None) -> int:
    """How many records since the last run that came to its end: what one put aside that was killed, this one tells."""
    new = count - (last.unreadable if last else 0)
    if new:
        print(f"{new:,} record(s) that are no change were put aside in {letters.table}", flush=True)
    return new


def _nulled(values: Mapping[Name, int]) -> dict[str, int]:
    """How many of this run by table, told too."""
    counts = {".".join(name): count for name, count in sorted(values.items())}
    for name, count in counts.items():
        told = f"{count:,} value(s) that the lake's types cannot hold are null there (lake.unrepresentable)"
        print(f"{name}: {told}", flush=True)
    return counts


def _facts(status: LakeStatus, counts: dict[str, Any], evolved: list[str]) -> dict[str, Any]:
    checkpoint = status.checkpoint
    facts = {
        **counts,
        "seconds": status.seconds,
        "complete_to": checkpoint.gtid_set if checkpoint else None,
        "complete_to_ms": checkpoint.ts_ms if checkpoint else None,
        "schema_changes": evolved,
        "tables": {
            name: {
                "rows": t.rows,
                "changes": t.changes_last_run,
                "snapshot": t.snapshot is not None,
                "stopped": t.stopped,
                "unequal": t.unequal,
                "stale": t.stale.reason if t.stale else None,
                "outdated": t.outdated,
                "unread": t.unread,
                "foreign": t.foreign.reason if t.foreign else None,
            }
            for name, t in status.tables.items()
        },
    }
    stopped = [t.stopped for t in status.tables.values() if t.stopped]
    if stopped:
        many = f"{len(stopped)} table(s) stopped, the others are complete: " if len(status.tables) > 1 else ""
        raise JobFailedError(many + "; ".join(stopped), facts)
    return facts
