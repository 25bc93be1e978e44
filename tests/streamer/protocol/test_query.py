from __future__ import annotations

import struct

import pytest

from streamer.protocol import refusals
from streamer.protocol.query import FIXED, Meaning, filled, first_word, meaning, query
from streamer.protocol.status_variables import is_the_servers_own, session


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("BEGIN", Meaning.BEGIN),
        ("begin", Meaning.BEGIN),
        ("COMMIT", Meaning.COMMIT),
        ("ROLLBACK", Meaning.ROLLBACK),
        ("ROLLBACK TO SAVEPOINT `s`", Meaning.UNDONE),
        ("rollback work to s", Meaning.UNDONE),
        ("SAVEPOINT `s`", Meaning.SAVEPOINT),
        ("XA START 'x'", Meaning.XA),
        ("INSERT INTO t VALUES (1)", Meaning.ROWS),
        ("/* a */ update t set a=1", Meaning.ROWS),
        ("-- x\n# y\n DELETE FROM t", Meaning.ROWS),
        ("/*!80000 REPLACE INTO t VALUES (1) */", Meaning.ROWS),
        ("LOAD DATA INFILE 'x' INTO TABLE t", Meaning.ROWS),
        ("with x as (select 1) update t set a=1", Meaning.ROWS),
        ("CREATE TABLE t (a int)", Meaning.DDL),
        ("DROP TABLE /* INSERT */ t", Meaning.DDL),
        ("TRUNCATE t", Meaning.DDL),
        ("/* ALTER */", Meaning.DDL),
        ("", Meaning.DDL),
        ("(SELECT 1)", Meaning.ROWS),
        ("VALUES ROW(change_it())", Meaning.ROWS),
        ("/*M!100100 INSERT INTO t VALUES (1) */", Meaning.ROWS),
        ("SET STATEMENT max_statement_time=1 FOR INSERT INTO t VALUES (1)", Meaning.ROWS),
        ("set/* */statement a='x for y', b=(SELECT 1 FOR UPDATE) FOR /* */ update t set a=1", Meaning.ROWS),
        ("SET STATEMENT a=1 FOR SET STATEMENT b=2 FOR DELETE FROM t", Meaning.ROWS),
        ("SET STATEMENT a=1 FOR ANALYZE UPDATE t SET a=1", Meaning.ROWS),
        ("SET STATEMENT a=1", Meaning.ROWS),
        ("SET STATEMENT a=1 FOR TRUNCATE t", Meaning.DDL),
        ("SET PASSWORD = 'x'", Meaning.DDL),
        ("ANALYZE UPDATE t SET a=1", Meaning.ROWS),
        ("ANALYZE FORMAT=JSON DELETE FROM t", Meaning.ROWS),
        ("ANALYZE TABLE t", Meaning.DDL),
        ("analyze local tables t, u", Meaning.DDL),
        ("GRANT SELECT ON *.* TO x", Meaning.DDL),
        ("BEGINNING", Meaning.ROWS),
        ("IF 1 THEN INSERT INTO t VALUES (1); END IF", Meaning.ROWS),
        ("FOR i IN 1..2 DO INSERT INTO t VALUES (i); END FOR", Meaning.ROWS),
        ("SET STATEMENT a=1 FOR MERGE INTO t", Meaning.ROWS),
        (";INSERT INTO t VALUES (1)", Meaning.ROWS),
        ("\x00INSERT INTO t VALUES (1)", Meaning.ROWS),
        ("FLUSH TABLES", Meaning.DDL),
        ("REVOKE ALL ON *.* FROM x", Meaning.DDL),
        ("INSTALL PLUGIN p SONAME 'p.so'", Meaning.DDL),
        ("-x", Meaning.ROWS),
        ("/* only a comment */", Meaning.DDL),
    ],
)
def test_meaning(statement: str, expected: Meaning) -> None:
    assert meaning(statement.encode()) is expected


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO mysql.rds_heartbeat2(id, value) values (1,2)",
        "insert ignore into `mysql`.`ha_health_check` values (1)",
        "/* of the service */ REPLACE INTO mysql . heartbeat VALUES (1)",
        "UPDATE /* x */ mysql.ha_health_check SET a = 1",
        "DELETE FROM mysql.rds_sysinfo WHERE name = 'x'",
        "delete from mysql.rds_history",
        "REPLACE INTO `mysql`.`__az_replica_information__` VALUES (1)",
        "insert into mysql.heartbeats values (1)",
    ],
)
def test_a_managed_services_heartbeat_is_known(statement: str) -> None:
    assert meaning(statement.encode()) is Meaning.HEARTBEAT


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO shop.orders VALUES (1)",
        "INSERT INTO t VALUES (1, 'see mysql.rds_heartbeat2')",
        "INSERT INTO t SELECT * FROM mysql.rds_heartbeat2",
        "INSERT /* INTO mysql.rds_x */ INTO t VALUES (1)",
        "UPDATE t SET a = 1 WHERE 'mysql.ha_x' <> ''",
        "UPDATE mysql.rds_x, shop.t SET t.a = 1",
        "UPDATE mysql.rds_x JOIN shop.t SET t.a = 1",
        "DELETE FROM mysql.rds_x, shop.t USING shop.t JOIN mysql.rds_x",
        "DELETE shop.t FROM shop.t JOIN mysql.rds_x",
        "INSERT /* x */ INTO t VALUES (1, '*/ INTO mysql.rds_heartbeat2')",
        "--\nINSERT INTO t VALUES (1)",
        "/*!50000 */ INSERT INTO t VALUES (1)",
        "{INSERT INTO t VALUES (1)}",
        "REPLACE INTO mysql VALUES (1)",
        "REPLACE INTO mysql2.rds_x VALUES (1)",
        "LOAD DATA INFILE 'mysql.rds_x' INTO TABLE mysql.rds_x",
        "INSERT INTO mysql.rds_x VALUES (shop.f())",  # a function writes what it wants
        "INSERT INTO mysql.rds_x VALUES (1) ON DUPLICATE KEY UPDATE a = f(2)",
        "UPDATE mysql.rds_x SET a = `f`()",
        "DELETE FROM mysql.rds_x WHERE f() = 1",
        "INSERT INTO mysql.rds_x SELECT * FROM shop.view_that_calls_one",
    ],
)
def test_a_statement_that_merely_names_a_managed_services_table_is_none_of_its(statement: str) -> None:
    assert meaning(statement.encode()) is Meaning.ROWS


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t SELECT 1 AS id",
        "CREATE TABLE t AS SELECT 1 AS id",
        "create or replace table if not exists `t` (id int primary key) engine=InnoDB replace select 1 as id",
        "CREATE TABLE t (SELECT 1 AS id)",
        "CREATE TABLE shop.t ((SELECT 1))",
        "CREATE TABLE t WITH x AS (SELECT 1) TABLE x",
        "CREATE TABLE t TABLE u",
        "CREATE TABLE t VALUES (1)",
        "CREATE TABLE t (VALUES ROW(1))",
        "SET STATEMENT a=1 FOR CREATE TABLE t (id int) SELECT 1 AS id",
        "CREATE /*!50000 TABLE t */ /*!50000 SELECT 1 AS id */",
    ],
)
def test_a_table_made_with_rows_in_it(statement: str) -> None:
    assert filled(statement, "shop") == ("shop", "t")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (id int) START TRANSACTION",
        "CREATE TABLE t LIKE u",
        "CREATE TABLE shop.select (id int)",
        "CREATE TABLE t (`select` int, a int AS (`values` + 1), b char(9) DEFAULT 'select') COMMENT 'table select'",
        "CREATE TABLE t (id int /* SELECT */) -- SELECT 1",
        "CREATE TABLE t (id int) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES IN (7))",
        "CREATE TEMPORARY TABLE t SELECT 1 AS id",
        "CREATE VIEW t AS SELECT 1",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SELECT 1 INTO @a",
        "ALTER TABLE t ADD a int",
        "",
    ],
)
def test_a_table_made_without_rows(statement: str) -> None:
    assert filled(statement, "shop") is None


def event(statement: bytes, collation: int = 45, mode: int = 0, more: bytes = b"") -> bytes:
    """A Query event's body, with the status variables of MySQL 9.7 in their order."""
    status = b"\0" + bytes(4) + b"\x01" + mode.to_bytes(8, "little") + b"\x06\x03std" + more
    status += b"\x04" + collation.to_bytes(2, "little") + bytes(4) + b"\x05\x06SYSTEM"
    fixed = struct.pack("<IIBHH", 9, 3, 4, 0, len(status))
    return fixed + status + b"shop\0" + statement


@pytest.mark.parametrize(
    ("collation", "raw", "text"),
    [
        (45, "TRUNCATE größe".encode(), "TRUNCATE größe"),
        (8, "TRUNCATE größe".encode("latin1"), "TRUNCATE größe"),
        (8, "DROP TABLE `größe` /* generated by server */".encode(), "DROP TABLE `größe` /* generated by server */"),
        (8, "DROP TABLE größe".encode("latin1"), "DROP TABLE größe"),
        (8, "TRUNCATE `größe` /* generated by server */".encode(), "TRUNCATE `größe` /* generated by server */"),
        (28, " /* x */ truncate 模".encode("gbk"), " /* x */ truncate 模"),
        (28, "CREATE TABLE `größe` (id int)".encode(), "CREATE TABLE `größe` (id int)"),
        (13, "ALTER TABLE t COMMENT '表'".encode("sjis"), "ALTER TABLE t COMMENT '表'"),
        (54, b"ALTER TABLE t COMMENT '\xff'", "ALTER TABLE t COMMENT '\ufffd'"),
        (45, b"ALTER TABLE t COMMENT '\xff'", "ALTER TABLE t COMMENT '\ufffd'"),
        (60_000, b"ALTER TABLE t COMMENT '\xff'", "ALTER TABLE t COMMENT '\ufffd'"),
        (87, b"ALTER TABLE t COMMENT 'x\xd6", "ALTER TABLE t COMMENT 'x\ufffd"),
    ],
)  # fmt: skip
def test_a_statement_is_text_in_its_clients_character_set(collation: int, raw: bytes, text: str) -> None:
    body = event(raw, collation)
    read = query(b"xx" + body, 2, 2 + len(body))
    assert (read.thread, read.seconds, read.database, read.text()) == (9, 3, "shop", text)


@pytest.mark.parametrize("more", [b"", b"\x03" + bytes(4)])
def test_whether_a_backslash_is_an_escape(more: bytes) -> None:
    for mode, escapes in ((1 << 20, False), ((1 << 20) - 1, True)):
        body = event(b"FLUSH LOGS", mode=mode, more=more)
        assert query(body, 0, len(body)).escapes is escapes
        assert query(body, 0, len(body)).charset is not None


def test_status_variables_that_are_cut_or_unknown_tell_nothing() -> None:
    whole = event(b"FLUSH LOGS", collation=8)
    status = whole[FIXED : FIXED + 30]
    for size in range(len(status)):
        for cut in (status[:size], status[:size] + b"\xee" * 9):
            body = struct.pack("<IIBHH", 9, 3, 4, 0, len(cut)) + cut + b"shop\0" + b"FLUSH LOGS"
            assert query(body, 0, len(body)).statement == b"FLUSH LOGS"


@pytest.mark.parametrize(
    ("more", "own"),
    [
        (b"\x12\xff\x00", True),  # as MySQL 8.0.15 empties a MEMORY table
        (b"\x0c\x01mem\x00\x12\xff\x00", False),  # as a client typed it, in the format STATEMENT
        (b"\x0b\x01a\x01b\x0c\x01mem\x00", False),
        (b"", True),
    ],
)
def test_a_change_that_names_no_database_is_the_servers_own(more: bytes, own: bool) -> None:
    status = bytes.fromhex("0000000000 012000a04500000000 0603737464 04ff00ff00ff00") + more
    assert is_the_servers_own(status) is own
    assert session(status)[1]
    assert not is_the_servers_own(b"")


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("insert into t values ('secret')", "INSERT"),
        ("/* a 'secret' */ -- another\n  (SELECT 1)", "("),
        ("/*!80000 REPLACE */ t VALUES (1)", "REPLACE"),
        ("secret", ""),
        ("'secret'", ""),
        ("", ""),
    ],
)
def test_a_refusal_names_the_first_word_alone(statement: str, word: str) -> None:
    assert first_word(statement.encode()) == word
    for db, where in (("shop", "in the database shop"), ("", "without a database")):
        told = str(refusals.statement(db, first_word(statement.encode())))
        assert f"{word or 'a statement'} of a session {where} changes rows" in told
        assert "secret" not in told
