"""Ctrl-C in a job: once the work ends and cleans up behind itself, twice the process ends at once.

Spark's own handler asks Java to cancel in the middle of whatever call to Java the main thread is in, on that call's own
connection: tracebacks by the screen, and jobs that go on. Here another thread asks, on a connection of its own, again
and again, since what the cleanup waits for may begin further Spark jobs.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import suppress
from typing import NoReturn

from pyspark.sql import SparkSession

EVERY = 0.5  # seconds


class Interrupt:
    """`came`: whether it did; what failed since then failed of it."""

    def __init__(self) -> None:
        self.came = False

    def listen(self, spark: SparkSession) -> None:
        """From the main thread, once the session is made, which sets Spark's handler."""

        def end(number: int, _: object) -> NoReturn:
            self.came = True
            signal.signal(number, signal.SIG_DFL)
            logging.disable()  # Py4J's, of calls that were cut
            threading.Thread(target=_cancel, args=(spark,), daemon=True).start()
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, end)


def _cancel(spark: SparkSession) -> None:
    while True:
        with suppress(Exception):  # its Java may have ended
            spark.sparkContext.cancelAllJobs()
        time.sleep(EVERY)
