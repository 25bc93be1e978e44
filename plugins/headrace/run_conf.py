"""What a run was started with, against the form of its DAG.

Airflow checks the values of a run's conf, and passes by every name that no parameter has: one that is misspelled would
leave its field empty, which means all tables. `refuse_unknown` is what each task of ours that does the work calls
first. Runs of a schedule, of an asset and those that our own tasks start without a conf have an empty one.
"""

from __future__ import annotations

import difflib
from typing import Any

from airflow.sdk.exceptions import AirflowFailException


class UnknownParameter(AirflowFailException):
    """Is not tried again, since the same run would say the same; nor does a clear help, which keeps the conf."""

    next_step = "Start the DAG again, with a conf of the names that it has"


def refuse_unknown(context: Any) -> None:
    """Raises UnknownParameter."""
    dag, given = context["dag"], context["dag_run"].conf or {}
    known = sorted(dag.params)
    if unknown := sorted(name for name in given if name not in known):
        told = " and ".join(_told(name, known) for name in unknown)
        has = f"it has {', '.join(known)}" if known else "it takes no conf"
        raise UnknownParameter(f"{dag.dag_id} has no parameter {told}: {has}. Nothing was done")


def _told(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, 1)
    return f"{name!r} (did you mean {close[0]!r}?)" if close else repr(name)
