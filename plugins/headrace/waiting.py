"""The waits of a snapshot, of a repair and of a check, and what tells of tables that were left out.

`StreamerPassed` waits until the streamer's checkpoint covers P1, the position after the snapshot's last chunk;
`SnapshotApplied` until the lake has applied the snapshot and is complete up to P1, `PartsApplied` until it has put the
parts of a repair or a backfill in their place. They are deferred, so no worker is held. In: the report of the job (XCom
of the task `stage`). An end of patience fails the task and says what was still missing. `CheckWaits` waits until a
check has read MySQL and in its turn waits for the lake; its XCom has the same form.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import XCOM_RUN_ID
from airflow.sdk import BaseOperator, BaseSensorOperator, PokeReturnValue, TaskInstanceState
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from headrace import progress
from headrace.compacting import Failure, failure, paused
from headrace.spark_job import WAITS, JobFailed

POLL_SECONDS = 3.0
PATIENCE = 3600  # seconds, which a compaction may take
FAILED_SECONDS = 60  # behind a compaction that failed: for a lake's status that cannot be read at once
NO_REPORT = "the task {task} left no report: clear it, so that it runs again"
NOT_THERE = "the lake does not have yet what was staged of it"
ENDED = {TaskInstanceState.SUCCESS, TaskInstanceState.FAILED, TaskInstanceState.UPSTREAM_FAILED}


class NotTaken(AirflowFailException):
    """`result`: the report of the task `stage`, with the tables (`lacking`) that the lake does not have so, and why."""

    def __init__(self, told: str, report: dict[str, Any], lacking: dict[str, str]) -> None:
        super().__init__(told)
        self.result = {**report, "lacking": lacking}


class Until(BaseTrigger):
    """Asks `progress.QUESTIONS[question]` every few seconds until it says that nothing is missing."""

    def __init__(self, question: str, pipeline_file: str, report: dict[str, Any], deadline: float) -> None:
        super().__init__()
        self.question = question
        self.pipeline_file = pipeline_file
        self.report = report
        self.deadline = deadline  # Unix seconds: a restarted triggerer does not begin the wait anew

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("question", "pipeline_file", "report", "deadline")
        return "headrace.waiting.Until", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        missing: str | None = None
        while True:
            told = missing
            try:
                ask = progress.QUESTIONS[self.question]
                missing = await asyncio.to_thread(ask, self.pipeline_file, self.report)
            except progress.CannotTellError as error:
                missing = str(error)
            if missing is None or time.time() > self.deadline:
                yield TriggerEvent({"missing": missing})
                return
            if missing != told:
                self.log.info("waiting: %s", missing)
            await asyncio.sleep(POLL_SECONDS)


class _Wait(BaseOperator):
    """`compaction`: the DAG of which the task `compact` of the same run started a run, if one did."""

    question = ""
    done = ""

    def __init__(
        self, *, pipeline_file: str, stage: str, compaction: str = "", patience_seconds: int = PATIENCE, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self.stage = stage
        self.compaction = compaction
        self.patience_seconds = patience_seconds

    def execute(self, context: Any) -> str:
        report = context["ti"].xcom_pull(task_ids=self.stage)
        if not report:
            raise AirflowFailException(NO_REPORT.format(task=self.stage))
        if self._is_done(report):  # nor deferred, which Airflow takes for a failure where the task goes on at once
            return self.resume(context, {"missing": None})
        patience = self._patience(self._failure(context))
        trigger = Until(self.question, self.pipeline_file, report, time.time() + patience)
        return self.defer(trigger=trigger, method_name="resume")

    def _is_done(self, report: dict[str, Any]) -> bool:
        try:
            return progress.QUESTIONS[self.question](self.pipeline_file, report) is None
        except progress.CannotTellError:
            return False
        except progress.NeverTellsError as error:
            raise AirflowFailException(str(error)) from None

    def resume(self, context: Any, event: dict[str, Any]) -> str:
        if event["missing"]:
            failed = self._failure(context)
            why = failed.died if failed else self._not_started(context)
            told = f"{event['missing']}. {why}" if why else event["missing"]
            raise self._not_taken(context, f"not done after {self._patience(failed)} s: {told}")
        self.log.info("%s", self.done)
        return self.done

    def _not_taken(self, context: Any, told: str) -> AirflowFailException:
        return AirflowFailException(told)

    def _patience(self, failed: Failure | None) -> int:
        return self.patience_seconds if failed is None else min(self.patience_seconds, FAILED_SECONDS)

    def _failure(self, context: Any) -> Failure | None:
        """Of the compaction."""
        run = self._run(context)
        return failure(context["ti"], self.compaction, run) if run else None

    def _run(self, context: Any) -> str | None:
        """Of the compaction that was started for this one."""
        return context["ti"].xcom_pull(task_ids="compact", key=XCOM_RUN_ID) if self.compaction else None

    def _not_started(self, context: Any) -> str:
        if not self.compaction or self._run(context):
            return ""
        return f"No compaction was started: {paused(self.compaction)}"


class StreamerPassed(_Wait):
    question = "streamer passed"
    done = "the streamer's checkpoint covers the end of the snapshot"


class _Applied(_Wait):
    """Of the tables that wait in vain the others are told apart."""

    def _not_taken(self, context: Any, told: str) -> AirflowFailException:
        report = context["ti"].xcom_pull(task_ids=self.stage) or {}
        return NotTaken(told, report, dict.fromkeys(progress.lacking(self.pipeline_file, report), NOT_THERE))


class SnapshotApplied(_Applied):
    question = "snapshot applied"
    done = "the lake has the snapshot and is complete up to its end"


class PartsApplied(_Applied):
    """Is skipped where nothing was staged; fails where a part was refused."""

    question = "parts applied"
    done = "the lake has the rows"

    def execute(self, context: Any) -> str:
        report = context["ti"].xcom_pull(task_ids=self.stage) or {}
        if "parts" in report and not report["parts"]:
            raise AirflowSkipException("nothing was staged, so there is nothing to wait for")
        return super().execute(context)

    def resume(self, context: Any, event: dict[str, Any]) -> str:
        super().resume(context, event)
        report = context["ti"].xcom_pull(task_ids=self.stage)
        found = progress.parts(self.pipeline_file, report)
        for part in found:
            self.log.info("%s.%s: %s", part.db, part.table, part.refused or part.rows or "was right already")
        if refused := {f"{part.db}.{part.table}": part.refused for part in found if part.refused}:
            raise NotTaken("; ".join(refused.values()), report, refused)
        return self.done


class AllStaged(BaseOperator):
    """Fails where the job of the task `stage` left out a table that was asked for. The others go on meanwhile: of the
    run's end this one alone is a failure."""

    def __init__(self, *, stage: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stage = stage

    def execute(self, context: Any) -> None:
        report = context["ti"].xcom_pull(task_ids=self.stage)
        if not report:
            raise AirflowFailException(NO_REPORT.format(task=self.stage))
        if not report["ok"]:
            raise JobFailed(report)


class CheckWaits(BaseSensorOperator):
    """Ends when the check (the task `check` of the same run) waits for the lake, for the `wait`th time, with the
    position as `p1`; is skipped, and what follows it too, when the check ends without having to wait. It keeps its
    worker: the wait is as short as the check's reading of MySQL, and starting a process every few seconds would cost
    that check more."""

    def __init__(self, *, check: str, wait: int = 1, **kwargs: Any) -> None:
        super().__init__(poke_interval=POLL_SECONDS, **kwargs)
        self.check, self.wait = check, wait

    def poke(self, context: Any) -> PokeReturnValue:
        ti = context["ti"]
        if gtid_set := ti.xcom_pull(task_ids=self.check, key=WAITS.format(self.wait)):
            self.log.info("the check waits until the lake is complete up to %s", gtid_set)
            return PokeReturnValue(is_done=True, xcom_value={"p1": gtid_set})
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[self.check], run_ids=[ti.run_id])
        if states.get(ti.run_id, {}).get(self.check) in ENDED:
            raise AirflowSkipException("the check has ended without waiting for the lake")
        return PokeReturnValue(is_done=False)
