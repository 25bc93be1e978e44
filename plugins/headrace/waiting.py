"""The two waits of a snapshot, both deferred: no worker is held while nothing happens.

`StreamerPassed` waits until the streamer's checkpoint covers P1, the position after the snapshot's last chunk;
`SnapshotApplied` until the lake has applied the snapshot and is complete up to P1. In: the report of the
snapshot job (XCom of the task `stage`). An end of patience fails the task and says what was still missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from headrace import progress

POLL_SECONDS = 3.0


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
    question = ""
    done = ""

    def __init__(self, *, pipeline_file: str, stage: str, patience_seconds: int = 3600, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self.stage = stage
        self.patience_seconds = patience_seconds

    def execute(self, context: Any) -> None:
        report = context["ti"].xcom_pull(task_ids=self.stage)
        if not report:
            raise AirflowFailException(f"the task {self.stage} left no report: clear it, so that it runs again")
        trigger = Until(self.question, self.pipeline_file, report, time.time() + self.patience_seconds)
        self.defer(trigger=trigger, method_name="resume")

    def resume(self, context: Any, event: dict[str, Any]) -> str:
        if event["missing"]:
            raise AirflowFailException(f"not done after {self.patience_seconds} s: {event['missing']}")
        self.log.info("%s", self.done)
        return self.done


class StreamerPassed(_Wait):
    question = "streamer passed"
    done = "the streamer's checkpoint covers the end of the snapshot"


class SnapshotApplied(_Wait):
    question = "snapshot applied"
    done = "the lake has the snapshot and is complete up to its end"
