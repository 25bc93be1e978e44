"""DDL of every form, and the sequences of online schema changes: each row lands under the names of its columns.

After each change of rows the table is selected; what the stream says of a row is what was selected then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pymysql.cursors
import pytest

from contract.schema import TableSchema
from stack.database import Database
from streamer.ddl import statement as ddl
from streamer.ddl.notes import DdlNotes
from streamer.errors import UnsupportedTransactionError
from streamer.protocol.model import Ddl, Item, RowsBatch
from streamer.routes import Router
from streamer.schemas import Schemas
from streamer.source import facts
from tests.integration.decoding import executed, items, pipeline, run, source, told

Row = dict[str, Any]
START = ["CREATE TABLE t (id int primary key, a int, b varchar(20)) ENGINE=InnoDB", "INSERT INTO t VALUES (1, 10, 'x')"]
INSERTS = ("insert", "replace")
BACKSLASHES = "NO_BACKSLASH_ESCAPES"
# Names that no server wants in quotes, with characters that are no part of a word, or a blank, to Python.
PLAIN = ("ลูกค้า", "ग्राहक", "preis€", "cafe\u0301", "a\u3000b", "a\u00a0b", "テスト・表")
NAMES, NAMED = ("t", "u", "_t_gho", "_t_new"), re.compile(r"(?:INTO|into) (?:`changing`\.)?`?(\w+)")

FORMS = [
    *START,
    "ALTER TABLE t ADD COLUMN first_one int FIRST", "INSERT INTO t VALUES (7, 2, 20, 'y')",
    "ALTER TABLE t ADD c datetime DEFAULT '2020-01-01 00:00:00' AFTER id, ADD INDEX (a)",
    "INSERT INTO t VALUES (8, 3, '2021-02-03 04:05:06', 30, 'é')",
    "ALTER TABLE t DROP COLUMN first_one", "INSERT INTO t VALUES (4, NULL, 40, 'z')",
    "ALTER TABLE t MODIFY a bigint unsigned", "INSERT INTO t VALUES (5, NULL, 18446744073709551615, 'z')",
    "ALTER TABLE t CHANGE b renamed varchar(40) CHARACTER SET latin1", "INSERT INTO t VALUES (6, NULL, 6, 'ü')",
    "ALTER TABLE t CONVERT TO CHARACTER SET gbk", "INSERT INTO t VALUES (7, NULL, 7, '汉字')",
    "ALTER TABLE t ADD e enum('one','two')", "INSERT INTO t VALUES (8, NULL, 8, 'w', 'two')",
    "ALTER TABLE t MODIFY e enum('zero','two','one')", "INSERT INTO t VALUES (9, NULL, 9, 'w', 'two')",
    "ALTER TABLE t RENAME COLUMN a TO swapped, RENAME COLUMN id TO a",
    "INSERT INTO t VALUES (10, NULL, 100, 'w', 'zero')",
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (swapped)", "INSERT INTO t VALUES (11, NULL, 101, 'w', 'zero')",
    "ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (12, NULL, 102, 'w', 'zero')",
    "RENAME TABLE u TO t", "TRUNCATE TABLE t", "INSERT INTO t VALUES (13, NULL, 103, 'w', 'zero')",
    "DROP TABLE t", "CREATE TABLE t (id int primary key, other text)", "INSERT INTO t VALUES (14, 'again')",
    "CREATE TABLE u (other int, id int primary key)", "INSERT INTO u VALUES (5, 15)",
    "RENAME TABLE t TO swap, u TO t, swap TO u", "INSERT INTO t VALUES (6, 16)", "INSERT INTO u VALUES (17, 'text')",
]  # fmt: skip
PARTITIONS = [
    "CREATE TABLE t (id int primary key, v int) PARTITION BY RANGE (id) "
    "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
    "INSERT INTO t VALUES (1, 1), (11, 1)",
    "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))", "INSERT INTO t VALUES (21, 1)",
    "ALTER TABLE t TRUNCATE PARTITION p0", "INSERT INTO t VALUES (2, 2)",
    "ALTER TABLE t DROP PARTITION p1", "INSERT INTO t VALUES (12, 3)",
    "ALTER TABLE t REORGANIZE PARTITION p2 INTO (PARTITION p3 VALUES LESS THAN (40))", "INSERT INTO t VALUES (31, 4)",
    "ALTER TABLE t ADD PARTITION (PARTITION p4 VALUES LESS THAN (50), PARTITION p5 VALUES LESS THAN (60))",
    "ALTER TABLE t REBUILD PARTITION p4, p5", "ALTER TABLE t ANALYZE PARTITION p4, p5",
    "ALTER TABLE t REORGANIZE PARTITION p4, p5 INTO (PARTITION p6 VALUES LESS THAN (60))",
    "INSERT INTO t VALUES (41, 9)",
    "CREATE TABLE u (id int primary key, v int)", "INSERT INTO u VALUES (3, 5)",
    "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", "INSERT INTO u VALUES (4, 6)", "INSERT INTO t VALUES (5, 7)",
    "ALTER TABLE t REMOVE PARTITIONING", "INSERT INTO t VALUES (50, 8)",
]  # fmt: skip
# A partition becomes a table and one again; what is altered between is taken back, for the two must be alike.
CONVERTS = [
    *PARTITIONS[:2],
    "ALTER TABLE t CONVERT PARTITION p1 TO TABLE u", "INSERT INTO u VALUES (12, 2)", "REPLACE INTO u VALUES (11, 3)",
    "ALTER TABLE u ADD w varchar(9) FIRST", "INSERT INTO u VALUES ('w', 13, 4)", "INSERT INTO t VALUES (2, 5)",
    "ALTER TABLE u DROP w", "INSERT INTO u VALUES (14, 6)",
    "ALTER TABLE t CONVERT TABLE u TO PARTITION p1 VALUES LESS THAN (20)", "INSERT INTO t VALUES (15, 7)",
    "REPLACE INTO t VALUES (11, 8)", "CREATE TABLE u (other text, id int primary key)", "INSERT INTO u VALUES ('x', 9)",
    "DROP TABLE u", "ALTER TABLE t CONVERT PARTITION p1 TO TABLE changing.u", "INSERT INTO u VALUES (16, 10)",
    "ALTER TABLE t CONVERT TABLE changing.u TO PARTITION p1 VALUES LESS THAN (20) WITHOUT VALIDATION",
    "INSERT INTO t VALUES (17, 11)",
]  # fmt: skip
# As gh-ost 1.1 issues them.
GH_OST = [
    *START,
    "create /* gh-ost */ table `changing`.`_t_ghc` (id bigint unsigned auto_increment, last_update timestamp not null "
    "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null, value "
    "varchar(255) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256 "
    "comment='gh-ost-changelog'",
    "create /* gh-ost */ table `changing`.`_t_gho` like `changing`.`t`",
    "alter /* gh-ost */ table `changing`.`_t_gho` add column n int not null default 5 after id, drop column a",
    "insert /* gh-ost */ ignore into `changing`.`_t_gho` (`id`, `b`) "
    "(select `id`, `b` from `changing`.`t` force index (`PRIMARY`) where (`id` >= 1) lock in share mode)",
    "INSERT INTO t VALUES (2, 20, 'y')",
    "replace /* gh-ost */ into `changing`.`_t_gho` (`id`, `b`) values (2, 'y')",
    "create /* gh-ost */ table `changing`.`_t_del` (id int auto_increment primary key) engine=InnoDB "
    "comment='ghost-cut-over-sentry'",
    "drop /* gh-ost */ table if exists `changing`.`_t_del`",
    "rename /* gh-ost */ table `changing`.`t` to `changing`.`_t_del`, `changing`.`_t_gho` to `changing`.`t`",
    "INSERT INTO t VALUES (3, 6, 'z')",
    "drop /* gh-ost */ table if exists `changing`.`_t_ghc`",
    "drop /* gh-ost */ table if exists `changing`.`_t_del`",
    "INSERT INTO t VALUES (4, 7, 'w')",
]
# As pt-online-schema-change 3 issues them.
IGNORED = "DECLARE CONTINUE HANDLER FOR 1146 begin end;"
PT_OSC = [
    *START,
    "CREATE TABLE `changing`.`_t_new` (`id` int NOT NULL, `a` int DEFAULT NULL, `b` varchar(20) DEFAULT NULL, "
    "PRIMARY KEY (`id`)) ENGINE=InnoDB",
    "ALTER TABLE `changing`.`_t_new` MODIFY b varchar(20) CHARACTER SET latin1, ADD COLUMN c int FIRST",
    "CREATE TRIGGER `pt_osc_changing_t_del` AFTER DELETE ON `changing`.`t` FOR EACH ROW BEGIN " + IGNORED +
    " DELETE IGNORE FROM `changing`.`_t_new` WHERE `changing`.`_t_new`.`id` <=> OLD.`id`; END",
    "CREATE TRIGGER `pt_osc_changing_t_upd` AFTER UPDATE ON `changing`.`t` FOR EACH ROW BEGIN " + IGNORED +
    " DELETE IGNORE FROM `changing`.`_t_new` WHERE !(OLD.`id` <=> NEW.`id`) AND `changing`.`_t_new`.`id` <=> OLD.`id`; "
    "REPLACE INTO `changing`.`_t_new` (`id`, `a`, `b`) VALUES (NEW.`id`, NEW.`a`, NEW.`b`); END",
    "CREATE TRIGGER `pt_osc_changing_t_ins` AFTER INSERT ON `changing`.`t` FOR EACH ROW BEGIN " + IGNORED +
    " REPLACE INTO `changing`.`_t_new` (`id`, `a`, `b`) VALUES (NEW.`id`, NEW.`a`, NEW.`b`); END",
    "INSERT LOW_PRIORITY IGNORE INTO `changing`.`_t_new` (`id`, `a`, `b`) SELECT `id`, `a`, `b` FROM `changing`.`t` "
    "LOCK IN SHARE MODE /*pt-online-schema-change 4242 copy table*/",
    "INSERT INTO t VALUES (2, 20, 'ü')", "REPLACE INTO t VALUES (2, 21, 'ä')",
    "ANALYZE TABLE `changing`.`_t_new` /* pt-online-schema-change */",
    "RENAME TABLE `changing`.`t` TO `changing`.`_t_old`, `changing`.`_t_new` TO `changing`.`t`",
    "INSERT INTO t VALUES (9, 3, 30, 'ö')",
    "SET foreign_key_checks = 0", "DROP TABLE IF EXISTS `changing`.`_t_old`",
    "DROP TRIGGER IF EXISTS `changing`.`pt_osc_changing_t_del`",
    "DROP TRIGGER IF EXISTS `changing`.`pt_osc_changing_t_upd`",
    "DROP TRIGGER IF EXISTS `changing`.`pt_osc_changing_t_ins`",
    "INSERT INTO t VALUES (9, 4, 40, 'ß')",
]  # fmt: skip
SELECTED = [
    *START, "CREATE TABLE u (PRIMARY KEY (id)) SELECT b, id, a + 1 AS more FROM t", "INSERT INTO u VALUES ('w', 2, 5)",
    "DROP TABLE u", "CREATE TABLE u LIKE t", "INSERT INTO u SELECT * FROM t",
]  # fmt: skip

SEEN = "SELECT JSON_DUALITY_OBJECT('_id': id, '{column}': {column}) FROM t"
# What only one kind of server has and leaves rows as they are.
LEAVING = {
    "mysql": [
        "ALTER TABLE t SECONDARY_ENGINE = NULL",
        "CREATE JSON RELATIONAL DUALITY VIEW d AS " + SEEN.format(column="a"),
        "ALTER JSON RELATIONAL DUALITY VIEW d AS " + SEEN.format(column="b"),
        "DROP VIEW d",
    ],
    "mysql80": ["ALTER TABLE t SECONDARY_ENGINE = NULL"],
    "mariadb": [
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS n int, ADD INDEX IF NOT EXISTS i (n)",
        "ALTER TABLE t DROP INDEX IF EXISTS i, PAGE_CHECKSUM = 1",
        "CREATE PACKAGE p FUNCTION f() RETURNS int; END",
        "CREATE PACKAGE BODY p FUNCTION f() RETURNS int BEGIN RETURN 1; END; END",
        "DROP PACKAGE BODY p",
        "DROP PACKAGE p",
    ],
}


def followed(server: Database, statements: Sequence[str]) -> tuple[list[tuple[str, list[Row]]], list[Item]]:
    """Per change of rows, by its table, the table as selected behind it; and what the stream gives."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing CHARACTER SET utf8mb4")
    begin = executed(server)
    selected: list[tuple[str, list[Row]]] = []
    kind = pymysql.cursors.DictCursor
    with server.connect(database="changing", cursorclass=kind) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            if statement.split()[0].lower() in INSERTS:
                table = next(name for name in NAMED.findall(statement) if name in NAMES)
                cursor.execute(f"SELECT * FROM {table}")
                selected.append((table, list(cursor.fetchall())))
    return selected, list(items(server, begin, executed(server)))


def as_wire(row: Row) -> list[tuple[str, Any]]:
    """Names in order, and the values as JSON has them."""
    return [(name, value if isinstance(value, int | str | None) else str(value)) for name, value in row.items()]


def check(server: Database, statements: Sequence[str]) -> list[Item]:
    selected, found = followed(server, statements)
    given: dict[str, list[list[tuple[str, Any]]]] = {}
    for batch in found:
        if isinstance(batch, RowsBatch):
            rows = [list(json.loads(row).items()) for row in batch.rows]
            given.setdefault(batch.table.table, []).extend(rows)
    for table, rows in selected:
        last = [as_wire(row) for row in rows]
        assert any(row in given[table] for row in last), (table, last, given[table])
    for table, rows_given in given.items():
        there = [as_wire(row) for name, rows in selected if name == table for row in rows]
        if there and table in ("t", "u"):
            assert [row for row in rows_given if row not in there] == [], "no row is under other names"
    return found


def versions(server: Database, found: Sequence[Item]) -> dict[str, list[TableSchema]]:
    """What the schema topic would get, in order; each before the first row that uses it."""
    published: dict[str, list[TableSchema]] = {}
    router = Router(
        pipeline(server, include="changing.*"), Schemas(), lambda wanted: [],
        lambda schema: published.setdefault(schema.table, []).append(schema),
    )  # fmt: skip
    for batch in found:
        if isinstance(batch, RowsBatch):
            route = router.route(batch, 0)
            assert route.shape is batch.table
            assert published[batch.table.table][-1].shape() == batch.table.schema.shape()
    return published


def test_every_form_of_alter_rename_and_drop(server: Database) -> None:
    """Pitfall "DDL: row metadata is the truth": ADD, DROP, MODIFY, RENAME COLUMN, RENAME TABLE, TRUNCATE."""
    found = check(server, FORMS)
    made = versions(server, found)
    names = [[column.name for column in schema.columns] for schema in made["t"]]
    assert names[0] == ["id", "a", "b"]
    assert names[-1] == ["other", "id"], "of the table that was renamed to it"
    assert names[-2] == ["id", "other"]
    assert [schema.version for schema in made["t"]] == list(range(1, len(names) + 1))
    keys = [schema.key for schema in made["t"]]
    assert keys.index(("a",)) < keys.index(("swapped",)), "the key follows its column's name"
    understood(found)


@pytest.mark.parametrize("sequence", [PARTITIONS, GH_OST, PT_OSC], ids=["partitions", "gh-ost", "pt-osc"])
def test_sequences_of_ddl(server: Database, sequence: Sequence[str]) -> None:
    """Pitfall "DDL": partitions, the table swaps of gh-ost and pt-online-schema-change."""
    found = check(server, sequence)
    versions(server, found)
    understood(found)


@pytest.mark.lacks("mysql", "MariaDB's statement")
@pytest.mark.lacks("mysql80", "MariaDB's statement")
def test_partitions_become_tables_and_tables_partitions(server: Database) -> None:
    """No row event tells of the rows that a statement moves: its record names both tables, and the one that has got a
    partition's rows waits for a snapshot."""
    found = check(server, CONVERTS)
    converts = [item for item in found if isinstance(item, Ddl) and " CONVERT " in item.statement]
    assert [item.statement for item in converts] == [text for text in CONVERTS if " CONVERT " in text]
    assert told(server, [*converts]) == [("partition", "t"), ("partition", "u")] * 4
    joined: list[dict[str, bool]] = []
    notes = DdlNotes(pipeline(server, include="changing.*"))
    notes.joined = lambda tables, place: joined.append(dict(tables))
    router = Router(notes.pipeline, Schemas(), lambda wanted: [], lambda schema: None)
    for item in converts:
        list(notes.records(item, 0, router))
    assert joined == [{"changing.u": True}, {"changing.u": False}] * 2
    assert [(note["kind"], note["tables"]) for note in notes.last] == [("partition", ["changing.t", "changing.u"])] * 4
    given = [
        (item.op, item.table.table, json.loads(row)["id"]) for item in found if isinstance(item, RowsBatch)
        for row in item.rows
    ]  # fmt: skip
    assert ("c", "u", 11) not in given
    assert [row for row in given if row[2] == 11] == [("c", "t", 11), *[("u", "u", 11)] * 2, *[("u", "t", 11)] * 2]
    made = versions(server, found)
    assert [[column.name for column in schema.columns] for schema in made["t"]] == [["id", "v"]]
    assert [[column.name for column in schema.columns] for schema in made["u"]] == [
        ["id", "v"], ["w", "id", "v"], ["id", "v"], ["other", "id"], ["id", "v"],
    ]  # fmt: skip
    assert {schema.key for schema in [*made["t"], *made["u"]]} == {("id",)}
    understood(found)


def test_what_leaves_rows_alone_is_no_alarm(server: Database) -> None:
    """A table would be stale, or all of them, until a snapshot."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing")
    run(server, *START, database="changing")
    begin = executed(server)
    run(server, *LEAVING[server.name], database="changing")
    found = list(items(server, begin, executed(server)))
    assert sum(isinstance(item, Ddl) for item in found) == len(LEAVING[server.name]), "they are logged"
    assert [one for one in told(server, found) if one[0] in ddl.CHANGES_ROWS] == []


TYPED = [
    # client's character set, its sql_mode, the statement, and what is told of it
    ("latin1", "", "TRUNCATE TABLE größe", ("truncate", "größe")),
    ("latin1", "", "ALTER TABLE größe DROP COLUMN v", ("alter", "größe")),
    ("gbk", "", "/* x */ TRUNCATE TABLE 模", ("truncate", "模")),  # the bytes of ģ in UTF-8
    ("sjis", "", "ALTER TABLE t COMMENT '予定表', ADD COLUMN n INT NOT NULL DEFAULT 5", ("alter", "t")),
    ("utf8mb4", BACKSLASHES, r"ALTER TABLE t COMMENT 'C:\', ADD COLUMN m INT NOT NULL DEFAULT 5", ("alter", "t")),
    ("sjis", "", "CREATE TABLE p (a INT COMMENT '表', b INT COMMENT 'select one')", ("shape", "p")),
    ("utf8mb4", BACKSLASHES, r"CREATE TABLE q (p VARCHAR(9) DEFAULT 'C:\', q INT COMMENT 'SELECT')", ("shape", "q")),
    ("utf8mb4", "", "ALTER TABLE gr ADD vector INT DEFAULT 5", ("alter", "gr")),
    ("utf8mb4", "", "ALTER TABLE gr DROP vector", ("alter", "gr")),
    *[("utf8mb4", "", f"TRUNCATE TABLE {name}", ("truncate", name)) for name in PLAIN],
    *[("utf8mb4", "", f"ALTER TABLE {name} ADD c INT DEFAULT 5", ("alter", name)) for name in PLAIN],
    ("latin1", "", "DROP TABLE größe", ("drop", "größe")),
]


def test_statements_are_read_as_their_clients_wrote_them(server: Database) -> None:
    """By the session's character set and sql_mode, which stand with each statement."""
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing CHARACTER SET utf8mb4")
    tables = [f"CREATE TABLE `{name}` (id int primary key, v int)" for name in ("größe", "gr", "模", "ģ", "t", *PLAIN)]
    run(server, *tables, database="changing")
    begin = executed(server)
    with server.connect(database="changing", autocommit=True) as connection, connection.cursor() as cursor:
        for names, mode, statement, _ in TYPED:
            cursor.execute(f"SET NAMES {names}")
            cursor.execute(f"SET sql_mode = '{mode}'")
            cursor.execute(statement.encode(names.removesuffix("mb4")))
    found = list(items(server, begin, executed(server)))
    assert told(server, found) == [said for *_, said in TYPED]
    texts = [item.statement for item in found if isinstance(item, Ddl)]
    assert texts[:-1] == [statement for _, _, statement, _ in TYPED[:-1]]


def test_a_memory_table_is_empty_behind_a_restart(another: Callable[..., Database]) -> None:
    """The server writes a statement when it is first used, each kind its own: a truncation. The same by a client, in
    the format STATEMENT, stops the stream, since triggers may change other rows."""
    server = another()
    made = ("CREATE TABLE `m``x` (id int primary key) ENGINE=MEMORY", "INSERT INTO `m``x` VALUES (1)")
    run(server, "CREATE DATABASE changing", "CREATE DATABASE others")
    for db in ("changing", "others"):
        run(server, *made, database=db)
    server.stop()
    server.start()
    begin = executed(server)
    for db in ("changing", "others"):
        run(server, "SELECT * FROM `m``x`", "INSERT INTO `m``x` VALUES (2)", database=db)
    found = list(items(server, begin, executed(server)))
    assert told(server, found) == [("truncate", "m`x")]
    assert sum(isinstance(item, RowsBatch) for item in found) == 2
    run(server, "SET binlog_format = STATEMENT", "DELETE FROM `others`.`m``x`")
    with pytest.raises(UnsupportedTransactionError):
        list(items(server, begin, executed(server)))


@pytest.mark.lacks("mysql80", "with GTIDs, CREATE TABLE ... SELECT came with 8.0.21")
def test_a_statement_that_the_server_writes_itself_has_its_names_in_utf8(server: Database) -> None:
    run(server, "DROP DATABASE IF EXISTS changing", "CREATE DATABASE changing CHARACTER SET utf8mb4")
    begin = executed(server)
    with server.connect(database="changing", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES latin1")
        cursor.execute("CREATE TABLE größe (id INT PRIMARY KEY) SELECT 1 AS id".encode("latin1"))
    assert told(server, list(items(server, begin, executed(server)))) == [("shape", "größe")]


@pytest.mark.lacks("mysql80", "with GTIDs, CREATE TABLE ... SELECT came with 8.0.21")
def test_a_table_made_of_a_query(server: Database) -> None:
    """Pitfall "DDL": CREATE TABLE ... SELECT."""
    found = check(server, SELECTED)
    assert [[column.name for column in schema.columns] for schema in versions(server, found)["u"]] == [
        ["b", "id", "more"], ["id", "a", "b"],
    ]  # fmt: skip


@pytest.mark.lacks("mysql", "its data would have to be made with the setting")
@pytest.mark.lacks("mysql80", "its data would have to be made with the setting")
def test_a_server_that_keeps_names_in_lower_case(server: Database, another: Callable[..., Database]) -> None:
    """Its statements have them as they were typed, its rows do not."""
    assert not facts(source(server)).lower_case
    lowering = another(["lower_case_table_names=1"])
    run(lowering, "CREATE DATABASE Changing", "CREATE TABLE Changing.T (id int primary key)")
    begin = executed(lowering)
    run(lowering, "INSERT INTO CHANGING.t VALUES (1)", "TRUNCATE TABLE Changing.T", "ALTER TABLE CHANGING.T ADD V int")
    found = list(items(lowering, begin, executed(lowering)))
    chosen = pipeline(lowering, include="changing.*")
    notes, router = DdlNotes(chosen), Router(chosen, Schemas(), lambda wanted: [], lambda schema: None)
    notes.lower_case = facts(source(lowering)).lower_case
    rows = {(item.table.db, item.table.table) for item in found if isinstance(item, RowsBatch)}
    records = [record for item in found if isinstance(item, Ddl) for record in notes.records(item, 0, router)]
    said = [json.loads(record.value) for record in records if record.topic == "checked.ddl"]
    assert rows == {(one["db"], one["table"]) for one in said} == {("changing", "t")}
    assert [one["kind"] for one in said] == ["truncate", "shape"]
    assert [record.topic for record in records if record.everywhere] == ["checked.changing.t"]


def understood(found: Sequence[Item]) -> None:
    said = [(ddl.change(item.statement, item.db).kind, item.statement) for item in found if isinstance(item, Ddl)]
    assert [statement for kind, statement in said if kind == "unknown"] == []
