"""The snapshot job: the rows of a pipeline's tables into the staging; the next compaction applies them."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.job import run
from spark.kafka import Broker
from spark.lake import Lake
from spark.snapshot import Staging, chosen, refuse_unfollowed
from spark.streamed import streamed
from spark.transformed import refuse_other_rules


def snapshot(spark: SparkSession, pipeline: Pipeline, tables: list[str]) -> dict[str, Any]:
    """Stages the named tables, or all. Raises LakeError."""
    began = time.time()
    lake = Lake(spark, pipeline)
    lake.prove_writable()
    p0 = Broker(pipeline).checkpoint()
    if p0 is None:
        raise LakeError(
            f"the commit log of {pipeline.name} is empty, and a snapshot begins at a checkpoint of the streamer: "
            "start the streamer, then run the snapshot again"
        )
    with streamed(pipeline, p0) as source:
        wanted = chosen(pipeline, source, tables)
        refuse_unfollowed(p0, wanted)
        refuse_other_rules(source.pipeline, p0)
        manifest = Staging(spark, source.pipeline, lake, source, lambda line: print(line, flush=True)).run(p0, wanted)
    rows, seconds = sum(manifest.counts.values()), time.time() - began
    return {
        "snapshot": manifest.id,
        "p0": manifest.p0.gtid_set,
        "p1": manifest.p1,
        "rows": rows,
        "seconds": round(seconds, 1),
        "tables": {name: {"rows": count} for name, count in manifest.counts.items()},
    }


if __name__ == "__main__":
    run("snapshot", snapshot)
