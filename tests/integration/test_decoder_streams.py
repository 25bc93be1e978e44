"""What a real server writes besides plain rows: compressed transactions, events beyond 16 MB, DDL, savepoints, tags,
MyISAM, wide tables, minimal settings; and how the connection ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from contract.gtid import GtidSet
from stack.mysql import MySQL
from streamer.connection import BinlogConnection
from streamer.errors import (
    AccessDeniedError,
    ConnectionLostError,
    HeadraceError,
    MissingMetadataError,
    PurgedError,
    ServerIdInUseError,
    UnreachableError,
    UnsupportedTransactionError,
)
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import executed, items, recorded, run, source

MySQLServer = Callable[..., MySQL]


@pytest.fixture(scope="module", autouse=True)
def _database(mysql: MySQL) -> Iterator[None]:
    run(mysql, "DROP DATABASE IF EXISTS streams", "CREATE DATABASE streams")
    run(mysql, "CREATE TABLE t (id int primary key, v varchar(100), doc json)", database="streams")
    yield
    run(mysql, "DROP DATABASE streams")


@pytest.fixture(autouse=True)
def _empty(_database: None, mysql: MySQL) -> None:
    run(mysql, "DELETE FROM streams.t")


def rows(found: list[Item]) -> list[tuple[str, object]]:
    return [(item.op, json.loads(row)) for item in found if isinstance(item, RowsBatch) for row in item.rows]


def shape(found: list[Item]) -> list[str]:
    return [item.op if isinstance(item, RowsBatch) else type(item).__name__ for item in found]


def test_a_compressed_transaction_is_the_same_as_a_plain_one(mysql: MySQL) -> None:
    statements = [
        "BEGIN",
        "INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET v = repeat('z', 100) WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
        "COMMIT",
        "DELETE FROM t",
    ]
    with recorded(mysql) as plain:
        run(mysql, *statements, database="streams")
    with recorded(mysql) as compressed:
        run(mysql, "SET binlog_transaction_compression = ON", *statements, database="streams")
    assert rows(compressed) == rows(plain)
    assert shape(compressed) == shape(plain) == ["c", "u", "d", "Commit", "d", "Commit"]
    assert [i.ordinal for i in compressed if isinstance(i, RowsBatch)] == [0, 1, 2, 0]
    commits = [item for item in compressed if isinstance(item, Commit)]
    assert all(one.pos > one.tx_pos for one in commits)
    batches = [item for item in compressed if isinstance(item, RowsBatch)]
    assert all(one.tx_pos < one.pos < commits[-1].pos for one in batches)


@pytest.mark.parametrize("compression", ["OFF", "ON"])
def test_rows_events_beyond_16_megabytes(mysql: MySQL, compression: str) -> None:
    run(mysql, "CREATE TABLE IF NOT EXISTS streams.big (id int primary key, v longtext)")
    with recorded(mysql) as found:
        run(
            mysql,
            f"SET binlog_transaction_compression = {compression}",
            "BEGIN",
            "INSERT INTO big VALUES (1, repeat('ab', 8388592)), (2, repeat('c', 20000000))",
            "INSERT INTO big VALUES (3, 'small')",
            "COMMIT",
            "DELETE FROM big WHERE id < 3",
            "DROP TABLE big",
            database="streams",
        )
    sizes = [(op, len(row["v"])) for op, row in rows(found)]  # type: ignore[index]
    expected = [("c", 16777184), ("c", 20000000), ("c", 5), ("d", 16777184), ("d", 20000000)]
    assert sizes == expected


def test_savepoints_and_rollbacks_leave_committed_rows_only(mysql: MySQL) -> None:
    with recorded(mysql) as found:
        run(
            mysql,
            "BEGIN", "INSERT INTO t (id) VALUES (1)", "SAVEPOINT s", "INSERT INTO t (id) VALUES (2)",
            "ROLLBACK TO s", "INSERT INTO t (id) VALUES (3)", "COMMIT",
            "BEGIN", "INSERT INTO t (id) VALUES (4)", "ROLLBACK",
            database="streams",
        )  # fmt: skip
    assert [row["id"] for _, row in rows(found)] == [1, 3]  # type: ignore[index]
    assert shape(found) == ["c", "c", "Commit"]


def test_ddl_is_given_with_its_commit(mysql: MySQL) -> None:
    with recorded(mysql) as found:
        run(
            mysql,
            "CREATE TABLE d (id int primary key)", "INSERT INTO d VALUES (1)",
            "/* hi */ ALTER TABLE d ADD COLUMN é int",
            "INSERT INTO d VALUES (2, 3)", "CREATE TABLE e (primary key (id)) SELECT * FROM d", "DROP TABLE d, e",
            database="streams",
        )  # fmt: skip
    assert shape(found) == [
        "Ddl", "Commit", "c", "Commit", "Ddl", "Commit", "c", "Commit", "Ddl", "c", "Commit", "Ddl", "Commit",
    ]  # fmt: skip
    ddl = [item for item in found if isinstance(item, Ddl)]
    assert ddl[1].statement == "/* hi */ ALTER TABLE d ADD COLUMN é int"
    assert ddl[1].db == "streams"
    assert rows(found)[1:] == [("c", {"id": 2, "é": 3}), ("c", {"id": 1, "é": None}), ("c", {"id": 2, "é": 3})]


def test_a_table_that_is_filtered_out_is_counted_but_not_read(mysql: MySQL) -> None:
    run(mysql, "CREATE TABLE streams.shy (id int primary key, g point)")
    begin = executed(mysql)
    statements = ["BEGIN", "INSERT INTO shy VALUES (1, point(1,2))", "INSERT INTO t (id) VALUES (7)", "COMMIT"]
    run(mysql, *statements, "INSERT INTO shy VALUES (2, NULL)", "DROP TABLE shy", database="streams")
    found = list(items(mysql, begin, executed(mysql), wanted=lambda db, table: table == "t"))
    assert shape(found) == ["c", "Commit", "Commit", "Ddl", "Commit"]
    assert isinstance(found[0], RowsBatch)
    assert found[0].ordinal == 1


def test_positions_and_order_are_the_same_on_every_replay(mysql: MySQL) -> None:
    begin = executed(mysql)
    run(mysql, "INSERT INTO t (id) VALUES (1), (2)", "FLUSH BINARY LOGS", "DELETE FROM t", database="streams")
    middle = executed(mysql)
    run(mysql, "INSERT INTO t (id) VALUES (3)", database="streams")
    end = executed(mysql)

    def places(found: Iterator[Item]) -> list[tuple[object, ...]]:
        return [
            (i.gtid, i.file_number, i.tx_pos, i.ordinal, i.pos) if isinstance(i, RowsBatch) else (i.gtid, i.file, i.pos)
            for i in found
        ]

    whole = places(items(mysql, begin, end))
    assert places(items(mysql, begin, end)) == whole
    assert places(items(mysql, middle, end)) == whole[-2:]
    assert whole[0][1] != whole[-2][1], "the binlog was rotated between"


def test_tagged_gtids(mysql: MySQL) -> None:
    begin = executed(mysql)
    run(
        mysql, "SET gtid_next = 'automatic:headrace'", "INSERT INTO t (id) VALUES (1)",
        "SET gtid_next = 'automatic:a_2'",
        "INSERT INTO t (id) VALUES (2)", "SET gtid_next = 'automatic'", database="streams",
    )  # fmt: skip
    middle = executed(mysql)
    run(mysql, "INSERT INTO t (id) VALUES (3)", database="streams")
    found = list(items(mysql, begin, executed(mysql)))
    gtids = [item.gtid for item in found if isinstance(item, Commit)]
    assert [gtid.split(":")[1:-1] for gtid in gtids] == [["headrace"], ["a_2"], []]
    again = list(items(mysql, middle, executed(mysql)))
    assert rows(again) == [("c", {"id": 3, "v": None, "doc": None})], "a set with tags is a start, too"


def test_commit_times_are_the_servers(mysql: MySQL) -> None:
    before = time.time_ns() // 1000
    with recorded(mysql) as found:
        run(mysql, "INSERT INTO t (id) VALUES (1)", database="streams")
    after = time.time_ns() // 1000
    assert all(before <= item.ts_us <= after for item in found if isinstance(item, RowsBatch | Commit))


def test_a_table_without_transactions_and_one_without_key(mysql: MySQL) -> None:
    with recorded(mysql) as found:
        run(
            mysql, "CREATE TABLE m (a int, b text) ENGINE=MyISAM", "INSERT INTO m VALUES (1, 'x'), (NULL, NULL)",
            "UPDATE m SET a = 2 WHERE a = 1", "DROP TABLE m", database="streams",
        )  # fmt: skip
    assert rows(found) == [
        ("c", {"a": 1, "b": "x"}), ("c", {"a": None, "b": None}), ("u", {"a": 1, "b": "x"}), ("u", {"a": 2, "b": "x"}),
    ]  # fmt: skip
    assert [item.keys for item in found if isinstance(item, RowsBatch)] == [[], []]
    assert [item.xid for item in found if isinstance(item, Commit)] == [None] * 4


def test_keys_come_in_key_order_with_hidden_and_generated_columns(mysql: MySQL) -> None:
    with recorded(mysql) as found:
        run(
            mysql,
            'CREATE TABLE k (a int, `b``"%s` varchar(9), c int invisible default 5, d int as (a * 2) virtual, '
            'e int as (a * 3) stored, primary key (`b``"%s`, a), key f ((a + 1)))',
            "INSERT INTO k (a, `b``\"%s`) VALUES (1, 'x\"y')",
            "SET sql_generate_invisible_primary_key = ON",
            "CREATE TABLE g (v int)",
            "INSERT INTO g VALUES (8)",
            "DROP TABLE k, g",
            database="streams",
        )
    batches = [item for item in found if isinstance(item, RowsBatch)]
    assert json.loads(batches[0].rows[0]) == {"a": 1, 'b`"%s': 'x"y', "c": 5, "d": 2, "e": 3}
    assert batches[0].keys == [b'{"b`\\"%s":"x\\"y","a":1}']
    assert batches[1].keys == [b'{"my_row_id":1}']


def test_four_hundred_columns_with_many_combinations_of_null(mysql: MySQL) -> None:
    names = [f"c{n}" for n in range(400)]
    kinds = ["int", "text", "tinyint", "datetime", "smallint"]
    columns = ", ".join(f"{name} {kinds[n % 5]}" for n, name in enumerate(names))
    chosen = [names[n : n + 5] for n in range(300)]
    inserts = [
        f"INSERT INTO w (id, {', '.join(some)}) VALUES ({n}{', 1' * len(some)})" for n, some in enumerate(chosen)
    ]
    inserts = [text.replace(", 1", ", '2026-01-01'") for text in inserts]
    with recorded(mysql) as found:
        run(
            mysql, f"CREATE TABLE w (id int primary key, {columns})", "SET sql_mode = ''", *inserts, "DROP TABLE w",
            database="streams",
        )  # fmt: skip
    decoded = [row for _, row in rows(found)]
    assert [[name for name, value in row.items() if value is not None] for row in decoded] == [  # type: ignore[attr-defined]
        ["id", *some] for some in chosen
    ]


STOPS: dict[str, tuple[type[HeadraceError], list[str], str]] = {
    "statement": (
        UnsupportedTransactionError,
        ["SET binlog_format = STATEMENT", "INSERT INTO t (id) VALUES (50)"],
        "binlog_format = 'ROW'",
    ),
    "image": (
        MissingMetadataError,
        ["SET binlog_row_image = MINIMAL", "UPDATE t SET v = 'changed'"],
        "binlog_row_image = 'FULL'",
    ),
    "partial JSON": (
        UnsupportedTransactionError,
        ["SET binlog_row_value_options = PARTIAL_JSON", "UPDATE t SET doc = json_set(doc, '$.a', 2)"],
        "binlog_row_value_options = ''",
    ),
    "XA": (
        UnsupportedTransactionError,
        ["XA START 'x'", "INSERT INTO t (id) VALUES (51)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"],
        "XA transactions are not read yet",
    ),
    "metadata": (
        MissingMetadataError,
        ["SET GLOBAL binlog_row_metadata = MINIMAL", "CREATE TABLE n (id int)", "INSERT INTO n VALUES (1)",
         "SET GLOBAL binlog_row_metadata = FULL", "DROP TABLE n"],
        "binlog_row_metadata = 'FULL'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STOPS)
def test_what_could_lose_a_change_stops_after_what_came_before(mysql: MySQL, case: str) -> None:
    error, statements, advice = STOPS[case]
    begin = executed(mysql)
    run(mysql, "INSERT INTO t VALUES (1, 'v', '{\"a\": 1, \"b\": 2}')", *statements, database="streams")
    run(mysql, "INSERT INTO t (id) VALUES (99)", database="streams")
    given: list[Item] = []
    with pytest.raises(error) as caught:
        given.extend(items(mysql, begin, executed(mysql)))
    assert advice in str(caught.value)
    assert "binlog.0" in str(caught.value)
    assert shape(given)[:2] == ["c", "Commit"]
    assert all(row["id"] != 99 for _, row in rows(given))  # type: ignore[index]


def test_an_anonymous_transaction_is_refused_with_the_reason(mysql_server: MySQLServer) -> None:
    server = mysql_server(options=["gtid_mode=ON_PERMISSIVE"])
    run(server, "CREATE DATABASE a", "SET GLOBAL gtid_mode = OFF_PERMISSIVE", "CREATE DATABASE b")
    run(server, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON", "CREATE DATABASE c")
    with pytest.raises(UnsupportedTransactionError, match="gtid_mode"):
        list(items(server, GtidSet(), executed(server)))


def test_a_purged_start_says_what_to_do(mysql_server: MySQLServer) -> None:
    server = mysql_server()
    run(server, "CREATE DATABASE a", "FLUSH BINARY LOGS", "CREATE DATABASE b", "FLUSH BINARY LOGS")
    run(server, "PURGE BINARY LOGS TO 'binlog.000003'")
    with pytest.raises(PurgedError, match="snapshot"):
        list(items(server, GtidSet(), executed(server)))


def test_the_second_of_two_streamers_with_one_id_ends_the_first(mysql: MySQL) -> None:
    first = items(mysql, executed(mysql), GtidSet.parse(f"{'0' * 8}-0000-0000-0000-{'0' * 12}:1"), server_id=4720)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            list(first)
        except HeadraceError as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    second = _dumping(mysql, 4720)
    waiting.join(10)
    second.close()
    assert [type(error) for error in ended] == [ServerIdInUseError]
    assert "4720" in str(ended[0])


def _dumping(server: MySQL, server_id: int) -> BinlogConnection:
    """A second dump that has begun."""
    time.sleep(1)
    connection = BinlogConnection(source(server, server_id), executed(server))
    threading.Thread(target=lambda: list(connection.chunks()), daemon=True).start()
    time.sleep(1)
    return connection


def test_close_ends_the_chunks_without_an_error(mysql: MySQL) -> None:
    connection = BinlogConnection(source(mysql, 4721), executed(mysql))
    received: list[bytes] = []
    reading = threading.Thread(target=lambda: received.extend(connection.chunks()))
    reading.start()
    time.sleep(1.5)
    connection.close()
    reading.join(5)
    assert not reading.is_alive()
    assert received, "the start of the file at least"


def test_what_comes_before_a_close_is_whole_however_much_waits_behind(mysql: MySQL) -> None:
    begin = executed(mysql)
    run(mysql, "CREATE TABLE streams.much (id int primary key, v longtext)")
    run(mysql, *(f"INSERT INTO much VALUES ({n}, repeat('x', 500000))" for n in range(40)), database="streams")
    connection = BinlogConnection(source(mysql, 4722), begin)
    decoder = BinlogDecoder(lambda db, table: True)
    for number, chunk in enumerate(connection.chunks()):
        assert all(item.gtid for item in decoder.feed(chunk))
        if number == 5:
            connection.close()
    assert number == 5, "nothing comes behind it: the kernel's rest may lack bytes"


def test_a_server_that_goes_away_is_a_lost_connection(mysql_server: MySQLServer) -> None:
    server = mysql_server()
    threading.Timer(2, server.kill).start()
    with pytest.raises(ConnectionLostError):
        list(items(server, executed(server), GtidSet.parse(f"{'0' * 8}-0000-0000-0000-{'0' * 12}:1")))
    with pytest.raises(UnreachableError, match="Start the server"):
        list(BinlogConnection(source(server), GtidSet()).chunks())


def test_a_wrong_password_is_access_denied(mysql: MySQL) -> None:
    wrong = source(mysql).model_copy(update={"password": type(source(mysql).password)("no")})
    with pytest.raises(AccessDeniedError) as error:
        list(BinlogConnection(wrong, GtidSet()).chunks())
    assert mysql.password not in str(error.value)
