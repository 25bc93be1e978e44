"""Replicas that would log what foreign keys change, of a source that does not: rows go there without a word, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from stack.database import Database
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.ports import free_port
from streamer.errors import PreflightError
from streamer.preflight.refusing import refuse
from streamer.protocol.model import RowsBatch
from streamer.source import facts
from tests.integration import failover
from tests.integration.conftest import FreshData, copy_fresh_data, discard
from tests.integration.decoding import executed, found_of, nothing, pipeline, recorded, run, source

NATIVE = ("innodb_native_foreign_keys=ON",)
TABLES = (
    "CREATE DATABASE checked",
    "CREATE TABLE checked.parent (id INT PRIMARY KEY)",
    "CREATE TABLE checked.child (id INT PRIMARY KEY, p INT, "
    "CONSTRAINT goes FOREIGN KEY (p) REFERENCES checked.parent (id) ON DELETE CASCADE)",
    "INSERT INTO checked.parent VALUES (1), (2)",
    "INSERT INTO checked.child VALUES (1, 1), (2, 2)",
)
Started = Callable[..., Database]


@pytest.fixture
def started(tmp_path_factory: pytest.TempPathFactory, fresh_data: FreshData) -> Iterator[Started]:
    """Servers of the test's own, of any kind."""
    with ExitStack() as running:

        def start(kind: type[Database] = MySQL, options: Sequence[str] = (), server_id: int = 1) -> Database:
            server = kind(tmp_path_factory.mktemp("replicated"), free_port(), server_id, options)
            copy_fresh_data(server, fresh_data)
            running.callback(discard, server)
            server.start()
            return server

        yield start


def changed_below(first: Database, replica: Database) -> set[str]:
    """The tables of which the replica's binlog has rows, when a parent is deleted on the source, its child with it."""
    with recorded(replica) as written:
        run(first, "DELETE FROM checked.parent WHERE id = 1")
        failover.caught_up(replica, executed(first))
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM checked.child")
        assert cursor.fetchall() == ((2,),), "the key did it there"
    return {item.table.table for item in written if isinstance(item, RowsBatch)}


def refused(replica: Database) -> bool:
    """At a first start, with words that tell it; allowed it is by tables.cascades alone."""
    checked = pipeline(replica)
    found = found_of(checked)
    if not found:
        refuse(checked, executed(replica), None)
        assert facts(source(replica)).logs_cascades
        return False
    assert [(one.level, one.name) for one in found] == [("error", "foreign_key")]
    assert "goes of checked.child" in found[0].what
    assert "a replica of such a server" in found[0].what
    assert not facts(source(replica)).logs_cascades, "a key that comes later is told, too"
    with pytest.raises(PreflightError, match=r"checked\.child"):
        refuse(checked, executed(replica), None)
    allowing = checked.tables.model_copy(update={"cascades": ("checked.child",)})
    refuse(checked.model_copy(update={"tables": allowing}), executed(replica), None)
    return True


@pytest.mark.parametrize(
    ("kind", "options", "tables"),
    [(MySQL80, (), {"parent"}), (MySQL, NATIVE, {"parent"}), (MySQL, (), {"parent", "child"})],
    ids=["of 8.0", "of one that leaves it to InnoDB", "of one that logs it"],
)
def test_a_replica_logs_what_its_source_does(
    started: Started, kind: type[Database], options: Sequence[str], tables: set[str]
) -> None:
    """Pitfall "Changes without row events": a finding exactly where the replica's binlog lacks the child's rows."""
    first, replica = started(kind, options), started(server_id=2)
    run(first, *TABLES)
    failover.replicate(first, replica)
    assert changed_below(first, replica) == tables
    assert refused(replica) == ("child" not in tables)
    run(replica, "STOP REPLICA")
    assert refused(replica) == ("child" not in tables), "it may go on"
    run(replica, "RESET REPLICA ALL")
    assert not refused(replica), "it is a source itself now"


def test_a_replica_of_a_replica_is_known_by_its_rows(started: Started) -> None:
    first, middle, last = started(MySQL80), started(server_id=2), started(server_id=3)
    run(first, *TABLES)
    failover.replicate(first, middle)
    run(middle, "DROP USER replica")
    failover.replicate(middle, last)
    failover.caught_up(last, executed(first))
    assert changed_below(first, last) == {"parent"}
    assert refused(last)


def test_a_channel_with_a_name_is_asked_too(started: Started) -> None:
    """Before its source's first row: the relay log tells of what version it is."""
    first, replica = started(MySQL80), started(server_id=2)
    run(first, *TABLES[:3], f"CREATE USER replica IDENTIFIED BY '{failover.PASSWORD}'",
        "GRANT REPLICATION SLAVE ON *.* TO replica")  # fmt: skip
    run(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={first.port}, "
        f"SOURCE_USER='replica', SOURCE_PASSWORD='{failover.PASSWORD}', SOURCE_AUTO_POSITION=1, "
        "GET_SOURCE_PUBLIC_KEY=1 FOR CHANNEL 'far away'", "START REPLICA FOR CHANNEL 'far away'")  # fmt: skip
    failover.caught_up(replica, executed(first))
    assert executed(first) != nothing(first)
    assert refused(replica)
