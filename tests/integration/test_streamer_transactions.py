"""Transactions that end late, from the server to Kafka, over a kill of the streamer."""

from __future__ import annotations

from contract import gtids
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import executed, run
from tests.integration.streaming import Make, insert
from tests.integration.topic_records import once, records


def test_an_xa_transaction_that_is_open_over_a_kill(make: Make, server: Database, kafka: Kafka) -> None:
    """pitfalls: XA rows count from their XA COMMIT, and the checkpoint stays before an open XA."""
    name = f"xa{server.name}"
    streamer = make(name, mysql=server).started()
    before = executed(server)
    for xid, row in (("kept", 1), ("undone", 2)):
        values = f"INSERT INTO t VALUES ({row}, 0, '{xid}')"
        run(server, f"XA START '{xid}'", values, f"XA END '{xid}'", f"XA PREPARE '{xid}'", database=name)
    insert(server, name, 10, 5)
    status = streamer.wait_for(lambda status: status["checkpoint"]["events"] == 5)
    checkpoint = gtids.parse(status["checkpoint"]["gtid_set"])
    assert not checkpoint.issuperset(executed(server)), "the open ones are left out"
    assert checkpoint.issuperset(before)
    if server.flavor == "mysql":
        assert len(str(executed(server).subtract(checkpoint)).split(":")[1].split("-")) == 2, "and nothing else is"
    streamer.kill()
    streamer.started()
    run(server, "XA COMMIT 'kept'", "XA ROLLBACK 'undone'")
    insert(server, name, 20, 5)
    streamer.wait_until_released()
    assert streamer.stop() == 0

    found = sorted(once(records(kafka, f"{name}.{name}.t")), key=lambda record: record.seq)
    assert [record.key["id"] for record in found] == [10, 11, 12, 13, 14, 1, 20, 21, 22, 23, 24]
    [row] = [record for record in found if record.key["id"] == 1]
    assert not checkpoint.contains(row.value["source"]["gtid"])
    assert row.value["source"]["pos"] > found[4].value["source"]["pos"] or server.flavor == "mariadb"
