"""Runs a Structured Streaming query until nothing is left, each batch by a Python function.

An exception of the function comes out as it was raised; through the engine it would be a text inside a text.

Spark notes which offsets a batch has before it calls the function, and that the batch is done behind it. Both are
to outlive a power cut no less than what they are about: `settle` stands before the query, so that no offset is ahead of
what it is read from, before the function, so that no batch that left something comes again with other records, and
behind it, so that none is done of which something may be gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame

from spark.errors import LakeError

Handle = Callable[[DataFrame, int, str], None]
NAMED_WITHIN = 60.0  # seconds


def run_batches(
    frame: DataFrame, checkpoint: str, handle: Handle, settle: Callable[[], None], wait: float = NAMED_WITHIN
) -> None:
    """Calls `handle(batch, number, query)` for each batch; `query` is the id that lives as long as the
    checkpoint does, `number` counts up under it, and a batch that did not end comes again. `settle`: all that was
    written is on the disk behind it. `wait`: seconds that a batch gives Spark to name the query. Raises LakeError where
    it does not, and what `handle` raises."""
    started, identity = threading.Event(), [""]
    failures: list[Exception] = []

    def batch(rows: DataFrame, number: int) -> None:
        try:
            if not started.wait(wait):  # without the query's id, Delta would take this batch for another's
                raise LakeError(f"Spark did not name the query within {wait:g} s; run the job again")
            settle()
            handle(rows, number, identity[0])
            settle()
        except Exception as error:
            failures.append(error)
            raise

    settle()
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
