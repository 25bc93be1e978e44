"""Runs a Structured Streaming query until nothing is left, each batch by a Python function.

An exception of the function comes out as it was raised; through the engine it would be a text inside a text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame

from spark.errors import LakeError

Handle = Callable[[DataFrame, int, str], None]


def run_batches(frame: DataFrame, checkpoint: str, handle: Handle) -> None:
    """Calls `handle(batch, number, query)` for each batch; `query` is the id that lives as long as the
    checkpoint does, `number` counts up under it, and a batch that did not end comes again."""
    started, identity = threading.Event(), [""]
    failures: list[Exception] = []

    def batch(rows: DataFrame, number: int) -> None:
        try:
            if not started.wait(60):  # without the query's id, Delta would take this batch for another's
                raise LakeError("Spark did not name the query within 60 s; run the job again")
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
