"""Transactions that end late, from the server to Kafka, over a kill of the streamer."""

from __future__ import annotations

from contract import gtids
from contract.checkpoint import Checkpoint
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
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
    last = Checkpoint.model_validate(records(kafka, f"{name}.commit-log")[-1].value)
    assert last.covers(str(executed(server))), "nothing that was committed is missing: a check need not wait"
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


def test_a_table_that_comes_to_match_joins_without_a_restart(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    """One that is made, and one with rows from before that is renamed to a name of the pipeline: of that one the next
    step is told, since its rows are in no snapshot."""
    streamer = make("joins").started()
    run(
        mysql,
        "CREATE TABLE made (id int primary key)", "INSERT INTO made VALUES (1)",
        "CREATE TABLE hidden (id int primary key, v int)", "INSERT INTO hidden VALUES (2, 20), (3, 30)",
        "RENAME TABLE hidden TO shown", "INSERT INTO shown VALUES (4, 40)",
        "ALTER TABLE shown ADD w int FIRST", "INSERT INTO shown VALUES (50, 5, 55)",
        database="joins",
    )  # fmt: skip
    status = streamer.wait_until_released()
    assert streamer.stop() == 0
    assert [record.key["id"] for record in records(kafka, "joins.joins.made")] == [1]
    found = sorted(records(kafka, "joins.joins.shown"), key=lambda record: record.seq)
    assert [record.value["after"] for record in found] == [{"id": 4, "v": 40}, {"w": 50, "id": 5, "v": 55}]
    assert [record.value["source"]["schema"] for record in found] == [1, 2]
    assert status["schemas"] == {"joins.made": 1, "joins.shown": 2}
    [note] = status["ddl"]["last"]
    assert (note["kind"], note["tables"]) == ("rename", ["joins.shown"])
    assert "Run the DAG joins.snapshot for joins.shown" in streamer.log()
