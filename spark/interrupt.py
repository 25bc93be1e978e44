"""Ctrl-C, or SIGTERM, in a job: once the work ends and cleans up behind itself, twice the process ends at once.

Spark's own handler asks Java to cancel in the middle of whatever call to Java the main thread is in, on that call's own
connection: tracebacks by the screen, and jobs that go on. Here another thread asks, on a connection of its own, again
and again, since what the cleanup waits for may begin further Spark jobs. While Spark starts nothing can be asked, and a
Java that is left in its middle tells of that at length: so the signal waits until it has started.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from pyspark.sql import SparkSession

EVERY = 0.5  # seconds
SIGNALS = (signal.SIGINT, signal.SIGTERM)
LATE: list[int] = []  # those that came once the work had ended


class Interrupt:
    """`came`: which signal did, None before; what failed since then failed of it."""

    def __init__(self) -> None:
        self.came: int | None = None

    def hold(self) -> None:
        """From the main thread, before Spark starts. A signal that came before, while who started the process held it
        back, comes now."""

        def note(number: int, _: object) -> None:
            self._note(number)
            print("ends when Spark has started; once more ends at once", file=sys.stderr, flush=True)

        for number in SIGNALS:
            signal.signal(number, note)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def listen(self, spark: SparkSession) -> None:
        """Once the session is made, which sets Spark's handler. Raises KeyboardInterrupt where a signal was held."""

        def end(number: int, _: object) -> NoReturn:
            self._note(number)
            logging.disable()  # Py4J's, of calls that were cut
            threading.Thread(target=_cancel, args=(spark,), daemon=True).start()
            raise KeyboardInterrupt

        if self.came:
            raise KeyboardInterrupt
        for number in SIGNALS:
            signal.signal(number, end)

    def _note(self, number: int) -> None:
        self.came = number
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)


def hold_back() -> None:
    """A signal from now on waits for the end of `telling`. By handlers, for a mask would be of this thread alone."""
    for number in SIGNALS:
        signal.signal(number, lambda came, _: LATE.append(came))


@contextmanager
def telling(status: int) -> Iterator[None]:
    """What is told in the block is told whole; a signal in it, or behind it, ends the process at once with `status`."""
    hold_back()
    try:
        yield
    finally:
        for number in SIGNALS:
            signal.signal(number, lambda *_: os._exit(status))
    if LATE:
        os._exit(status)


def _cancel(spark: SparkSession) -> None:
    while True:
        with suppress(Exception):  # its Java may have ended
            spark.sparkContext.cancelAllJobs()
        time.sleep(EVERY)
