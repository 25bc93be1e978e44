"""A snapshot's rows in Kafka: with the stream they make the table by `seq` alone, and the lake takes none of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.snapshot import snapshot
from spark.lake import unfinished
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from spark.snapshot.snapshot_records import SnapshotRecords
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.spark_jobs import kill, message
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


ROWS, PART = 4000, 800  # of a part, which has as many chunks of 100 rows as its readers are given


class DiedError(Exception):
    pass


def died_behind_a_part(records: SnapshotRecords, *given: Any) -> None:
    SEND(records, *given)
    raise DiedError


SEND = SnapshotRecords.send


@pytest.mark.soak
def test_behind_a_kill_each_row_is_there_and_what_was_not_noted_comes_again(
    make: Make, mysql: MySQL, kafka: Kafka, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is killed in its middle; the next one dies when a part of it is in the topic, and is not noted yet."""
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    monkeypatch.setattr(unfinished, "SILENT", unfinished.BEATS + 1)
    name, topic = "rowskilled", "rowskilled.snapshot-rows"
    streamer = make(name).started()
    insert(mysql, name, 0, ROWS)
    streamer.file.write_text(
        streamer.file.read_text() + "snapshot: {chunk_rows: 100, parallelism: 1, to_kafka: true}\n"
    )
    assert streamer.command("topics").returncode == 0
    streamer.wait_until_released()
    pipeline = load(streamer.file)
    lake = Lake(spark, pipeline)

    def noted() -> int:
        progress = [one.progress(name, "t") for one in unfinished.unfinished(lake)]
        return sum(one.rows for one in progress if one is not None)

    kill("snapshot", streamer.file, {"TEST_PASSWORD": mysql.password}, lambda: noted() >= 2 * PART)
    [left], first = unfinished.unfinished(lake), noted()
    assert first % PART == 0
    assert first < ROWS, "it was killed too late"
    with monkeypatch.context() as dying:
        dying.setattr(SnapshotRecords, "send", died_behind_a_part)
        with pytest.raises(DiedError):
            snapshot(spark, pipeline, [])
    assert noted() == first
    changed = "UPDATE rowskilled.t SET v = -1 WHERE id % 3 = 0", "DELETE FROM rowskilled.t WHERE id % 7 = 0"
    execute(mysql, *changed, "UPDATE rowskilled.t SET id = id + 100000 WHERE id % 11 = 0")
    facts = snapshot(spark, pipeline, [])
    streamer.wait_until_released()

    sent = records(kafka, topic)
    assert_sent(sent, first)
    [manifest] = manifests(lake)
    staged = spark.read.format("delta").load(manifest.rows(lake, manifest.tables[0])).select("id").collect()
    assert (facts["snapshot"], facts["rows"]) == (left.id, len(staged))
    assert {row["id"] for row in staged} <= {record.key["id"] for record in sent}
    assert consumed([*records(kafka, f"{name}.{name}.t"), *sent]) == rows(mysql, f"{name}.t")
    compact(spark, pipeline)
    found = spark.read.format("delta").load(lake.table(name, "t")).select("id", "v", "name").collect()
    assert sorted(map(tuple, found)) == sorted(rows(mysql, f"{name}.t").values()), "in the lake none is twice"


def assert_sent(sent: list[Record], first: int) -> None:
    """`first`: the rows of the parts that were noted by the run that was killed."""
    times = Counter(record.key["id"] for record in sent)
    again = {id for id, count in times.items() if count > 1}
    died = set(range(first, first + PART))
    assert {record.value["op"] for record in sent} == {"r"}
    assert {*range(first), *died} <= {*times}
    assert again <= died, "of what was noted nothing comes again"
    assert again >= {id for id in died if id % 7 and id % 11}, "what was sent and not noted does, but for what is gone"


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
