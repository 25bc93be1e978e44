"""What is said of a statement, against the rows that a query shows: whatever is not said to change rows leaves them.

A table's rows from before, with the changes of the stream applied, are its rows behind the statements; or the table is
told among those that may have changed without a row event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql.cursors
import pytest

from stack.database import Database
from streamer.ddl import statement as ddl
from streamer.ddl.notes import DdlNotes
from streamer.protocol.model import Ddl, Item, RowsBatch
from streamer.routes import Router
from streamer.schemas import Schemas
from streamer.source import facts
from tests.integration.decoding import executed, items, pipeline, run, source, told

Row = dict[str, Any]
Tables = dict[str, list[Row]]

TABLES = [
    "CREATE TABLE t (id int primary key, a int, b varchar(9), KEY k (a))",
    "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')",
    "CREATE TABLE u (id int primary key, a int)", "INSERT INTO u VALUES (1, 1)",
]  # fmt: skip
PARTITIONED = [
    "CREATE TABLE t (id int primary key, a int) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), "
    "PARTITION p1 VALUES LESS THAN (20))",
    "INSERT INTO t VALUES (1, 1), (11, 2)",
    "CREATE TABLE u (id int primary key, a int)", "INSERT INTO u VALUES (2, 3)",
]  # fmt: skip
MEMBERS = [
    "CREATE TABLE m (id int NOT NULL, a int, KEY (id)) ENGINE=MyISAM", "INSERT INTO m VALUES (1, 1), (2, 2)",
    "CREATE TABLE n (id int NOT NULL, a int, KEY (id)) ENGINE=MyISAM", "INSERT INTO n VALUES (3, 3)",
    "CREATE TABLE t (id int NOT NULL, a int, KEY (id)) ENGINE=MyISAM", "INSERT INTO t VALUES (4, 4)",
]  # fmt: skip
PARENT = [
    "CREATE TABLE par (id int primary key)", "INSERT INTO par VALUES (1), (2), (3)",
    "CREATE TABLE ch (id int primary key, p int)", "INSERT INTO ch VALUES (1, 1), (2, 2)",
]  # fmt: skip
ENDS = ["DELETE FROM par WHERE id = 1", "UPDATE par SET id = 9 WHERE id = 2"]

# Each is one attempt: statements behind tables of its own.
ON_TABLES: list[list[str]] = [
    [text]
    for text in (
        "ALTER TABLE t ADD c int", "ALTER TABLE t ADD c int NULL DEFAULT NULL", "ALTER TABLE t ADD c int DEFAULT 5",
        "ALTER TABLE t ADD c int NOT NULL", "ALTER TABLE t ADD (c int, d int DEFAULT 4)",
        "ALTER TABLE t ADD engine int",
        "ALTER TABLE t ADD `index` int DEFAULT 3", "ALTER TABLE t ADD `check` int DEFAULT 3",
        "ALTER TABLE t ADD c int AS (a + 1) VIRTUAL", "ALTER TABLE t ADD c int AS (a + 1) STORED",
        "ALTER TABLE t ADD c int AUTO_INCREMENT UNIQUE", "ALTER TABLE t ADD INDEX i (b), ADD c int DEFAULT 5",
        "ALTER TABLE t ADD c int DEFAULT 5, ALGORITHM=COPY", "ALTER TABLE t COMMENT='x', DROP COLUMN b",
        "ALTER TABLE t ALTER COLUMN a SET DEFAULT 10", "ALTER TABLE t ALTER a SET DEFAULT 10, ADD c int DEFAULT 3",
        "ALTER TABLE t DROP a", "ALTER TABLE t DROP COLUMN b, ADD b int", "ALTER TABLE t MODIFY a varchar(5)",
        "ALTER TABLE t MODIFY b varchar(20) FIRST", "ALTER TABLE t CHANGE a c int",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        "ALTER TABLE t CHARACTER SET latin1",
        "ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t DROP INDEX `PRIMARY`", "ALTER TABLE t DROP KEY `primary`",
        "DROP INDEX `PRIMARY` ON t", "DROP INDEX k ON t", "ALTER TABLE t DROP INDEX k",
        "ALTER TABLE t RENAME INDEX k TO l",
        "CREATE INDEX i ON t (b)", "CREATE UNIQUE INDEX i ON t (a)", "ALTER TABLE t ADD UNIQUE (a), LOCK=SHARED",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", "ALTER TABLE t DISABLE KEYS", "ALTER TABLE t FORCE",
        "ALTER TABLE t ORDER BY a", "ALTER TABLE t AUTO_INCREMENT = 50", "ALTER TABLE t ROW_FORMAT=DYNAMIC",
        "ALTER TABLE t CONNECTION='x'", "ALTER TABLE t UNION=(u)", "ALTER TABLE t ENGINE=InnoDB",
        "ALTER TABLE t ENGINE=MyISAM", "ALTER TABLE t ENGINE=MEMORY", "ALTER TABLE t ENGINE=MERGE",
        "ALTER TABLE t ENGINE `mrg_myisam`, COMMENT 'x'", "ALTER TABLE t COMMENT='x' CONNECTION='y'",
        "ALTER TABLE t ROW_FORMAT=DYNAMIC COMMENT 'x' ENGINE=MERGE UNION=(u)",
        "ALTER TABLE t ENGINE=InnoDB COMMENT 'x' CHARACTER SET latin1 COLLATE latin1_bin AUTO_INCREMENT 70 UNION=(u)",
        "ALTER TABLE t COMMENT '' ENGINE=InnoDB PARTITION BY HASH (id)",
        "ALTER TABLE t COMMENT 'x' ENGINE=InnoDB CHARSET utf8mb4, ADD c int DEFAULT 5",
        "ALTER TABLE t ADD engine varchar(9), ADD CONSTRAINT c CHECK (engine <> 'merge')",
        "CREATE TABLE s (engine varchar(9) CHECK (engine <> 'merge'))", "REPAIR TABLE t", "REPAIR TABLE u, t QUICK",
        "OPTIMIZE TABLE t",
        "ANALYZE TABLE t", "CHECK TABLE t", "FLUSH TABLES t", "TRUNCATE t", "TRUNCATE TABLE u", "DROP TABLE t",
        "DROP TABLE IF EXISTS nothing, u", "RENAME TABLE t TO s", "RENAME TABLE t TO s, u TO t, s TO u",
        "ALTER TABLE t RENAME TO s", "ALTER TABLE t RENAME s, ADD INDEX (b)", "CREATE TABLE IF NOT EXISTS t (x int)",
        "CREATE TABLE s LIKE t", "CREATE TABLE s (id int)", "CREATE VIEW s AS SELECT * FROM t",
        "CREATE OR REPLACE VIEW s AS SELECT 1", "CREATE TRIGGER s AFTER INSERT ON t FOR EACH ROW SET @a = 1",
        "CREATE PROCEDURE t() SELECT 1", "CREATE EVENT t ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "CREATE TEMPORARY TABLE t (id int)", "ALTER DATABASE changing CHARACTER SET latin1", "DROP DATABASE changing",
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 2", "ALTER TABLE t ADD c int DEFAULT 5 PARTITION BY HASH (id)",
    )
]  # fmt: skip
ON_PARTITIONS: list[list[str]] = [
    [f"ALTER TABLE t {action}"]
    for action in (
        "TRUNCATE PARTITION p0", "DROP PARTITION p1", "EXCHANGE PARTITION p0 WITH TABLE u", "REMOVE PARTITIONING",
        "ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))", "REBUILD PARTITION p0, p1", "ANALYZE PARTITION p0",
        "REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (20))", "CHECK PARTITION p0",
        "REPAIR PARTITION p0", "OPTIMIZE PARTITION p1",
    )
]  # fmt: skip
ON_MEMBERS: list[list[str]] = [
    ["ALTER TABLE t ENGINE=MERGE UNION=(m)"],
    ["ALTER TABLE t ENGINE = 'MRG_MYISAM' UNION = (m, changing.n) INSERT_METHOD = LAST", "INSERT INTO t VALUES (9, 9)"],
    ["CREATE TABLE e (id int NOT NULL, a int, KEY (id)) ENGINE=MERGE UNION=(m, n) INSERT_METHOD=FIRST",
     "INSERT INTO e VALUES (9, 9)", "DELETE FROM e WHERE id = 3"],
    ["CREATE TABLE e (id int NOT NULL, a int, KEY (id)) ENGINE=MERGE UNION=(m)", "ALTER TABLE e UNION=(m, n)",
     "UPDATE e SET a = 7 WHERE id = 3"],
    ["CREATE TABLE e (id int NOT NULL, a int, KEY (id)) ENGINE=MERGE UNION=(m)",
     "ALTER TABLE e COMMENT 'x' INSERT_METHOD=LAST UNION=(m, n)", "INSERT INTO e VALUES (9, 9)"],
]  # fmt: skip
ON_PARENTS: list[list[str]] = [
    [f"ALTER TABLE ch ADD {key}", *ENDS]
    for key in (
        "CONSTRAINT FOREIGN KEY (p) REFERENCES par (id) ON DELETE CASCADE ON UPDATE CASCADE",
        "COLUMN x int, ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES par (id) ON UPDATE SET NULL ON DELETE SET NULL",
    )
] + [
    ["CREATE TABLE c (id int primary key, p int, CONSTRAINT k FOREIGN KEY (p) REFERENCES par (id) ON DELETE CASCADE "
     "ON UPDATE CASCADE)", "INSERT INTO c VALUES (1, 1), (2, 2)", *ENDS],
    ["CREATE TABLE c (id int primary key, p int REFERENCES par (id) ON DELETE CASCADE ON UPDATE SET NULL)",
     "INSERT INTO c VALUES (1, 1), (2, 2)", *ENDS],
    ["ALTER TABLE ch ADD x int REFERENCES par (id) ON DELETE CASCADE", "UPDATE ch SET x = 3",
     "DELETE FROM par WHERE id = 3"],
    ["ALTER TABLE ch ADD FOREIGN KEY (p) REFERENCES par (id)", "DELETE FROM par WHERE id = 3"],
    ["ALTER TABLE ch ADD FOREIGN KEY (p) REFERENCES par (id) ON DELETE RESTRICT ON UPDATE NO ACTION",
     "DELETE FROM par WHERE id = 3"],
]  # fmt: skip
OF_MYSQL: list[list[str]] = [
    ["ALTER TABLE t ENGINE=BLACKHOLE"], ["ALTER TABLE t COMMENT 'x', ENGINE `blackhole`"],
    ["CREATE TABLE s (id int) ENGINE=BLACKHOLE", "INSERT INTO s VALUES (1)"],
    ["ALTER TABLE t DROP PRIMARY KEY, DROP INDEX k, ENGINE=ARCHIVE"], ["ALTER TABLE t ALTER INDEX k INVISIBLE"],
]  # fmt: skip
OF_MARIADB: list[list[str]] = [
    [f"CREATE OR REPLACE {kind}"]
    for kind in (
        "TABLE t (id int)", "TABLE s (id int)", "TABLE t LIKE u", "SEQUENCE t", "SEQUENCE changing.u START 5",
        "SEQUENCE s", "VIEW s AS SELECT 1 AS x", "TRIGGER t AFTER INSERT ON t FOR EACH ROW SET @a = 1",
        "PROCEDURE t() SELECT 1", "FUNCTION t() RETURNS int DETERMINISTIC RETURN 1", "INDEX k ON t (b)",
        "EVENT t ON SCHEDULE EVERY 1 DAY DO SELECT 1", "UNIQUE INDEX i ON t (a)", "TEMPORARY TABLE t (id int)",
        "TEMPORARY SEQUENCE t", "PACKAGE t FUNCTION f() RETURNS int; END", "DATABASE changing",
    )
] + [
    ["ALTER TABLE t ENGINE=Aria"], ["ALTER TABLE t WAIT 5 ADD c int DEFAULT 5"], ["ALTER TABLE t NOWAIT DROP a"],
    ["ALTER IGNORE TABLE t ADD UNIQUE (b)"], ["ALTER TABLE t DROP INDEX IF EXISTS `PRIMARY`"],
    ["DROP INDEX IF EXISTS `PRIMARY` ON t"], ["ALTER TABLE t DROP CONSTRAINT `PRIMARY`"],
    ["SET STATEMENT max_statement_time=100 FOR REPAIR TABLE t"], ["ALTER TABLE t ADD SYSTEM VERSIONING"],
    ["RENAME TABLE IF EXISTS t TO s, nothing TO n"],
]  # fmt: skip
ALL = ((TABLES, ON_TABLES), (PARTITIONED, ON_PARTITIONS), (MEMBERS, ON_MEMBERS), (PARENT, ON_PARENTS))
OF_ONE_KIND = {"mysql": OF_MYSQL, "mariadb": OF_MARIADB}


Attempt = tuple[str, list[str], list[str]]


def attempts(server: Database) -> Iterator[Attempt]:
    """Each in a database of its own: its name, the tables there, and the statements."""
    given = (*ALL, (TABLES, OF_ONE_KIND[server.flavor]))
    each = ((tables, statements) for tables, forms in given for statements in forms)
    for n, (tables, statements) in enumerate(each):
        yield f"kinds{n}", tables, [text.replace("changing", f"kinds{n}") for text in statements]


def made(server: Database, every: Sequence[Attempt]) -> list[Tables]:
    """What a query shows behind each one's statements."""
    shown = []
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for db, tables, statements in every:
            for statement in (f"CREATE DATABASE {db} CHARACTER SET utf8mb4", f"USE {db}", *tables, *statements):
                cursor.execute(statement)
            shown.append(rows(server, db))
    return shown


def rows(server: Database, db: str) -> Tables:
    """Of all tables that can be read, without columns that are NULL, which a row from before has not; in a session of
    its own, which has no temporary tables."""
    with server.connect(cursorclass=pymysql.cursors.DictCursor) as connection, connection.cursor() as cursor:
        return shown_by(cursor, db)


def shown_by(cursor: pymysql.cursors.DictCursor, db: str) -> Tables:
    asked = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = %s AND table_type <> 'VIEW'"
    cursor.execute(asked, (db,))
    found: Tables = {}
    for name in [row["name"] for row in cursor.fetchall()]:
        try:
            cursor.execute(f"SELECT * FROM {db}.`{name}`")
        except pymysql.OperationalError:  # a MERGE table whose members do not fit
            continue
        found[name] = [plain(row) for row in cursor.fetchall()]
    return found


def plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def streamed(found: Sequence[Item], db: str) -> Tables:
    """The rows that a reader of the stream has."""
    state: Tables = {}
    for batch in found:
        if not isinstance(batch, RowsBatch) or batch.table.db != db:
            continue
        given = [plain(json.loads(row)) for row in batch.rows]
        gone = given if batch.op == "d" else given[::2] if batch.op == "u" else []
        came = given if batch.op == "c" else given[1::2] if batch.op == "u" else []
        there = state.setdefault(batch.table.table, [])
        there[:] = [row for row in there if row not in gone] + came
    return state


def differing(before: Tables, behind: Tables) -> set[str]:
    """A table that is there, empty, is none that the lake lacks."""

    def of(tables: Tables, name: str) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True, default=str) for row in tables.get(name, []))

    return {name for name in before | behind if of(before, name) != of(behind, name)}


def said(server: Database, found: Sequence[Item]) -> set[tuple[str, str | None]]:
    """Tables that are told to have changed: database and name, None for all of a database."""
    given = pipeline(server, include="kinds*.*")
    notes, router = DdlNotes(given), Router(given, Schemas(), lambda wanted: [], lambda schema: None)
    notes.logs_cascades = facts(source(server)).logs_cascades
    sent = [one for item in found if isinstance(item, Ddl) for one in notes.records(item, 0, router)]
    values = [json.loads(one.value) for one in sent if not one.everywhere]
    return {(value["db"], value["table"]) for value in values if value["kind"] in ddl.CHANGES_ROWS}


def test_what_is_not_told_leaves_rows_as_they_are(server: Database) -> None:
    every = list(attempts(server))
    begin = executed(server)
    shown = made(server, every)
    found = list(items(server, begin, executed(server)))
    run(server, *(f"DROP DATABASE IF EXISTS {db}" for db, *_ in every))
    told_of, changed = said(server, found), 0
    for (db, _, statements), now in zip(every, shown, strict=True):
        missing = differing(streamed(found, db), now)
        quiet = {table for table in missing if not {(db, table), (db, None)} & told_of}
        assert not quiet, (statements, quiet, now)
        changed += bool(missing)
    assert changed > 30, "the servers still do to rows what no row event says"


def test_a_name_without_a_database_is_of_the_sessions(server: Database) -> None:
    """Whatever database the statement's table is of."""
    statements = [
        "ALTER TABLE there.t RENAME s",
        "RENAME TABLE there.u TO v",
        "ALTER TABLE there.p EXCHANGE PARTITION p0 WITH TABLE x",
        "CREATE TABLE there.e (id int, KEY (id)) ENGINE=MERGE UNION=(m)",
    ]
    if server.flavor == "mariadb":
        statements.append("ALTER TABLE there.p CONVERT PARTITION p1 TO TABLE w")
    run(server, "DROP DATABASE IF EXISTS changing", "DROP DATABASE IF EXISTS there",
        "CREATE DATABASE changing", "CREATE DATABASE there", "CREATE TABLE there.t (id int)",
        "CREATE TABLE there.u (id int)", "CREATE TABLE changing.x (id int)",
        "CREATE TABLE changing.m (id int, KEY (id)) ENGINE=MyISAM",
        "CREATE TABLE there.p (id int) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), "
        "PARTITION p1 VALUES LESS THAN (20))")  # fmt: skip
    begin = executed(server)
    run(server, *statements, database="changing")
    found = told(server, list(items(server, begin, executed(server))))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'changing'")
        there = {str(name) for (name,) in cursor.fetchall()}
    assert {table for _, table in found} == there, "each of them was told"
    run(server, "DROP DATABASE there", "DROP DATABASE changing")


def test_a_repair_that_loses_rows_is_told(server: Database) -> None:
    """Of a table whose file lost its end."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing")
    run(server, "CREATE TABLE t (id int primary key, a text) ENGINE=MyISAM",
        "INSERT INTO t VALUES (1, REPEAT('x', 100)), (2, REPEAT('y', 100))", "FLUSH TABLES",
        database="changing")  # fmt: skip
    file = server.data / "changing" / "t.MYD"
    file.write_bytes(file.read_bytes()[:120])
    begin = executed(server)
    with server.connect(database="changing") as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH TABLES")
        cursor.execute("REPAIR TABLE t")
        cursor.fetchall()
        cursor.execute("SELECT id FROM t")
        assert cursor.fetchall() == ((1,),)
    assert told(server, list(items(server, begin, executed(server)))) == [("alter", "t")]
    run(server, "DROP DATABASE changing")


@pytest.mark.lacks("mysql", "MariaDB's statement")
@pytest.mark.lacks("mysql80", "MariaDB's statement")
def test_a_database_that_gets_another_name(server: Database) -> None:
    """One whose folder has a name of before MySQL 5.1."""
    (server.data / "a-b").mkdir()
    run(server, "CREATE TABLE `#mysql50#a-b`.t (id int primary key)")
    begin = executed(server)
    run(server, "ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME", "INSERT INTO `a-b`.t VALUES (1)")
    [statement, *_, batch, _] = items(server, begin, executed(server))
    assert isinstance(batch, RowsBatch)
    assert (batch.table.db, batch.table.table) == ("a-b", "t")
    assert isinstance(statement, Ddl)
    found = ddl.change(statement.statement, statement.db, statement.escapes)
    assert found == ddl.Change("rename", (("#mysql50#a-b", ddl.ANY), ("a-b", ddl.ANY)))
    run(server, "DROP DATABASE `a-b`")
