"""The task that has stale tables read again, where the pipeline file says `snapshot.reread_stale`: behind a compaction,
and where that has no schedule behind a check too.

In: the report of that task. It starts the snapshot DAG for the tables that are stale and does not wait; the
same stale tables start it once, whatever became of that run: a snapshot that fails alerts by itself.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowSkipException

from headrace.forms import TABLE_NAME

UNNAMABLE = "%s is not read again: a name with a comma cannot be given. Start %s of all tables, with none named"


class RereadStale(TriggerDagRunOperator):
    """Is skipped where no table is stale."""

    def __init__(self, *, pipeline: str, of: str = "compact", **kwargs: Any) -> None:
        super().__init__(trigger_dag_id=f"{pipeline}.snapshot", skip_when_already_exists=True, **kwargs)
        self.of = of

    def execute(self, context: Any) -> None:
        found = stale(context["ti"].xcom_pull(task_ids=self.of) or {})
        for table, reason in found.items():
            self.log.info("%s: %s", table, reason)
        for table in [name for name in found if not re.search(TABLE_NAME, name)]:
            del found[table]  # Airflow would refuse the whole conf, with all others
            self.log.warning(UNNAMABLE, table, self.trigger_dag_id)
        if not found:
            raise AirflowSkipException("no table is stale that can be named")
        self.conf = {"tables": list(found), "existing": True}
        self.trigger_run_id = run_id(found)
        super().execute(context)


def stale(report: dict[str, Any]) -> dict[str, str]:
    """`db.table` -> since when and why, of a compaction's or a check's report."""
    tables = report.get("tables") or {}
    return {name: facts["stale"] for name, facts in sorted(tables.items()) if facts.get("stale")}


def run_id(stale: dict[str, str]) -> str:
    """The same for the same tables, stale since the same statements."""
    told = "\n".join(f"{name} {reason}" for name, reason in stale.items())
    return f"stale__{hashlib.sha256(told.encode()).hexdigest()[:16]}"
