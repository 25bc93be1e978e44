"""Commit times that a session sets, as `mysqlbinlog` does when it repeats a binlog: the order goes by places."""

from __future__ import annotations

import json

from stack.database import Database
from streamer.protocol.model import RowsBatch
from tests.integration.decoding import recorded, run

LONG_AGO = 1_700_000_000
AS_OF = {
    "mysql": f"SET SESSION original_commit_timestamp = {LONG_AGO * 1_000_000}",
    "mariadb": f"SET TIMESTAMP = {LONG_AGO}",
}


def test_a_commit_time_may_be_of_long_ago_and_its_change_stands_behind_those_before_it(
    server: Database, streams: None
) -> None:
    with recorded(server) as found:
        run(server, "INSERT INTO t (id) VALUES (1)", database="streams")
        run(server, AS_OF[server.flavor], "INSERT INTO t (id) VALUES (2)", database="streams")
        run(server, "INSERT INTO t (id) VALUES (3)", database="streams")
    sent = [item for item in found if isinstance(item, RowsBatch)]
    assert [json.loads(bytes(row))["id"] for item in sent for row in item.rows] == [1, 2, 3]
    places = [(item.file, item.tx_pos) for item in sent]
    assert places == sorted(set(places))
    first, set_back, last = (item.ts_ms for item in sent)
    assert set_back == LONG_AGO * 1000 < first <= last
