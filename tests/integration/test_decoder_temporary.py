"""Temporary tables of a session in another format than ROW: their changes are logged, and are none of the stream."""

from __future__ import annotations

import pytest

from stack.database import Database
from streamer.errors import UnsupportedTransactionError
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, Ddl
from streamer.source import facts
from tests.integration.decoding import executed, items, run, shape, source, told

TABLE = ["CREATE TABLE t (id int primary key, a int, b varchar(20)) ENGINE=InnoDB", "INSERT INTO t VALUES (1, 10, 'x')"]
HIDING = [
    "SET SESSION binlog_format = STATEMENT", "CREATE TEMPORARY TABLE t (id int)", "TRUNCATE TABLE t",
    "ALTER TABLE t ADD x int", "ALTER TABLE t RENAME u", "TRUNCATE changing.u", "DROP TABLE u",
]  # fmt: skip
CALLED = "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE x (id int); INSERT INTO x VALUES (1); TRUNCATE t; END"
BESIDE = "CREATE PROCEDURE q() BEGIN CREATE TEMPORARY TABLE T (id int); INSERT INTO T VALUES (1); TRUNCATE t; END"


def test_changes_of_temporary_tables_are_none_of_those_they_hide(server: Database) -> None:
    """Of a session in another format; MySQL marks the TRUNCATE of a real table in a CALL as it does theirs."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing")
    run(server, *TABLE, "CREATE TABLE u (id int primary key)", CALLED, BESIDE, database="changing")
    begin = executed(server)
    run(server, *HIDING, database="changing")
    hidden = list(items(server, begin, executed(server)))
    assert any(isinstance(item, Ddl) and item.statement.startswith("TRUNCATE") for item in hidden), "they are logged"
    assert told(server, hidden) == []
    begin = executed(server)
    run(server, "CALL p()", database="changing")
    run(server, "TRUNCATE u", database="changing")
    assert told(server, list(items(server, begin, executed(server)))) == [("truncate", "t"), ("truncate", "u")]
    begin = executed(server)
    run(server, "SET SESSION binlog_format = STATEMENT", "CALL q()", database="changing")
    sensitive = PreparedXa()
    sensitive.temporary.lower_case = facts(source(server)).lower_case
    assert not sensitive.temporary.lower_case
    found = list(items(server, begin, executed(server), prepared=sensitive))
    assert told(server, found) == [("truncate", "t")], "T was the session's own"


RENAMED = [
    "SET SESSION binlog_format = STATEMENT", "CREATE TEMPORARY TABLE x (id int)", "RENAME TABLE x TO y",
    "RENAME TABLE y TO t", "RENAME TABLE t TO z, z TO x",
]  # fmt: skip


@pytest.mark.lacks("mysql", "its RENAME TABLE is of real tables")
@pytest.mark.lacks("mysql80", "its RENAME TABLE is of real tables")
def test_a_temporary_table_that_takes_a_real_ones_name(server: Database) -> None:
    """MariaDB's RENAME is marked in no way. One that is of the real table is told, whatever else it is of."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing")
    run(server, *TABLE, database="changing")
    begin = executed(server)
    run(server, *RENAMED, "RENAME TABLE t TO u, x TO t", database="changing")
    found = list(items(server, begin, executed(server)))
    renames = [item.temporary for item in found if isinstance(item, Ddl) and item.statement.startswith("RENAME")]
    assert renames == [True, True, True, False]
    assert [table for kind, table in told(server, found) if kind == "rename"] == ["t", "u", "x"]
    with server.connect(database="changing") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM u")
        assert cursor.fetchall() == ((1, 10, "x"),)
    run(server, "DROP DATABASE changing")


MADE = [
    "SET SESSION binlog_format = STATEMENT",
    "CREATE TEMPORARY TABLE t (id int)",
    "INSERT INTO t VALUES (1), (NULL)",
]
USED = [
    "INSERT INTO t (id) VALUES (5)", "UPDATE t SET id = id + 10 WHERE id IN (1)", "REPLACE INTO t SET id = ABS(-3)",
    "DELETE FROM t WHERE id > 20", "TRUNCATE TABLE t", "ALTER TABLE t ADD x int",
]  # fmt: skip
WRITES = "CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN INSERT INTO u VALUES (77); RETURN 1; END"


def test_temporary_tables_are_known_behind_a_restart(server: Database) -> None:
    """What a session does with its own in another format neither stops the stream nor is taken for the real table's,
    also where it made them before the checkpoint."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing")
    run(server, *TABLE, "CREATE TABLE u (id int)", WRITES, database="changing")
    begin = executed(server)
    with server.connect(database="changing", autocommit=True) as connection, connection.cursor() as cursor:
        for statement in MADE:
            cursor.execute(statement)
        middle = executed(server)
        before = list(items(server, begin, middle))
        for statement in (*USED, "DROP TABLE t"):
            cursor.execute(statement)
        thread = connection.thread_id()
    end = executed(server)
    last = before[-1]
    assert isinstance(last, Commit)
    assert last.temporary == ((thread, "changing", "t"),)
    found = list(items(server, middle, end, prepared=PreparedXa(temporary=last.temporary)))
    assert told(server, before + found) == []
    assert shape(before + found).count("Commit") == len(MADE) - 1 + len(USED) + 1
    assert isinstance(found[-1], Commit)
    assert found[-1].temporary == (), "it is gone"
    with pytest.raises(UnsupportedTransactionError, match="INSERT of a session in the database changing"):
        list(items(server, middle, end))
    begin = executed(server)
    run(server, *MADE, "INSERT INTO t VALUES (f())", database="changing")
    with pytest.raises(UnsupportedTransactionError, match="INSERT of a session in the database changing"):
        list(items(server, begin, executed(server)))
    run(server, "DROP DATABASE changing")
