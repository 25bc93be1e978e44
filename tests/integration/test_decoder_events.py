"""Events that a server writes only where it is set so, or when nothing happens."""

from __future__ import annotations

import time

import pytest

from stack.database import Database
from streamer.connection import BinlogConnection
from streamer.protocol import events as ev
from streamer.protocol.packets import Packets
from streamer.source import facts
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import chunks, executed, recorded, rows, run, shape, source

pytestmark = pytest.mark.usefixtures("streams")
CHANGES = ["INSERT INTO t (id, v) VALUES (1, 'a'), (2, NULL)", "UPDATE t SET v = 'ü', doc = '[1]'", "DELETE FROM t"]


def kinds(dump: list[bytes]) -> set[int]:
    reading = Packets()
    return {header[ev.TYPE] for chunk in dump for _, _, _, header in reading.feed(chunk)}


@pytest.mark.lacks("mysql", "8.3 took log_bin_use_v1_row_events away")
@pytest.mark.lacks("mariadb", "it writes no others")
def test_rows_events_of_the_first_version(server: Database) -> None:
    with recorded(server) as newer:
        run(server, *CHANGES, database="streams")
    begin = executed(server)
    run(server, "SET GLOBAL log_bin_use_v1_row_events = ON")
    try:
        with recorded(server) as older:
            run(server, *CHANGES, database="streams")
    finally:
        run(server, "SET GLOBAL log_bin_use_v1_row_events = OFF")
    written = kinds(chunks(server, begin, executed(server)))
    assert {ev.WRITE_ROWS_V1, ev.UPDATE_ROWS_V1, ev.DELETE_ROWS_V1} <= written
    assert written.isdisjoint({ev.WRITE_ROWS, ev.UPDATE_ROWS, ev.DELETE_ROWS})
    assert rows(older) == rows(newer)
    assert shape(older) == shape(newer) == ["c", "Commit", "u", "Commit", "d", "Commit"]


def test_heartbeats_tell_the_place_of_an_idle_server(server: Database) -> None:
    """MySQL 9.7 writes the second version, the others the first; 8.0 one more on its way through what is known."""
    run(server, "FLUSH BINARY LOGS", "INSERT INTO t (id) VALUES (1)", database="streams")
    expected = ev.HEARTBEAT_V2 if server.name == "mysql" else ev.HEARTBEAT
    connection = BinlogConnection(source(server, heartbeat_seconds=0.5), executed(server))
    here, until = facts(source(server)), time.monotonic() + 10
    decoder, seen = BinlogDecoder(lambda db, table: True), Packets()
    found: set[int] = set()
    for chunk in connection.chunks():
        assert list(decoder.feed(chunk)) == []
        found |= {header[ev.TYPE] for _, _, _, header in seen.feed(chunk)}
        if expected in found and (decoder.pos == here.pos or time.monotonic() > until):
            connection.close()
    assert found.isdisjoint({ev.HEARTBEAT, ev.HEARTBEAT_V2} - {expected})
    assert (decoder.file, decoder.pos) == (here.file, here.pos)


def test_a_new_file_tells_the_transactions_before_it(server: Database) -> None:
    """MySQL's PREVIOUS_GTIDS, MariaDB's GTID_LIST: they are passed by, and nothing is lost over them."""
    begin = executed(server)
    with recorded(server) as found:
        run(
            server,
            "INSERT INTO t (id) VALUES (1)",
            "FLUSH BINARY LOGS",
            "INSERT INTO t (id) VALUES (2)",
            database="streams",
        )
    expected = ev.GTID_LIST if server.flavor == "mariadb" else ev.PREVIOUS_GTIDS
    assert expected in kinds(chunks(server, begin, executed(server)))
    assert [row["id"] for _, row in rows(found)] == [1, 2]  # type: ignore[index]


@pytest.mark.lacks("mariadb", "it marks no event as one that may be ignored")
def test_an_event_that_says_that_it_may_be_ignored_is(server: Database) -> None:
    """A server writes one kind alone with the flag: the statement before its rows."""
    begin = executed(server)
    with recorded(server) as found:
        run(server, "SET binlog_rows_query_log_events = ON", "INSERT INTO t (id) VALUES (1), (2)", database="streams")
    reading = Packets()
    flags = {
        header[ev.TYPE]: header[ev.FLAGS]
        for chunk in chunks(server, begin, executed(server))
        for _, _, _, header in reading.feed(chunk)
    }
    assert flags[ev.ROWS_QUERY] & ev.MAY_BE_IGNORED
    assert not flags[ev.WRITE_ROWS] & ev.MAY_BE_IGNORED
    assert [row["id"] for _, row in rows(found)] == [1, 2]  # type: ignore[index]
