"""A batch of step 1 that was planned and has no room: it is forgotten, so that Spark plans a smaller one.

Spark notes which offsets a batch has before it begins, and a batch that did not end comes again as it was, whatever
`compaction.max_offsets_per_batch` says by then: where the disk was too small for it, each run would fail likewise.
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from contract import names
from spark.lake.delta_log import last_transaction
from spark.lake.lake import Lake
from spark.lake.letters import APP as LETTERS

APP = "headrace-changes-{}"  # and the query's id: under a new checkpoint, numbers begin anew
Offsets = dict[str, dict[str, int]]


def forget_larger(spark: SparkSession, lake: Lake, most: int) -> None:
    """Of more than so many records. One of which something is written already stays: that is passed by when the same
    batch comes again, and by no other."""
    folder = lake.checkpoint("changes")
    number = _newest(lake, f"{folder}/offsets")
    if number == _newest(lake, f"{folder}/commits") or _records(lake, folder, number) <= most:
        return
    query = json.loads(lake.text(f"{folder}/metadata") or "{}").get("id")
    written = ((lake.changes, APP), (lake.at(names.DEAD_LETTERS), LETTERS))
    if any(lake.is_table(path) and last_transaction(spark, path, app.format(query)) >= number for path, app in written):
        return
    lake.remove(f"{folder}/offsets/{number}")
    print(f"batch {number} did not end and had more than {most:,} records: smaller ones take its place", flush=True)


def _newest(lake: Lake, folder: str) -> int:
    return max((int(name) for name in lake.list(folder) if name.isdigit()), default=-1)


def _records(lake: Lake, folder: str, number: int) -> int:
    """How many the batch has; too many where it is the query's first, and Kafka has removed older ones. Less one of
    each partition, by which Spark rounds up."""
    begin, end = _offsets(lake, folder, number - 1), _offsets(lake, folder, number)
    each = [at - begin.get(topic, {}).get(part, 0) for topic, parts in end.items() for part, at in parts.items()]
    return sum(count - 1 for count in each if count)


def _offsets(lake: Lake, folder: str, number: int) -> Offsets:
    text = lake.text(f"{folder}/offsets/{number}")
    found: Offsets = json.loads(text.splitlines()[-1]) if text else {}
    return found
