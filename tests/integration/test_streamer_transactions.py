"""Transactions that end late, from the server to Kafka, over a kill of the streamer."""

from __future__ import annotations

from contract import gtids
from contract.checkpoint import Checkpoint
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import executed, run
from tests.integration.streaming import Make, arrived, insert
from tests.integration.topic_records import records


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
    # Its end is read again, without its beginning: that stands before the oldest that is open.
    overlap = ("XA START 'short'", "INSERT INTO t VALUES (3, 0, 'short')", "XA END 'short'", "XA PREPARE 'short'")
    run(server, *overlap, database=name)
    run(server, "XA COMMIT 'kept'")
    streamer.wait_for(lambda status: status["checkpoint"]["events"] == 6)
    streamer.kill()
    streamer.started()
    run(server, "XA COMMIT 'short'", "XA ROLLBACK 'undone'")
    insert(server, name, 20, 5)
    streamer.wait_until_released()
    assert streamer.stop() == 0

    found = sorted(records(kafka, f"{name}.{name}.t"), key=lambda record: record.seq)
    assert [record.key["id"] for record in found] == [10, 11, 12, 13, 14, 1, 3, 20, 21, 22, 23, 24]
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
    assert f"Run the DAG joins.snapshot, or `headrace snapshot {streamer.file}`, for joins.shown" in streamer.log()


def test_what_was_accepted_before_a_fatal_error_is_delivered_and_checkpointed(
    make: Make, mysql: MySQL, kafka: Kafka
) -> None:
    """Pitfall "A fatal error in the decoder" (a type it does not know, in some other table): nothing after it is."""
    streamer = make("fatal").started()
    insert(mysql, "fatal", 0, 1500)
    before = executed(mysql)
    run(mysql, "CREATE TABLE odd (id float primary key)", "BEGIN", "INSERT INTO t VALUES (9999, 0, 'x')",
        "INSERT INTO odd VALUES (0.1)", "COMMIT", database="fatal")  # fmt: skip
    insert(mysql, "fatal", 1500, 100)
    assert streamer.end() == 1
    assert "fatal.odd" in streamer.log()
    assert "Traceback" not in streamer.log()
    assert arrived(kafka, "fatal") == list(range(1500))
    last = Checkpoint.model_validate(records(kafka, "fatal.commit-log")[-1].value)
    assert gtids.parse(last.gtid_set).issuperset(before)
    streamer.file.write_text(streamer.file.read_text().replace('"*.hidden*"', '"*.hidden*", "*.odd"'))
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert arrived(kafka, "fatal") == [*range(1600), 9999]
