"""The pipeline file is edited while the streamer runs on it: tables join and leave without a restart and without a
gap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.pipeline import load
from spark.source.choice import refuse_unfollowed
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from streamer.checkpoints.kafka import read_checkpoint
from tests.integration.streaming import Make, Streamer, execute, rows
from tests.integration.topic_records import records


def edit(streamer: Streamer, before: str, after: str) -> None:
    text = streamer.file.read_text()
    assert before in text
    streamer.file.write_text(text.replace(before, after))


@contextmanager
def changing(mysql: Database, *tables: str) -> Iterator[None]:
    """Transactions on all of the tables, one after the other without a pause."""
    over = threading.Event()

    def run() -> None:
        number = 0
        with mysql.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not over.is_set():
                number += 1
                for table in tables:
                    cursor.execute(f"INSERT INTO {table} VALUES ({number}, 0, 'x')")
                    cursor.execute(f"UPDATE {table} SET v = v + 1 WHERE id > {number - 5}")
                    cursor.execute(f"DELETE FROM {table} WHERE id = {number - 20}")
                connection.commit()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def checkpoint(streamer: Streamer) -> Checkpoint:
    found = read_checkpoint(load(streamer.file))
    assert found is not None
    return found


@pytest.mark.soak_on("mysql80")
def test_a_table_that_is_added_to_the_file_joins_under_load_and_a_snapshot_of_then_lacks_nothing(
    make: Make, server: Database, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = f"joined{server.name}"
    streamer = make(db, mysql=server)
    monkeypatch.setenv("TEST_PASSWORD", streamer.password)
    execute(server, f"CREATE TABLE {db}.hidden LIKE {db}.t")
    streamer.started()
    with changing(server, f"{db}.t", f"{db}.hidden"):
        streamer.wait_for(lambda status: status["events"]["released"] > 100)
        edit(streamer, ', exclude: ["*.hidden*"]', "")
        streamer.wait_for(lambda status: status["tables"]["exclude"] == [] and not status["tables"]["pending"])
        p0 = checkpoint(streamer)
        refuse_unfollowed(p0, [(db, "hidden")])
        since = p0.since(db, "hidden")
        snapshot = rows(server, f"{db}.hidden")
        streamer.wait_for(lambda status: status["events"]["tables"].get(f"{db}.hidden", {}).get("c", 0) > 30)
    streamer.wait_until_released()
    assert since is not None
    assert since <= p0.place
    found = sorted(records(kafka, f"{db}.{db}.hidden"), key=lambda record: record.seq)
    assert found[0].seq[:3] >= since, "nothing of it was sent before the checkpoint that follows it"
    for record in found:  # the snapshot may be of later than some of them: all it takes is that the last ones win
        snapshot.pop(record.key["id"], None)
        if record.value["after"]:
            snapshot[record.key["id"]] = tuple(record.value["after"].values())
    assert snapshot == rows(server, f"{db}.hidden")
    both = {record.value["source"]["gtid"] for record in found}
    of_t = {record.value["source"]["gtid"] for record in records(kafka, f"{db}.{db}.t") if record.seq[:3] >= since}
    assert both == of_t, "each transaction behind it changed both tables"
    assert streamer.process is not None
    assert streamer.log().count('"streaming"') == 1, "without a restart"

    waiting = streamer.status()["tables"]["not_yet_snapshotted"]
    assert waiting == {f"{db}.hidden": list(since)}
    execute(
        server,
        f"CREATE DATABASE {db}_besides",
        f"CREATE TABLE {db}_besides.had (id INT)",
        f"INSERT INTO {db}_besides.had VALUES (1)",
        f"RENAME TABLE {db}_besides.had TO {db}.renamed",
        f"CREATE TABLE {db}.made (id INT PRIMARY KEY)",
    )
    streamer.wait_until_released()
    assert streamer.stop() == 0
    streamer.started()
    waiting = streamer.status()["tables"]["not_yet_snapshotted"]
    assert waiting.keys() == {f"{db}.hidden", f"{db}.renamed"}, "it is known behind a restart, too"
    shown = streamer.command("status").stdout
    assert f"not yet snapshotted: {db}.hidden (since binlog file" in shown
    execute(server, f"DROP TABLE {db}.renamed")
    streamer.wait_for(lambda status: status["tables"]["not_yet_snapshotted"].keys() == {f"{db}.hidden"})


def test_a_table_that_the_server_refuses_or_a_mistake_in_the_file_leaves_the_stream_as_it_is(
    make: Make, mysql: MySQL, kafka: Kafka
) -> None:
    streamer = make("refusing")
    execute(mysql, "CREATE TABLE refusing.hidden (v INT)", "CREATE TABLE refusing.late LIKE refusing.t")
    streamer.started()

    def told(*words: str) -> dict[str, Any]:
        status = streamer.wait_for(lambda status: words[0] in str(status["tables"]["reload"]))
        assert [word for word in words if word not in str(status["tables"]["reload"])] == []
        assert status["tables"]["exclude"] == ["*.hidden*"]
        assert status["state"] == "streaming"
        return status

    edit(streamer, '"*.hidden*"', '"*.hiddenx"')
    told("no primary key", "refusing.hidden", "tables.exclude")
    shown = streamer.command("status").stdout
    assert "pipeline file not taken" in shown
    assert "no primary key" in shown
    edit(streamer, '"*.hiddenx"', '"hiddenx"')
    told("not of the form db.table", "tables.exclude")
    edit(streamer, '"hiddenx"', '"*.hidden*"')
    streamer.wait_for(lambda status: not status["tables"]["pending"])
    edit(streamer, "partitions: 2", "partitions: 3")
    told("kafka.partitions changed", "Restart the streamer")
    edit(streamer, "partitions: 3", "partitions: 2")
    edit(streamer, '"*.hidden*"', '"*.hidden*", "*.late"')
    streamer.wait_for(lambda status: "*.late" in status["tables"]["exclude"])
    execute(mysql, "INSERT INTO refusing.late VALUES (1, 1, 'x')", "INSERT INTO refusing.t VALUES (1, 1, 'x')")
    assert set(streamer.wait_until_released()["events"]["tables"]) == {"refusing.t"}


def test_a_table_that_was_made_without_a_key_joins_and_the_next_start_goes_on(
    make: Make, mysql: MySQL, kafka: Kafka
) -> None:
    streamer = make("latekeyless").started()
    execute(mysql, "CREATE TABLE latekeyless.log (v INT)", "INSERT INTO latekeyless.log VALUES (1)")
    status = streamer.wait_until_released()
    assert status["tables"]["without_key"] == ["latekeyless.log"]
    assert "joined without a key" in streamer.log()
    shown = streamer.command("status").stdout
    assert "joined without a key" in shown
    assert streamer.stop() == 0
    checked = streamer.command("check")
    assert (checked.returncode, "no primary key" in checked.stdout) == (0, True), checked.stdout
    streamer.started()
    execute(mysql, "INSERT INTO latekeyless.log VALUES (2)")
    streamer.wait_until_released()
    assert [record.value["after"] for record in records(kafka, "latekeyless.latekeyless.log")] == [{"v": 1}, {"v": 2}]
    assert streamer.stop() == 0
