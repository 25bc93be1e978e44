"""What happens when a task fails: the notifier of every task of a pipeline's DAGs.

It logs, keeps one JSON line (quality/folder.py), and POSTs the same JSON to the pipeline's `quality.webhook`
where there is one. An alert that cannot be delivered is logged and never hides the failure itself. A task that fails
again and again for one reason is posted once: anew when the text differs, when the webhook did not take it, or when the
task had not failed for an hour.
"""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import BaseNotifier

from contract.pipeline import Pipeline, PipelineFileError
from headrace import pipeline_files
from quality import folder
from quality.report import differences

TIMEOUT_SECONDS = 10
PAUSE = timedelta(hours=1)  # after so long without one, a failure is news even with the same text
LOOK_BACK = 200  # alerts


class Alert(BaseNotifier):
    """`on_failure_callback=Alert(pipeline_file)`."""

    def __init__(self, pipeline_file: str) -> None:
        super().__init__()
        self.pipeline_file = pipeline_file

    def notify(self, context: Any) -> None:
        alert = describe(context)
        self.log.error("ALERT %s %s: %s", alert["dag"], alert["task"], alert["message"])
        for table, difference in alert["tables"].items():
            self.log.error("ALERT %s: %s", table, difference)
        try:
            pipeline = pipeline_files.load(self.pipeline_file)
        except PipelineFileError as error:
            self.log.error("the alert was not kept, since the pipeline file is wrong: %s", error)
            return
        self._keep(pipeline, {"pipeline": pipeline.name, **alert})

    def _keep(self, pipeline: Pipeline, alert: dict[str, Any]) -> None:
        alert["posted"] = self._repeated(pipeline, alert) or self._posted(pipeline, alert)
        try:
            self.log.info("kept in %s", folder.append_alert(pipeline, alert))
        except OSError as error:
            self.log.error("the alert was not kept in %s: %s", folder.folder(pipeline), error)

    def _repeated(self, pipeline: Pipeline, alert: dict[str, Any]) -> bool:
        """Whether the webhook has taken the same from this task's last failure, a short while ago."""
        try:
            kept = folder.read_alerts(pipeline, LOOK_BACK)
        except (OSError, ValueError):
            return False
        last = next((one for one in kept if all(one.get(key) == alert[key] for key in ("dag", "task"))), None)
        if last is None or not last.get("posted") or any(last.get(key) != alert[key] for key in ("message", "tables")):
            return False
        return datetime.fromisoformat(alert["at"]) - datetime.fromisoformat(last["at"]) < PAUSE

    def _posted(self, pipeline: Pipeline, alert: dict[str, Any]) -> bool:
        if not pipeline.quality.webhook:
            return False
        try:
            post(pipeline.quality.webhook, alert)
        except (OSError, ValueError) as error:  # URLError and HTTPError are OSErrors; ValueError: no such scheme
            self.log.error("quality.webhook did not take the alert: %s", error)
            return False
        return True


def describe(context: Any) -> dict[str, Any]:
    """`at, dag, task, run, message, tables, log` of the failed task; `tables`: `db.table` -> difference."""
    ti = context["ti"]
    error = context.get("exception")
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "dag": ti.dag_id,
        "task": ti.task_id,
        "run": ti.run_id,
        "message": str(error) if error else "failed",
        "tables": differences(getattr(error, "result", None) or {}),
        "log": getattr(ti, "log_url", None),
    }


def post(url: str, alert: dict[str, Any]) -> None:
    """Raises OSError, ValueError."""
    body = json.dumps(alert, default=str).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
        pass
