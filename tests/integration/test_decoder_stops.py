"""What could lose a change stops the decoder, with a reason and the next step, after what came before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stack.database import Database
from streamer.errors import HeadraceError, MissingMetadataError, UnsupportedTransactionError, UnsupportedTypeError
from streamer.protocol.model import Item
from tests.integration.decoding import executed, found_of, items, nothing, pipeline, rows, run, shape

pytestmark = pytest.mark.usefixtures("streams")
Another = Callable[..., Database]


STOPS: dict[str, tuple[type[HeadraceError], list[str], str]] = {
    "statement": (
        UnsupportedTransactionError,
        ["SET binlog_format = STATEMENT", "INSERT INTO t (id) VALUES (50)"],
        "INSERT of a session in the database streams changes rows by itself",
    ),
    "a table made with rows in it": (
        UnsupportedTransactionError,
        ["SET binlog_format = MIXED", "CREATE TABLE n (id int primary key) SELECT 50 AS id", "DROP TABLE n"],
        "binlog_format = 'ROW'",
    ),
    "a managed service named in a value": (
        UnsupportedTransactionError,
        ["SET binlog_format = STATEMENT", "INSERT INTO t VALUES (50, 'see mysql.rds_heartbeat2', NULL)"],
        "INSERT of a session in the database streams",
    ),
    "SET STATEMENT": (
        UnsupportedTransactionError,
        ["SET binlog_format = STATEMENT", "SET STATEMENT max_statement_time=100 FOR INSERT INTO t (id) VALUES (50)"],
        "binlog_format = 'ROW'",
    ),
    "ANALYZE of a change": (
        UnsupportedTransactionError,
        ["SET binlog_format = STATEMENT", "ANALYZE UPDATE t SET v = 'changed'"],
        "binlog_format = 'ROW'",
    ),
    "members that are no text": (
        UnsupportedTypeError,
        ["CREATE TABLE n (id int primary key, e enum(x'ff', x'61') character set binary)",
         "INSERT INTO n VALUES (1, 2)", "DROP TABLE n"],
        "enum of the character set binary with members that are no text",
    ),
    "image": (
        MissingMetadataError,
        ["SET binlog_row_image = MINIMAL", "UPDATE t SET v = 'changed'"],
        "binlog_row_image = 'FULL'",
    ),
    "image without blobs": (
        MissingMetadataError,
        ["CREATE TABLE n (id int primary key, v int, b text)", "INSERT INTO n VALUES (1, 1, 'x')",
         "SET binlog_row_image = NOBLOB", "UPDATE n SET v = 2", "DROP TABLE n"],
        "binlog_row_image = 'FULL'",
    ),
    "FULL_NODUP": (
        MissingMetadataError,
        ["SET binlog_row_image = FULL_NODUP", "UPDATE t SET v = 'changed'"],
        "binlog_row_image = 'FULL'",
    ),
    "metadata": (
        MissingMetadataError,
        ["SET GLOBAL binlog_row_metadata = MINIMAL", "CREATE TABLE n (id int)", "INSERT INTO n VALUES (1)",
         "SET GLOBAL binlog_row_metadata = FULL", "DROP TABLE n"],
        "binlog_row_metadata = 'FULL'",
    ),
}  # fmt: skip


MARIADBS = pytest.mark.lacks("mysql", "MariaDB's statement"), pytest.mark.lacks("mysql80", "MariaDB's statement")
MARKS = {
    "a table made with rows in it": [pytest.mark.lacks("mysql80", "with GTIDs, it came with 8.0.21")],
    "SET STATEMENT": MARIADBS,
    "FULL_NODUP": [pytest.mark.lacks("mysql", "MariaDB's image"), pytest.mark.lacks("mysql80", "MariaDB's image")],
    "ANALYZE of a change": MARIADBS,
}


@pytest.mark.parametrize("case", [pytest.param(case, marks=MARKS.get(case, ())) for case in STOPS])
def test_what_could_lose_a_change_stops_after_what_came_before(server: Database, case: str) -> None:
    """Pitfalls "STATEMENT or MIXED format", "binlog_row_image other than FULL" (MariaDB's FULL_NODUP too), "Column
    names come from the TABLE_MAP's metadata": sessions may set them, whatever preflight found."""
    error, statements, advice = STOPS[case]
    begin = executed(server)
    run(server, "INSERT INTO t VALUES (1, 'v', '{\"a\": 1, \"b\": 2}')", *statements, database="streams")
    run(server, "INSERT INTO t (id) VALUES (99)", database="streams")
    given: list[Item] = []
    with pytest.raises(error) as caught:
        given.extend(items(server, begin, executed(server)))
    assert advice in str(caught.value)
    assert "rds_heartbeat" not in str(caught.value), "no value is told"
    assert "binlog.0" in str(caught.value)
    assert shape(given)[:2] == ["c", "Commit"]
    assert all(row["id"] != 99 for _, row in rows(given))  # type: ignore[index]


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "REAL"])
def test_a_float_in_the_primary_key_is_refused(server: Database, kind: str) -> None:
    run(server, f"CREATE TABLE f (a int, b {kind}, v {kind}, primary key (a, b))", database="streams")
    [finding] = [found for found in found_of(pipeline(server, include="streams.*")) if found.name == "key"]
    assert finding.level == "error"
    assert "streams.f has the column b" in finding.what
    begin = executed(server)
    run(server, "INSERT INTO t (id) VALUES (1)", "INSERT INTO f VALUES (1, 0.1, 0.1)", database="streams")
    given: list[Item] = []
    with pytest.raises(UnsupportedTypeError, match=r"column b of streams\.f.*primary key.*Exclude the table"):
        given.extend(items(server, begin, executed(server)))
    assert shape(given) == ["c", "Commit"]
    run(server, "DROP TABLE f", database="streams")
    assert [found.name for found in found_of(pipeline(server, include="streams.*"))] == []


@pytest.mark.lacks("mariadb", "each of its transactions has a GTID")
def test_an_anonymous_transaction_is_refused_with_the_reason(another: Another) -> None:
    server = another(options=["gtid_mode=ON_PERMISSIVE"])
    run(server, "CREATE DATABASE a", "SET GLOBAL gtid_mode = OFF_PERMISSIVE", "CREATE DATABASE b")
    run(server, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON", "CREATE DATABASE c")
    with pytest.raises(UnsupportedTransactionError, match="gtid_mode"):
        list(items(server, nothing(server), executed(server)))


@pytest.mark.lacks("mysql80", "with GTIDs, CREATE TABLE ... SELECT came with 8.0.21")
def test_a_table_of_others_may_be_made_with_rows_in_it_by_a_statement(server: Database) -> None:
    begin = executed(server)
    copy = "CREATE TABLE n (id int primary key) SELECT 50 AS id"
    run(server, "SET binlog_format = STATEMENT", copy, "DROP TABLE n", database="streams")
    run(server, "INSERT INTO t (id) VALUES (99)", database="streams")
    found = list(items(server, begin, executed(server), lambda db, table: table == "t"))
    assert shape(found) == ["Ddl", "Commit", "Ddl", "Commit", "c", "Commit"]
