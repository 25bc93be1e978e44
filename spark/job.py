"""The frame around each job's work: the pipeline file, the session, and one clear message when it fails.

A job ends with status 0 and its result (result.py), or with status 1, one message on standard error, and the same in
its result; with 128 and the signal's number where one ended it (130: Ctrl-C), which leaves nothing that the next run
does not mend.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from contract import job_options, no_lake
from contract.pipeline import Pipeline, PipelineFileError, load
from spark import result
from spark.failures import message_of, passing
from spark.interrupt import Interrupt, hold_back, telling
from spark.session import session

Facts = dict[str, Any]
Work = Callable[..., Facts]
INTERRUPTED = 128  # and the number of the signal, as shells say it
CUT = "was interrupted, and left nothing half done: run it again"


class JobFailedError(Exception):
    """A job that did its work and found something wrong: `facts` are reported beside the message."""

    def __init__(self, message: str, facts: Facts) -> None:
        super().__init__(message)
        self.facts = facts


def run(name: str, work: Work, options: Mapping[str, str] | None = None, tables: bool = True) -> NoReturn:
    """Runs `work(spark, pipeline, tables)`; `tables` are the `db.table` names given, empty for all; without, where the
    job is one of all tables. `options`: further ones, each with its help; `work` gets them by name, as texts, empty
    where they were left out."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--pipeline", required=True, help="the pipeline file")
    if tables:
        parser.add_argument("--tables", default="", help="db.table names by comma; all when left out")
    for option, help in (options or {}).items():
        parser.add_argument(f"--{option}", default="", help=help)
        if option in job_options.FILED:
            parser.add_argument(f"--{job_options.BESIDE.format(option)}", help="a file with them, which is removed")
    given = parser.parse_args()
    try:
        more = {option: _text_of(given, option).strip() for option in options or {}}
    except OSError as error:
        _end(name, "", f"{error.filename} cannot be read ({error.strerror}): run the job again", {})
    chosen = [[table.strip() for table in given.tables.split(",") if table.strip()]] if tables else []
    try:
        pipeline = load(given.pipeline)
        no_lake.refuse(pipeline)
    except PipelineFileError as error:
        _end(name, "", str(error), {})
    interrupt = Interrupt()
    interrupt.hold()
    try:
        spark = session(f"headrace-{pipeline.name}-{name}")
        interrupt.listen(spark)
        facts = work(spark, pipeline, *chosen, **more)
        hold_back()
    except (Exception, KeyboardInterrupt) as error:  # the job's outermost frame: whatever it is becomes one message
        hold_back()
        if interrupt.came or isinstance(error, KeyboardInterrupt):
            _end(name, pipeline.name, CUT, {}, INTERRUPTED + (interrupt.came or signal.SIGINT))
        _end(name, pipeline.name, *_told(error, pipeline), file=str(pipeline.path))
    _end(name, pipeline.name, None, facts, file=str(pipeline.path))


def _text_of(given: argparse.Namespace, option: str) -> str:
    """Raises OSError."""
    file = getattr(given, f"{option}_file", None)
    return job_options.taken(file) if file else str(getattr(given, option))


def _told(error: Exception, pipeline: Pipeline) -> tuple[str, Facts]:
    if isinstance(error, JobFailedError):
        return str(error), error.facts
    return message_of(error, pipeline), {"again": True} if passing(error) else {}


def _end(name: str, pipeline: str, error: str | None, facts: Facts, status: int = 1, file: str = "") -> NoReturn:
    code = status if error else 0
    with telling(code):
        result.tell(job=name, pipeline=pipeline, error=error, file=file, **facts)
        if error:
            result.tell_failure(name, pipeline, error)
        sys.stdout.flush()
    with suppress(Exception):  # a JVM that has died cannot be stopped, and the message was told
        if running := SparkSession.getActiveSession():
            running.stop()
    os._exit(code)  # threads of a failed query must not hold the process
