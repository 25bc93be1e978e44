from __future__ import annotations

import pytest

from streamer.protocol.query import HEARTBEAT, Meaning, meaning


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
        ("(SELECT 1)", Meaning.DDL),
        ("GRANT SELECT ON *.* TO x", Meaning.DDL),
        ("BEGINNING", Meaning.DDL),
        ("-x", Meaning.DDL),
    ],
)
def test_meaning(statement: str, expected: Meaning) -> None:
    assert meaning(statement.encode()) is expected


def test_a_managed_services_heartbeat_is_known() -> None:
    assert HEARTBEAT.search(b"INSERT INTO mysql.rds_heartbeat2(id, value) values (1,2)")
    assert HEARTBEAT.search(b"insert into `mysql`.`ha_health_check` values (1)")
    assert not HEARTBEAT.search(b"INSERT INTO shop.orders VALUES (1)")
