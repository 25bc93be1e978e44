"""Which tables a statement brings with rows that nobody streamed."""

from __future__ import annotations

import pytest

from streamer.ddl import statement as ddl
from streamer.ddl.joining import joining


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("RENAME TABLE other.a TO b", {"other.a": False, "shop.b": True}),
        ("RENAME TABLE t TO old, gho TO t", {"shop.t": True, "shop.old": True, "shop.gho": False}),
        ("ALTER TABLE a RENAME TO other.b", {"shop.a": False, "other.b": True}),
        ("ALTER TABLE a ADD COLUMN x INT", {}),
        ("CREATE TABLE a (id INT)", {"shop.a": False}),
        ("CREATE TABLE a LIKE b", {"shop.a": False}),
        ("CREATE OR REPLACE TABLE a (id INT)", {"shop.a": False}),
        ("/*!50000 CREATE */ TABLE a (id INT)", {"shop.a": False}),
        ("SET STATEMENT max_statement_time=1 FOR CREATE TABLE a (id INT)", {"shop.a": False}),
        ("CREATE TABLE IF NOT EXISTS a (id INT)", {}),  # it is logged where the table is there, too
        ("DROP TABLE IF EXISTS a, other.b", {"shop.a": False, "other.b": False}),
        ("DROP DATABASE other", {"other.*": False}),
        ("CREATE TABLE a (id INT) ENGINE=MERGE UNION=(b)", {"shop.a": False}),
        ("CREATE OR REPLACE SEQUENCE a", {"shop.a": False}),
        ("REPAIR TABLE a", {}),
        ("ALTER DATABASE `#mysql50#x` UPGRADE DATA DIRECTORY NAME", {"#mysql50#x.*": False}),
        ("ALTER TABLE a CONVERT PARTITION p TO TABLE other.b", {"other.b": True}),
        ("ALTER TABLE a CONVERT TABLE b TO PARTITION p VALUES LESS THAN (5)", {"shop.b": False}),
        ("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b", {}),
        ("TRUNCATE a", {}),
        ("what is this", {}),
    ],
)
def test_what_joins_and_what_has_no_rows_of_before(statement: str, expected: dict[str, bool]) -> None:
    found = joining(ddl.change(statement, "shop"), statement)
    assert {f"{db}.{table}": joins for (db, table), joins in found.items()} == expected
