"""The tables of a check side by side: what becomes of one keeps no other from being compared."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark import inheritable_thread_target

from contract.status import LakeStatus
from spark.errors import TableError
from spark.failures import message_of
from spark.proof.answer import Answer
from spark.proof.finding import Finding
from spark.proof.moved import moved
from spark.proof.verification import Verification
from spark.tables.merge import unfit
from spark.tables.schema import Schemas

MADE_ANEW = "a snapshot of it was applied meanwhile: verify again"
THREADS = 4  # tables compared side by side


def findings(check: Verification, answers: Sequence[Answer], status: LakeStatus, schemas: Schemas) -> list[Finding]:
    """Of each answer's table. Raises what one failed with where all of them failed: then it is no table's fault."""
    failed: list[Exception] = []

    def compare(answer: Answer) -> Finding:
        name = answer.schema.db, answer.schema.table
        try:
            found = check.compare(answer, status, schemas)
            # Else a version of the status is one of the staged rows' own log, which has some of them.
            if not found.wrong or not moved(check.lake, name, status):
                return found
            check.lost.add(answer.name)
            return Finding(None, None, None, 0.0, MADE_ANEW)
        except Exception as error:
            told = MADE_ANEW
            if not check.made_anew(name):
                check.frames.pop(answer.name, None)  # nor is anything expected of what cannot be read
                unfitting = unfit((answer.schema.db, answer.schema.table), error)
                failed.append(TableError(unfitting) if unfitting else error)
                told = f"it could not be compared: {unfitting or message_of(error, check.pipeline)}"
            check.lost.add(answer.name)
            return Finding(None, None, None, 0.0, told)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(inheritable_thread_target(check.spark)(compare), answers))
    if len(failed) == len(answers):
        raise failed[0]
    return found
