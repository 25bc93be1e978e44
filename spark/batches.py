"""Runs a Structured Streaming query until nothing is left, each batch by a Python function.

An exception of the function comes out as it was raised; through the engine it would be a text inside a text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from pyspark.sql import DataFrame

from spark.errors import LakeError
from spark.lake import Lake

Handle = Callable[[DataFrame, int, str], None]
NAMED_WITHIN = 60.0  # seconds


def merged_to(lake: Lake) -> int | None:
    """The version of `_changes` up to which the merge has come by its own checkpoint, whole commits alone; None where
    it has none."""
    done = [int(name) for name in lake.list(f"{lake.checkpoint('tables')}/commits") if name.isdigit()]
    behind = version_behind(lake, max(done)) if done else None
    return None if behind is None else behind - 1


def version_behind(lake: Lake, batch: int) -> int | None:
    """The version of `_changes` that comes behind a batch of the merge, or of which the batch has a part; None where
    the checkpoint does not have the batch."""
    text = lake.text(f"{lake.checkpoint('tables')}/offsets/{batch}")
    return int(json.loads(text.splitlines()[-1])["reservoirVersion"]) if text else None


def run_batches(frame: DataFrame, checkpoint: str, handle: Handle, wait: float = NAMED_WITHIN) -> None:
    """Calls `handle(batch, number, query)` for each batch; `query` is the id that lives as long as the
    checkpoint does, `number` counts up under it, and a batch that did not end comes again. `wait`: seconds
    that a batch gives Spark to name the query. Raises LakeError where it does not, and what `handle` raises."""
    started, identity = threading.Event(), [""]
    failures: list[Exception] = []

    def batch(rows: DataFrame, number: int) -> None:
        try:
            if not started.wait(wait):  # without the query's id, Delta would take this batch for another's
                raise LakeError(f"Spark did not name the query within {wait:g} s; run the job again")
            handle(rows, number, identity[0])
        except Exception as error:
            failures.append(error)
            raise

    query = frame.writeStream.foreachBatch(batch).trigger(availableNow=True)
    running = query.option("checkpointLocation", checkpoint).start()
    identity[0] = str(running.id)
    started.set()
    try:
        running.awaitTermination()
    except Exception:
        if failures:
            raise failures[0] from None
        raise
