"""A compaction that is started by a schedule: the run, and once more what came meanwhile.

A Spark that has just started takes most of a first run's time to warm up, and changes came all that while. In the warm
session they take less, and would else wait for the next run with its own start.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import parse
from spark.compaction.compaction import compact
from spark.errors import PassingError
from spark.failures import message_of
from spark.job import Facts, JobFailedError
from spark.kafka.broker import Broker
from spark.lake.lake import Lake
from spark.lake.slot import PATIENCE

SUMMED = ("changes", "landing_seconds", "unreadable", "seconds")


def catch_up(spark: SparkSession, pipeline: Pipeline) -> Facts:
    """A run, and another one where the first had changes and the streamer has released more since; the facts are those
    of both. Raises what a run raises; JobFailedError where a table is stopped behind the last one, or that one failed:
    what the first has done is told all the same."""
    facts, failed = _run(spark, pipeline, PATIENCE)
    if facts["changes"]:
        facts, failed = _once_more(spark, pipeline, facts, failed)
    if failed:
        raise JobFailedError(failed, facts)
    return facts


def _once_more(spark: SparkSession, pipeline: Pipeline, first: Facts, failed: str) -> tuple[Facts, str]:
    try:
        if not (waiting := _waiting(spark, pipeline)):
            return first, failed
        print(f"{waiting:,} change(s) came meanwhile, which are taken in now", flush=True)
        more, failed = _run(spark, pipeline, 0)
    except PassingError as error:
        print(f"what came meanwhile waits for the next compaction: {error}", flush=True)
        return first, failed
    except Exception as error:  # whatever it is, the first run has come to its end
        return first, f"what came while it ran could not be taken in: {message_of(error, pipeline)}"
    return together(first, more), failed


def _run(spark: SparkSession, pipeline: Pipeline, patience: float) -> tuple[Facts, str]:
    """The run's facts, and why tables are stopped; the other ones are complete."""
    try:
        return compact(spark, pipeline, patience), ""
    except JobFailedError as error:
        return error.facts, str(error)


def _waiting(spark: SparkSession, pipeline: Pipeline) -> int:
    """How many row changes the streamer has released behind the checkpoint up to which the lake is complete."""
    lake = Lake(spark, pipeline)
    try:
        status, newest = parse(lake.text(lake.status) or ""), Broker(pipeline).checkpoint()
    finally:
        lake.close()
    return newest.events - status.checkpoint.events if newest and status.checkpoint else 0


def together(first: Facts, second: Facts) -> Facts:
    """The facts of two runs as those of one: how the lake stands behind the second, and what both did."""
    before = first["tables"]
    return {
        **second,
        **{name: round(first[name] + second[name], 1) for name in SUMMED},
        "nulled": _summed(first["nulled"], second["nulled"]),
        "parts": {**first["parts"], **second["parts"]},
        "schema_changes": [*first["schema_changes"], *second["schema_changes"]],
        "tables": {
            name: {**one, "changes": one["changes"] + (before[name]["changes"] if name in before else 0)}
            for name, one in second["tables"].items()
        },
    }


def _summed(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in sorted(first | second)}
