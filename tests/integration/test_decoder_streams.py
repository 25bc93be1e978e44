"""What a real server's transactions look like: compressed, with DDL and savepoints, filtered, tagged, read again."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from stack.database import Database
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import chunks, executed, items, recorded, rows, run, shape

pytestmark = pytest.mark.usefixtures("streams")


@pytest.mark.lacks("mysql80", "binlog_transaction_compression came with 8.0.20")
@pytest.mark.lacks("mariadb", "it compresses single events: log_bin_compress, below")
def test_a_compressed_transaction_is_the_same_as_a_plain_one(server: Database) -> None:
    """Pitfall "Compressed transactions": `binlog_transaction_compression`, which a session can switch on by itself."""
    statements = [
        "BEGIN",
        "INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET v = repeat('z', 100) WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
        "COMMIT",
        "DELETE FROM t",
    ]
    with recorded(server) as plain:
        run(server, *statements, database="streams")
    with recorded(server) as compressed:
        run(server, "SET binlog_transaction_compression = ON", *statements, database="streams")
    assert rows(compressed) == rows(plain)
    assert shape(compressed) == shape(plain) == ["c", "u", "d", "Commit", "d", "Commit"]
    assert [i.ordinal for i in compressed if isinstance(i, RowsBatch)] == [0, 1, 2, 0]
    commits = [item for item in compressed if isinstance(item, Commit)]
    assert all(one.pos > one.tx_pos for one in commits)
    batches = [item for item in compressed if isinstance(item, RowsBatch)]
    assert all(one.tx_pos < one.pos < commits[-1].pos for one in batches)


def test_savepoints_and_rollbacks_leave_committed_rows_only(server: Database) -> None:
    with recorded(server) as found:
        run(
            server,
            "BEGIN", "INSERT INTO t (id) VALUES (1)", "SAVEPOINT s", "INSERT INTO t (id) VALUES (2)",
            "ROLLBACK TO s", "INSERT INTO t (id) VALUES (3)", "COMMIT",
            "BEGIN", "INSERT INTO t (id) VALUES (4)", "ROLLBACK",
            database="streams",
        )  # fmt: skip
    assert [row["id"] for _, row in rows(found)] == [1, 3]  # type: ignore[index]
    assert shape(found) == ["c", "c", "Commit"]


def test_ddl_is_given_with_its_commit(server: Database) -> None:
    with recorded(server) as found:
        run(
            server,
            "CREATE TABLE d (id int primary key)", "INSERT INTO d VALUES (1)",
            "/* hi */ ALTER TABLE d ADD COLUMN é int",
            "INSERT INTO d VALUES (2, 3)", "DROP TABLE d", database="streams",
        )  # fmt: skip
    assert shape(found) == ["Ddl", "Commit", "c", "Commit", "Ddl", "Commit", "c", "Commit", "Ddl", "Commit"]
    ddl = [item for item in found if isinstance(item, Ddl)]
    assert ddl[1].statement == "/* hi */ ALTER TABLE d ADD COLUMN é int"
    assert ddl[1].db == "streams"
    assert rows(found) == [("c", {"id": 1}), ("c", {"id": 2, "é": 3})]


@pytest.mark.lacks("mysql80", "with GTIDs, CREATE TABLE ... SELECT came with 8.0.21")
def test_a_table_made_from_rows_has_them_in_the_transaction_of_its_ddl(server: Database) -> None:
    run(server, "INSERT INTO t (id) VALUES (1), (2)", database="streams")
    with recorded(server) as found:
        run(server, "CREATE TABLE e (primary key (id)) SELECT id FROM t", database="streams")
    assert shape(found) == ["Ddl", "c", "Commit"]
    assert rows(found) == [("c", {"id": 1}), ("c", {"id": 2})]


def test_a_table_that_is_filtered_out_is_counted_but_not_read(server: Database) -> None:
    run(server, "CREATE TABLE streams.shy (id int primary key, g point)")
    begin = executed(server)
    statements = ["BEGIN", "INSERT INTO shy VALUES (1, point(1,2))", "INSERT INTO t (id) VALUES (7)", "COMMIT"]
    run(server, *statements, "INSERT INTO shy VALUES (2, NULL)", "DROP TABLE shy", database="streams")
    found = list(items(server, begin, executed(server), wanted=lambda db, table: table == "t"))
    assert shape(found) == ["c", "Commit", "Commit", "Ddl", "Commit"]
    assert isinstance(found[0], RowsBatch)
    assert found[0].ordinal == 1


def test_positions_and_order_are_the_same_on_every_replay(server: Database) -> None:
    """Pitfall "Order by seq": numbers that are the same on every replay."""
    begin = executed(server)
    run(server, "INSERT INTO t (id) VALUES (1), (2)", "FLUSH BINARY LOGS", "DELETE FROM t", database="streams")
    middle = executed(server)
    run(server, "INSERT INTO t (id) VALUES (3)", database="streams")
    end = executed(server)

    def places(found: Iterator[Item]) -> list[tuple[object, ...]]:
        return [
            (i.gtid, i.file_number, i.tx_pos, i.ordinal, i.pos) if isinstance(i, RowsBatch) else (i.gtid, i.file, i.pos)
            for i in found
        ]

    whole = places(items(server, begin, end))
    assert places(items(server, begin, end)) == whole
    assert places(items(server, middle, end)) == whole[-2:]
    assert whole[0][1] != whole[-2][1], "the binlog was rotated between"


@pytest.mark.lacks("mysql80", "tags came with 8.3")
@pytest.mark.lacks("mariadb", "its GTIDs have no tags")
def test_tagged_gtids(server: Database) -> None:
    """Pitfall "GTID set": `uuid:tag:n`, event 0x2A."""
    begin = executed(server)
    run(
        server, "SET gtid_next = 'automatic:headrace'", "INSERT INTO t (id) VALUES (1)",
        "SET gtid_next = 'automatic:a_2'",
        "INSERT INTO t (id) VALUES (2)", "SET gtid_next = 'automatic'", database="streams",
    )  # fmt: skip
    middle = executed(server)
    run(server, "INSERT INTO t (id) VALUES (3)", database="streams")
    found = list(items(server, begin, executed(server)))
    gtids = [item.gtid for item in found if isinstance(item, Commit)]
    assert [gtid.split(":")[1:-1] for gtid in gtids] == [["headrace"], ["a_2"], []]
    again = list(items(server, middle, executed(server)))
    assert rows(again) == [("c", {"id": 3, "v": None, "doc": None})], "a set with tags is a start, too"


@pytest.mark.lacks("mariadb", "its events tell whole seconds")
def test_commit_times_are_the_servers(server: Database) -> None:
    before = time.time_ns() // 1000
    with recorded(server) as found:
        run(server, "INSERT INTO t (id) VALUES (1)", database="streams")
    after = time.time_ns() // 1000
    assert all(before <= item.ts_us <= after for item in found if isinstance(item, RowsBatch | Commit))


@pytest.mark.parametrize("wanted", [True, False])
def test_rows_carry_their_statement_where_that_is_asked_for(server: Database, wanted: bool) -> None:
    """MySQL tells it where the session has it logged, MariaDB where the reader asks."""
    names = {"mysql": "binlog_rows_query_log_events", "mariadb": "binlog_annotate_row_events"}
    log = f"SET SESSION {names[server.flavor]} = "
    run(server, "CREATE TABLE log (id int primary key)", database="streams")
    trigger = "CREATE TRIGGER note AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)"
    begin = executed(server)
    insert, long = "INSERT INTO t (id, v) VALUES (1, 'a\\'é'), (2, '100%')", f"DELETE FROM t /* {'x' * 9000} */"
    run(server, trigger, log + "ON", insert, long, log + "OFF", "INSERT INTO t (id) VALUES (9)", database="streams")
    found = list(items(server, begin, executed(server), statements=wanted))
    batches = [item for item in found if isinstance(item, RowsBatch)]
    told = [batch.query and json.loads(batch.query) for batch in batches]
    made = {(batch.table.table, batch.op) for batch, text in zip(batches, told, strict=True) if text == insert}
    if not wanted:
        assert set(told) == {None}
    else:
        assert made == {("t", "c"), ("log", "c")}
        [cut] = [text for batch, text in zip(batches, told, strict=True) if batch.op == "d"]
        assert cut == f"{long[:4096]}... ({len(long)} bytes)"
        assert told[-2:] == [None, None], "a statement that was not logged"


@pytest.mark.lacks("mysql80", "binlog_transaction_compression came with 8.0.20")
@pytest.mark.lacks("mariadb", "it compresses single events")
def test_a_compressed_transaction_is_read_in_bounded_memory(server: Database) -> None:
    """Of 18 MB of rows, in an event of 1.5 MB, never more than a few are there at once."""
    numbers = "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 20000) SELECT n,"
    text = "concat(sha2(n, 512), sha2(n + 7, 512), repeat('abcdefgh', 90))"
    run(server, "CREATE TABLE streams.large (id int primary key, v varchar(4000))")
    begin = executed(server)
    insert = f"INSERT INTO streams.large {numbers} {text} FROM q"
    run(server, "SET cte_max_recursion_depth = 20000", "SET binlog_transaction_compression = ON", insert)
    dump, rows_read, size = chunks(server, begin, executed(server)), 0, 0
    decoder = BinlogDecoder(lambda db, table: True)
    tracemalloc.start()
    for chunk in dump:
        for item in decoder.feed(chunk):
            if isinstance(item, RowsBatch):
                rows_read += len(item.rows)
                size += sum(map(len, item.rows))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (rows_read, size > 17_000_000) == (20_000, True)
    assert most < 2 * sum(map(len, dump)) + 5_000_000
