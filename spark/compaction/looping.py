"""Compaction all the time: round after round in one warm Spark session, until SIGTERM or SIGINT.

A round is a whole compaction run (compaction.py), which leaves the lake's status and gives its result line
(result.py); `compaction.every_seconds` lie between the beginnings of two, unless one takes longer. A failed
round is told and tried again behind a pause that doubles each time; the next one mends what it left, as any run does.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from contract import no_lake
from contract.pipeline import Pipeline, PipelineFileError, load
from spark import result
from spark.compaction import compaction
from spark.compaction.report import of_a_round
from spark.errors import LakeError
from spark.failures import message_of
from spark.job import Facts, JobFailedError
from spark.lake.lake import Lake
from spark.lake.slot import death_shows, writing

JOB = "compact"
BETWEEN = 0.5  # seconds that the lake is let go for at least, so that a job that waits for it gets its turn
RETRY, RETRY_MOST = 2.0, 60.0  # seconds
QUIET = 60.0  # seconds after which rounds that found nothing are told of


def loop(spark: SparkSession, pipeline: Pipeline) -> Facts:
    """Compacts until a signal comes, and ends behind the round that is under way. Raises LakeError where another loop
    follows the pipeline, or Spark has ended."""
    stop = threading.Event()

    def end(number: int, _: object) -> None:
        stop.set()  # before the words: whoever reads them may be away, or in the middle of a line
        signal.signal(number, signal.SIG_DFL)
        with suppress(OSError, RuntimeError):
            print("ends behind this round; once more ends at once, and the next run mends what that leaves", flush=True)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    lake = Lake(spark, pipeline)
    lake.prove_writable()
    with writing(lake, "compact --loop", patience=death_shows(lake), name="_loop"):
        print("Spark has started: the first round begins", file=sys.stderr, flush=True)
        return Loop(spark, pipeline, stop).run()


@dataclass
class Loop:
    """`rounds`, `changes`: since the start. `failures`: of the last rounds, in a row. `text`: of the pipeline file, as
    it was last looked at."""

    spark: SparkSession
    pipeline: Pipeline
    stop: threading.Event
    rounds: int = 0
    changes: int = 0
    failures: int = 0
    stopped: str = ""
    text: str = ""
    mistake: str = ""
    told: float = field(default_factory=time.monotonic)

    def run(self) -> Facts:
        while not self.stop.is_set():
            began = time.monotonic()
            self._look()
            self._round()
            self.stop.wait(self._pause(time.monotonic() - began))
        return {"rounds": self.rounds, "changes": self.changes}

    def _pause(self, took: float) -> float:
        if self.failures:
            return min(RETRY_MOST, RETRY * 2 ** min(self.failures - 1, 10))
        return max(BETWEEN, self.pipeline.compaction.every_seconds - took)

    def _look(self) -> None:
        """Each round goes by the pipeline file as it is, as each run of a schedule does: the streamer follows tables
        that join at once. One with a mistake is told, and the last right one holds. Raises LakeError where the lake is
        another one, or another pipeline's: the session is of the one before."""
        with suppress(OSError, UnicodeError):
            text = self.pipeline.path.read_text()
            if text == self.text and not self.failures:  # else a secret, say, may be another one by now
                return
            try:
                self._take(load(self.pipeline.path))
            except PipelineFileError as error:  # of a script, say, that comes later, too
                self._tell_mistake(f"{error}\nThe rounds go on by the file as it was")
            else:
                self.text, self.mistake = text, ""

    def _tell_mistake(self, text: str) -> None:
        if text != self.mistake:
            print(text, flush=True)
        self.mistake = text

    def _take(self, now: Pipeline) -> None:
        if now == self.pipeline:
            return
        if (now.name, now.lake) != (self.pipeline.name, self.pipeline.lake):
            raise LakeError(f"{now.path} has another name or `lake` than at the start: start this again")
        try:
            no_lake.refuse(now)
        except PipelineFileError as error:
            raise LakeError(str(error)) from None
        self.pipeline = now
        print(f"{now.path}, or what it names, was edited: the rounds go by it from now on", flush=True)

    def _round(self) -> None:
        self.rounds += 1
        try:
            facts = compaction.compact(self.spark, self.pipeline)
        except JobFailedError as error:  # the other tables are complete
            self._tell_stopped(str(error))
            self._done(error.facts)
        except Exception as error:  # whatever it is, the next round is a new beginning
            if ended(self.spark):
                raise LakeError(f"Spark has ended: {message_of(error, self.pipeline)}. Start this again") from error
            self._failed(message_of(error, self.pipeline))
        else:
            self.stopped = ""
            self._done(facts)

    def _tell_stopped(self, text: str) -> None:
        if text != self.stopped:
            print(text, flush=True)
        self.stopped = text

    def _done(self, facts: dict[str, Any]) -> None:
        if self.failures:
            print("all is well again", flush=True)
        self.failures = 0
        self.changes += facts["changes"]
        if facts["changes"] or time.monotonic() - self.told >= QUIET:
            self.told = time.monotonic()
            told = {**_behind(facts), **of_a_round(facts)}
            result.tell(job=JOB, pipeline=self.pipeline.name, round=self.rounds, **told)

    def _failed(self, text: str) -> None:
        self.failures += 1
        result.tell(job=JOB, pipeline=self.pipeline.name, error=text, round=self.rounds, failures=self.failures)
        print(f"round {self.rounds} failed, tried again in {self._pause(0):.0f} s: {text}", flush=True)


def _behind(facts: dict[str, Any]) -> dict[str, Any]:
    """How old the newest change is that is merged now; nothing where none came."""
    if not (facts["changes"] and facts["complete_to_ms"]):
        return {}
    return {"freshness_seconds": round(time.time() - facts["complete_to_ms"] / 1000, 1)}


def ended(spark: SparkSession) -> bool:
    """Whether the session's Java is gone, or stopped."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())  # type: ignore[union-attr]
    except Exception:  # nobody answers
        return True
