"""How a job's result is told: to a person at a terminal in lines, to whoever reads its output by the line of
contract/jobs.py. A failure is one paragraph on standard error besides, in the form that the commands' errors have.
"""

from __future__ import annotations

import sys
from typing import Any

from contract import jobs
from quality.summary import lines


def tell(*, job: str, pipeline: str, error: str | None = None, **facts: Any) -> None:
    """`facts` as those of `jobs.report`."""
    if sys.stdout.isatty():
        for line in lines({"job": job, "pipeline": pipeline, "ok": error is None, "error": error, **facts}):
            print(line, flush=True)
    else:
        jobs.report(job=job, pipeline=pipeline, error=error, **facts)


def tell_failure(job: str, pipeline: str, error: str) -> None:
    print(f"error (spark_job): {job}{' of ' + pipeline if pipeline else ''}: {error}", file=sys.stderr, flush=True)


def tell_wait(gtid_set: str) -> None:
    """For a scheduler, that compaction can be started; a person is told by the line that follows."""
    if not sys.stdout.isatty():
        jobs.waits_for(gtid_set)
