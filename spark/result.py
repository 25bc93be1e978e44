"""How a job's result is told: to a person at a terminal in lines, to whoever reads its output by the line of
contract/jobs.py. A failure is one paragraph on standard error besides, in the form that the commands' errors have.
"""

from __future__ import annotations

import sys
from typing import Any

from contract import jobs
from quality.summary import lines

STAGED = "staged: `headrace compact {file}` puts that in its place, then `headrace verify {file}` proves it"
PUT = "`headrace verify {file}` proves what is in the lake now"
STAGING = {"snapshot", "repair", "backfill"}


def for_a_person() -> bool:
    """Whether nobody but a person reads what the job says, so that no scheduler acts on it either."""
    return sys.stdout.isatty()


def tell(*, job: str, pipeline: str, error: str | None = None, file: str = "", **facts: Any) -> None:
    """`facts` as those of `jobs.report`. `file`: the pipeline's, by which a person is told what comes next."""
    if not for_a_person():
        jobs.report(job=job, pipeline=pipeline, error=error, **facts)
        return
    ok = error is None
    for line in lines({"job": job, "pipeline": pipeline, "ok": ok, "error": error, **facts}, faults=ok):
        print(line, flush=True)
    if file and job in STAGING and facts.get("tables"):
        print((PUT if "compacted_seconds" in facts else STAGED).format(file=file), flush=True)


def tell_failure(job: str, pipeline: str, error: str) -> None:
    if for_a_person():  # each table's fault in a line of its own
        error = error.replace(" | ", "\n  ")
    print(f"error (spark_job): {job}{' of ' + pipeline if pipeline else ''}: {error}", file=sys.stderr, flush=True)


def tell_wait(gtid_set: str) -> None:
    """For a scheduler, that compaction can be started; a person is told by the line that follows."""
    if not for_a_person():
        jobs.waits_for(gtid_set)
