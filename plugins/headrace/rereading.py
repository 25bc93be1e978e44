"""The task that has stale tables read again, where the pipeline file says `snapshot.reread_stale`: behind a compaction,
and where that has no schedule behind a check too.

In: the report of that task. It starts the snapshot DAG for the tables that are stale by what no run was started for,
and does not wait. A table stale by the same statement starts it once, whatever became of that run: a snapshot that
fails alerts by itself, and its tables go with the next run. So one table's statement has no other table read twice,
and those that the source has no more, which stay stale, are in no other run.

Which run was started for what, no run tells: an Airflow variable keeps it, as `{table: [reason, run]}`. Where that is
lost each stale table is read once more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, count
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused, TriggerDagRunOperator
from airflow.sdk import DagRunState, Variable
from airflow.sdk.exceptions import AirflowSkipException

from headrace.forms import TABLE_NAME

ENDED = (DagRunState.SUCCESS, DagRunState.FAILED)
PAUSED = "%s is paused, so these are not read again: %s. Switch it on, and the next run of this task starts one"
UNNAMABLE = "%s is not read again: a name with a comma cannot be given. Start %s of all tables, with none named"


class RereadStale(TriggerDagRunOperator):
    """Is skipped where no table is stale by anything new."""

    def __init__(self, *, pipeline: str, of: str = "compact", **kwargs: Any) -> None:
        kwargs |= {"skip_when_already_exists": True, "fail_when_dag_is_paused": True}
        super().__init__(trigger_dag_id=f"{pipeline}.snapshot", **kwargs)
        self.of, self.kept = of, f"headrace_{pipeline}_reread"

    def execute(self, context: Any) -> None:
        ti = context["ti"]
        report = ti.xcom_pull(task_ids=self.of) or {}
        if not (found := self._namable(stale(report))):
            raise AirflowSkipException("no table is stale that can be named")
        asked = Variable.get(self.kept, default=None, deserialize_json=True) or {}
        state = cache(lambda run: self._state(ti, run))
        wanted = due(found, asked, state)
        run = free(run_id(wanted), state) if wanted else ""
        known = {name: one for name, one in asked.items() if name not in report["tables"]}
        known |= {name: [reason, run if name in wanted else asked[name][1]] for name, reason in found.items()}
        if known != asked:  # before the run is there: where that fails, it is looked for in vain
            Variable.set(self.kept, known, serialize_json=True)
        if not wanted:
            raise AirflowSkipException("no table is stale by what no run was started for")
        self.conf = {"tables": list(wanted), "existing": True}
        self.trigger_run_id = run
        try:
            super().execute(context)
        except DagIsPaused:
            self.log.warning(PAUSED, self.trigger_dag_id, ", ".join(wanted))
            raise AirflowSkipException(f"{self.trigger_dag_id} is paused") from None

    def _namable(self, found: dict[str, str]) -> dict[str, str]:
        for table, reason in found.items():
            self.log.info("%s: %s", table, reason)
        for table in [name for name in found if not re.search(TABLE_NAME, name)]:
            del found[table]  # Airflow would refuse the whole conf, with all others
            self.log.warning(UNNAMABLE, table, self.trigger_dag_id)
        return found

    def _state(self, ti: Any, run: str) -> str | None:
        """None where there is no such run, or no more."""
        which = {"dag_id": self.trigger_dag_id}
        there = ti.get_dr_count(**which, run_ids=[run])
        state: str | None = ti.get_dagrun_state(**which, run_id=run) if there else None
        return state


def due(
    found: Mapping[str, str], asked: Mapping[str, Sequence[str]], state: Callable[[str], str | None]
) -> dict[str, str]:
    """The tables to read now: those stale by what no run was started for, and where there are such, those whose run
    has failed. A run that is still queued reads a table behind whatever made it stale by now."""
    states = {name: state(asked[name][1]) for name in found if name in asked}
    begun = {name for name, one in states.items() if one and asked[name][0] == found[name]}
    started = begun | {name for name, one in states.items() if one == DagRunState.QUEUED}
    if started == {*found}:
        return {}
    again = {name for name in started if states[name] == DagRunState.FAILED}
    return {name: reason for name, reason in found.items() if name not in started or name in again}


def free(run: str, state: Callable[[str], str | None]) -> str:
    """That run, or where it has ended, the first behind it that has not: its tables are to be read once more."""
    more = (f"{run}-{n}" for n in count(2))
    return next(one for one in chain([run], more) if state(one) not in ENDED)


def stale(report: dict[str, Any]) -> dict[str, str]:
    """`db.table` -> since when and why, of a compaction's or a check's report."""
    tables = report.get("tables") or {}
    return {name: facts["stale"] for name, facts in sorted(tables.items()) if facts.get("stale")}


def run_id(stale: dict[str, str]) -> str:
    """The same for the same tables, stale since the same statements: started twice it is one run."""
    told = "\n".join(f"{name} {reason}" for name, reason in stale.items())
    return f"stale__{hashlib.sha256(told.encode()).hexdigest()[:16]}"
