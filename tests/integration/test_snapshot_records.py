"""A snapshot's rows in Kafka: with the stream they make the table by `seq` alone, and the lake takes none of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.jobs.snapshot import snapshot
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.spark_jobs import message
from tests.integration.streaming import Make, execute, insert, rows
from tests.integration.topic_records import Record, records


def test_rows_and_changes_together_are_the_table(
    make: Make, mysql: MySQL, kafka: Kafka, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    streamer = make("rowsent")
    insert(mysql, "rowsent", 0, 250)
    execute(mysql, "UPDATE rowsent.t SET name = 'zwölf \"\\\\ \\n🌍' WHERE id = 12")
    # A brace in a name is an escape to JDBC.
    days = "rowsent.`d{a}y`"
    execute(mysql, f"CREATE TABLE {days} (id int PRIMARY KEY, at date)", f"INSERT INTO {days} VALUES (1, '2026-01-01')")
    streamer.started()
    execute(mysql, "UPDATE rowsent.t SET v = -1 WHERE id = 1", f"UPDATE {days} SET at = '2026-01-02'")
    streamer.wait_until_released()
    streamer.file.write_text(streamer.file.read_text() + "snapshot: {chunk_rows: 100, to_kafka: true}\n")
    streamer.file.write_text(streamer.file.read_text().replace("lake: {", "lake: {unrepresentable: string, "))
    told = message(spark, load(streamer.file), snapshot, [])
    step = f"run the DAG rowsent.topics, or `headrace topics {streamer.file}`, then the snapshot again"
    assert f"the topic rowsent.snapshot-rows, which is not there: {step}" in told
    made = streamer.command("topics")
    assert made.returncode == 0, made.stderr
    facts = snapshot(spark, load(streamer.file), [])
    assert facts["rows"] == 251
    execute(mysql, "UPDATE rowsent.t SET v = -2 WHERE id = 2", "DELETE FROM rowsent.t WHERE id = 3")
    streamer.wait_until_released()

    sent = records(kafka, "rowsent.snapshot-rows")
    [day] = [record for record in sent if record.value["source"]["table"] == "d{a}y"]
    [changed] = records(kafka, "rowsent.rowsent.d_x7ba_x7dy")
    assert day.value["after"] == {"id": 1, "at": "2026-01-02"}
    assert day.value["source"]["schema"] == changed.value["source"]["schema"]
    sent.remove(day)
    assert len(sent) == 250
    twelve = next(record for record in sent if record.key == {"id": 12})
    assert twelve.value["op"] == "r"
    assert twelve.value["after"] == {"id": 12, "v": 12, "name": 'zwölf "\\ \n🌍'}
    assert {name: twelve.value["source"][name] for name in ("snapshot", "db", "table", "gtid")} == {
        "snapshot": "true", "db": "rowsent", "table": "t", "gtid": None,
    }  # fmt: skip
    assert consumed([*records(kafka, "rowsent.rowsent.t"), *sent]) == rows(mysql, "rowsent.t")
    execute(mysql, "TRUNCATE TABLE rowsent.t", "INSERT INTO rowsent.t VALUES (12, 1, 'neu'), (300, 2, 'neu')")
    streamer.wait_until_released()
    left = consumed([*records(kafka, "rowsent.rowsent.t"), *sent])
    assert (left, len(left)) == (rows(mysql, "rowsent.t"), 2)


def consumed(sent: list[Record]) -> dict[int, tuple[Any, ...]]:
    """The table by its records, as docs/configuration.md says, in whichever order they come."""
    newest, emptied = dict[str, Record](), tuple[int, ...]()
    for record in sent:
        key = json.dumps(record.key)
        if record.value["op"] == "t":
            emptied = max(emptied, record.seq)
        elif key not in newest or record.seq > newest[key].seq:
            newest[key] = record
    left = [one.value["after"] for one in newest.values() if one.seq > emptied]
    return {after["id"]: tuple(after.values()) for after in left if after}
