"""What the lake knows a change by when it comes again from another server is the same in that server's binlog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contract.gtid import GtidSet
from stack.database import Database
from streamer.protocol.model import RowsBatch
from tests.integration import failover
from tests.integration.decoding import executed, items, run

MANY = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900)"


def test_a_change_has_one_identity_on_two_servers(server: Database, another: Callable[..., Database]) -> None:
    """GTID, place in the transaction, and texts; also of long transactions, and of XA."""
    options = failover.options(server.flavor)
    first, second = another(options, server_id=11), another(options, server_id=12)
    failover.replicate(first, second)
    (second.home / "headrace.password").write_text(first.password)
    run(second, "SET sql_log_bin = 0", f"ALTER USER headrace IDENTIFIED BY '{first.password}'")
    begin = executed(first)
    run(first, "CREATE DATABASE one", "CREATE TABLE one.t (id int PRIMARY KEY, f float, v varchar(300))")
    with first.connect(database="one", autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO t {MANY} SELECT n, n / 7, repeat('x', 200) FROM s")  # many events
        cursor.execute("UPDATE t SET v = concat(v, 'é') WHERE id % 3 = 0")
        cursor.execute("DELETE FROM t WHERE id < 10")
        connection.commit()
    xa = ("XA START 'a'", "UPDATE one.t SET f = 0 WHERE id = 20", "XA END 'a'", "XA PREPARE 'a'", "XA COMMIT 'a'")
    run(first, *xa, "INSERT INTO one.t VALUES (1, 0, '')")
    failover.caught_up(second, executed(first))
    here, there = (identities(one, begin, executed(first)) for one in (first, second))
    assert len(here) == 900 + 2 * 300 + 9 + 2 + 1  # an update has two texts
    assert here == there


def identities(server: Database, begin: GtidSet, end: GtidSet) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in items(server, begin, end):
        if isinstance(batch, RowsBatch):
            found += [(batch.gtid, batch.ordinal, n, batch.op, row) for n, row in enumerate(batch.rows)]
    return found
