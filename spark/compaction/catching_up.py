"""A compaction that is started by a schedule: the run, and once more what came meanwhile.

A Spark that has just started takes most of a first run's time to warm up, and changes came all that while. In the warm
session they take seconds, and would else wait for the next run with its own start: how old the lake grows between two
runs is some half of what it is without.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import parse
from spark.compaction.compaction import compact
from spark.job import Facts, JobFailedError
from spark.kafka.broker import Broker
from spark.lake.lake import Lake

SUMMED = ("changes", "landing_seconds", "unreadable", "seconds")


def catch_up(spark: SparkSession, pipeline: Pipeline) -> Facts:
    """A run, and another one where the first had changes and the streamer has released more since; the facts are those
    of both. Raises what a run raises; JobFailedError where a table is stopped behind the last one."""
    facts, failed = _run(spark, pipeline)
    if facts["changes"] and (waiting := _waiting(spark, pipeline)):
        print(f"{waiting:,} change(s) came meanwhile, which are taken in now", flush=True)
        more, failed = _run(spark, pipeline)
        facts = together(facts, more)
    if failed:
        raise JobFailedError(failed, facts)
    return facts


def _run(spark: SparkSession, pipeline: Pipeline) -> tuple[Facts, str]:
    """The run's facts, and why tables are stopped; the other ones are complete."""
    try:
        return compact(spark, pipeline), ""
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
