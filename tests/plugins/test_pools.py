"""The pool of a lake: made once, by whichever run of its DAGs comes first, and left as a person set it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.models.pool import Pool
from sqlalchemy import create_engine, select
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.orm import Session

from headrace import pools


@pytest.fixture
def session() -> Session:
    engine = create_engine("sqlite://")
    Pool.__table__.create(engine)
    return Session(engine)


def test_it_is_made_once_with_one_slot_and_never_changed(session: Session) -> None:
    pools.ensure(session, "shop")
    pools.ensure(session, "crm")
    pools.ensure(session, "shop")
    made = session.scalars(select(Pool).order_by(Pool.pool)).all()
    assert [(one.pool, one.slots, one.include_deferred) for one in made] == [
        ("headrace-crm-lake", 1, False),
        ("headrace-shop-lake", 1, False),
    ]
    made[0].slots = 3
    session.flush()
    session.execute(pools._insert("sqlite", Pool, "headrace-crm-lake", ""))  # another scheduler was quicker
    assert session.scalar(select(Pool.slots).where(Pool.pool == "headrace-crm-lake")) == 3


@pytest.mark.parametrize(
    ("dialect", "said"), [(mysql, "INSERT IGNORE INTO slot_pool"), (postgresql, "ON CONFLICT DO NOTHING")]
)
def test_two_schedulers_do_not_meet_in_other_databases_either(dialect: object, said: str) -> None:
    name = dialect.__name__.rpartition(".")[2]
    statement = pools._insert(name, Pool, "headrace-shop-lake", "")
    assert said in str(statement.compile(dialect=dialect.dialect()))


def test_only_runs_of_a_pipelines_dags_make_one(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlalchemy.orm.object_session", lambda run: session)
    foreign = SimpleNamespace(dag_id="shop.compaction", dag=SimpleNamespace(tags={"shop"}))
    own = SimpleNamespace(dag_id="crm.topics", dag=SimpleNamespace(tags={"headrace", "crm", "topics"}))
    for run in (foreign, own):
        pools.Pools().on_dag_run_running(run, "started")
    assert session.scalars(select(Pool.pool)).all() == ["headrace-crm-lake"]
