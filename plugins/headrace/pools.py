"""The pool of a pipeline's lake: one slot, for every task that has the lake throughout. So such tasks queue where a
person sees it, and do not wait inside a job that holds a worker (spark/lake/slot.py, which keeps the others apart,
too).

A task has no right to make a pool, and a task whose pool is missing is never scheduled. So the scheduler makes it, the
moment that any run of the pipeline's DAGs begins, in the transaction that begins the run.
"""

from __future__ import annotations

from typing import Any

from airflow.listeners import hookimpl

SLOTS = 1
ABOUT = "One job at a time changes the lake of the pipeline {name}: leave it at 1 slot"


def pool_of(pipeline: str) -> str:
    """Its name. `pipeline`: the pipeline's."""
    return f"headrace-{pipeline}-lake"


class Pools:
    """Airflow calls it in the scheduler."""

    @hookimpl
    def on_dag_run_running(self, dag_run: Any, msg: str) -> None:
        pipeline, _, purpose = dag_run.dag_id.rpartition(".")
        if {"headrace", pipeline, purpose} <= set(getattr(dag_run.dag, "tags", ())):
            from sqlalchemy.orm import object_session

            ensure(object_session(dag_run), pipeline)


def ensure(session: Any, pipeline: str) -> None:
    """Makes the pool where it is missing; one that a person has changed stays. Commits nothing."""
    from airflow.models.pool import Pool
    from sqlalchemy import select

    name = pool_of(pipeline)
    if session.scalar(select(Pool.id).where(Pool.pool == name)) is None:
        session.execute(_insert(session.get_bind().dialect.name, Pool, name, ABOUT.format(name=pipeline)))


def _insert(dialect: str, table: Any, name: str, about: str) -> Any:
    """Another scheduler may be quicker: that is no error."""
    from sqlalchemy.dialects import mysql, postgresql, sqlite

    values = {"pool": name, "slots": SLOTS, "description": about, "include_deferred": False}
    if dialect == "mysql":
        return mysql.insert(table).values(values).prefix_with("IGNORE")
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(table).values(values).on_conflict_do_nothing()
