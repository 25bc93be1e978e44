"""What a server does seldom, and by which changes were lost elsewhere: incidents, LOAD DATA, checksums, images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import pymysql
import pytest

from stack.database import Database
from streamer.errors import ChecksumError, IncidentError, UnsupportedTransactionError
from streamer.protocol.model import Commit, Item, RowsBatch
from tests.integration.decoding import endless, executed, items, recorded, rows, run, shape

Another = Callable[..., Database]
STREAMS = pytest.mark.usefixtures("streams")
WRITTEN_IN_PART = 1705  # more than max_binlog_stmt_cache_size; of a table without transactions it is not taken back


def test_an_incident_stops_and_says_that_the_source_lost_events(another: Another) -> None:
    """Pitfall "INCIDENT_EVENT"."""
    server = another(["max_binlog_stmt_cache_size=4096", "binlog_stmt_cache_size=4096"])
    run(server, "CREATE DATABASE lost", "CREATE TABLE lost.m (id int primary key, v longtext) ENGINE=MyISAM")
    begin = executed(server)
    run(server, "INSERT INTO lost.m VALUES (1, 'a')")
    with pytest.raises(pymysql.MySQLError) as refused:
        run(server, "INSERT INTO lost.m SELECT 2, repeat('x', 60000) UNION ALL SELECT 3, repeat('y', 60000)")
    assert refused.value.args[0] == WRITTEN_IN_PART
    run(server, "DELETE FROM lost.m WHERE id = 1")
    given: list[Item] = []
    with pytest.raises(IncidentError, match=r"INCIDENT, binlog\.0.*lost events.*error log.*new snapshot"):
        given.extend(items(server, begin, executed(server)))
    assert shape(given) == ["c", "Commit"]


def test_a_flipped_bit_in_a_binlog_file_stops(another: Another) -> None:
    """Pitfall "Checksums": CRC32 is verified, and a mismatch stops. The server sends the file as it is."""
    server = another()
    run(server, "CREATE DATABASE flipped", "CREATE TABLE flipped.t (id int primary key, v varchar(50))")
    begin = executed(server)
    run(server, "INSERT INTO flipped.t VALUES (1, 'as it was')", "INSERT INTO flipped.t VALUES (2, 'to be flipped')")
    run(server, "INSERT INTO flipped.t VALUES (3, 'behind')", "FLUSH BINARY LOGS")
    [file] = [path for path in server.data.glob("binlog.0*") if b"to be flipped" in path.read_bytes()]
    file.write_bytes(file.read_bytes().replace(b"to be flipped", b"to be flopped"))
    given: list[Item] = []
    with pytest.raises(ChecksumError, match=rf"{file.name}.*CRC32 does not match.*mysqlbinlog"):
        given.extend(items(server, begin, executed(server)))
    assert [row["id"] for _, row in rows(given)] == [1]  # type: ignore[index]


@STREAMS
@pytest.mark.parametrize("first", ["CRC32", "NONE"])
def test_checksums_may_be_switched_while_the_stream_runs(server: Database, first: str) -> None:
    """Pitfall "Checksums": `binlog_checksum` from one to the other and back, in one dump."""
    other = {"CRC32": "NONE", "NONE": "CRC32"}[first]
    run(server, f"SET GLOBAL binlog_checksum = '{first}'")
    try:
        begin = executed(server)
        found = items(server, begin, endless(server), server_id=4723)
        for n, algorithm in enumerate([other, first, other]):
            run(server, f"INSERT INTO t (id) VALUES ({n})", database="streams")
            assert [row["id"] for _, row in rows(list(islice(found, 2)))] == [n]  # type: ignore[index]
            run(server, f"SET GLOBAL binlog_checksum = '{algorithm}'")
        run(server, "DELETE FROM t", database="streams")
        assert shape(until_commit(found)) == ["d", "Commit"]
    finally:
        run(server, "SET GLOBAL binlog_checksum = 'CRC32'")
    assert shape(list(items(server, begin, executed(server)))) == ["c", "Commit"] * 3 + ["d", "Commit"]


def until_commit(found: Iterator[Item]) -> list[Item]:
    given = [next(found)]
    while not isinstance(given[-1], Commit):
        given.append(next(found))
    return given


@STREAMS
def test_load_data_is_rows_or_stops(server: Database) -> None:
    """Pitfall "LOAD DATA": in row format its rows come as others; by a statement it stops."""
    path = server.home / "files" / "load_data.csv"
    path.write_text("7\tseven\n8\teight\n")
    load = f"LOAD DATA INFILE '{path}' INTO TABLE t (id, v)"
    with recorded(server) as found:
        run(server, load, database="streams")
    assert [row["v"] for _, row in rows(found)] == ["seven", "eight"]  # type: ignore[index]
    run(server, "DELETE FROM t", database="streams")
    begin = executed(server)
    run(server, "INSERT INTO t (id) VALUES (1)", "SET binlog_format = STATEMENT", load, database="streams")
    given: list[Item] = []
    with pytest.raises(
        UnsupportedTransactionError, match=r"LOAD DATA was logged as a statement.*binlog_format = 'ROW'"
    ):
        given.extend(items(server, begin, executed(server)))
    assert shape(given) == ["c", "Commit"]


@STREAMS
def test_a_managed_services_own_heartbeat_passes(server: Database) -> None:
    """Pitfall "STATEMENT or MIXED format": managed services' own heartbeats are allowed, into tables of mysql alone."""
    run(server, "CREATE TABLE mysql.ha_health_check (id int primary key, at bigint)")
    try:
        with recorded(server) as found:
            run(server, "SET binlog_format = STATEMENT", "INSERT INTO mysql.ha_health_check VALUES (1, 5)",
                "UPDATE mysql.ha_health_check SET at = 6 WHERE id = 1",
                "DELETE FROM mysql.ha_health_check")  # fmt: skip
            run(server, "INSERT INTO t (id) VALUES (1)", database="streams")
        assert shape(found) == ["Commit", "Commit", "Commit", "c", "Commit"]
    finally:
        run(server, "DROP TABLE mysql.ha_health_check")


@STREAMS
def test_a_key_that_is_updated_tells_of_both_keys(server: Database) -> None:
    """Pitfall "Primary key update": its record has the old key and the new one; those of other columns have one."""
    with recorded(server) as found:
        run(server, "INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b')", "UPDATE t SET v = 'c'",
            "UPDATE t SET id = id + 10 WHERE id = 2", database="streams")  # fmt: skip
    keys = [item.keys for item in found if isinstance(item, RowsBatch)]
    assert keys[2] == [b'{"id":2}', b'{"id":12}'], keys
