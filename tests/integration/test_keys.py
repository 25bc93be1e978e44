"""The documented example of `keys` to the lake, with all tables in one topic and each in one partition of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.spark_jobs import message
from tests.integration.streaming import Make, Streamer, fails
from tests.integration.topic_records import records

pytestmark = pytest.mark.usefixtures("without_expectations")

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
[EXAMPLE] = re.findall(r"```yaml\n(keys:.*?)```", PAGE.read_text(), re.DOTALL)
TABLES = (
    "CREATE TABLE readings (sensor varchar(9) NOT NULL, taken_at datetime(3) NOT NULL, heat double, flag int)",
    "CREATE TABLE rooms (id int PRIMARY KEY, code varchar(9) NOT NULL, size int)",
)


def asked(make: Make, name: str, partition_by: str) -> Streamer:
    streamer = make(name, kafka_more=', topic: "{{pipeline}}.all"'.replace("{{", "{").replace("}}", "}"))
    run(streamer.mysql, *TABLES, database=name)
    more = EXAMPLE.replace("shop", name) + f"records: {{partition_by: {partition_by}}}\n"
    streamer.file.write_text(streamer.file.read_text() + more)
    return streamer


def write(mysql: MySQL, db: str, day: int) -> None:
    times = [f"2026-01-0{day} 10:00:0{n}" for n in range(6)]
    run(
        mysql,
        "INSERT INTO readings VALUES " + ", ".join(f"('a', '{time}', 0.5, 0), ('b', '{time}', 1, 0)" for time in times),
        f"INSERT INTO rooms VALUES ({day}, 'r{day}', 1), ({day + 100}, 's{day}', 1)",
        f"UPDATE readings SET sensor = 'c', heat = 2 WHERE sensor = 'a' AND taken_at = '{times[1]}'",
        f"UPDATE readings SET flag = 1 WHERE taken_at = '{times[2]}'",
        f"DELETE FROM readings WHERE taken_at = '{times[3]}'",
        f"UPDATE rooms SET id = id + 1000 WHERE code = 'r{day}'",
        f"UPDATE rooms SET code = 't{day}' WHERE code = 's{day}'",
        database=db,
    )


def lake_rows(spark: SparkSession, pipeline: Pipeline) -> list[Row]:
    rows = spark.read.format("delta").load(Lake(spark, pipeline).table("known", "readings"))
    return rows.where("sensor = 'a' and taken_at = '2026-01-01 10:00:00'").collect()


def test_tables_are_known_by_the_chosen_columns_and_proven_equal(
    spark: SparkSession, make: Make, mysql: MySQL, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    streamer = asked(make, "known", "table")
    write(mysql, "known", 1)
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    write(mysql, "known", 2)
    streamer.wait_until_released()
    compact(spark, pipeline)
    proof = verify(spark, pipeline, [])["tables"]
    assert {name: (told["equal"], told["lake_count"]) for name, told in proof.items()} == {
        "known.readings": (True, 20), "known.rooms": (True, 4), "known.t": (True, 0),
    }  # fmt: skip
    found = records(kafka, "known.all")
    of = {name: [one for one in found if one.value["source"]["table"] == name] for name in ("readings", "rooms")}
    assert [len({one.partition for one in told}) for told in of.values()] == [1, 1]
    assert [one.value["op"] for one in of["rooms"]] == ["c", "c", "u", "d", "c"], "the primary key is no key here"
    assert of["rooms"][-1].key == {"code": "t2"}
    assert of["readings"][0].key == {"sensor": "a", "taken_at": "2026-01-02 10:00:00.000"}
    assert streamer.status()["tables"]["without_key"] == []

    run(mysql, "INSERT INTO readings VALUES ('a', '2026-01-01 10:00:00', 7, 7)", database="known")
    streamer.wait_until_released()
    shared = "known.readings was left out: 1 row with the key (sensor, taken_at) of another one"
    assert shared in message(spark, pipeline, snapshot, [])
    [staged] = [one for one in manifests(Lake(spark, pipeline)) if not one.counts.get("known.readings")]
    assert staged.counts["known.rooms"] == 4, "it keeps no other table from its snapshot"
    compact(spark, pipeline)
    assert "known.readings: rows 21 in the source, 20 in the lake" in message(spark, pipeline, verify, [])
    several = "known.readings: 1 key (sensor, taken_at) that several rows have,"
    assert several in message(spark, pipeline, repair, [])
    compact(spark, pipeline)
    [last] = lake_rows(spark, pipeline)
    assert last["flag"] == 7, "the row that came last stays"


def test_a_column_that_may_be_null_is_refused_with_its_place_and_all_in_one_partition(
    make: Make, mysql: MySQL, kafka: Kafka
) -> None:
    streamer = asked(make, "unknown", "single")
    good = streamer.file.read_text()
    streamer.file.write_text(good.replace("[sensor, taken_at]", "[sensor, flag]"))
    fails(streamer, r"unknown.yaml:", "keys[0].columns", "unknown.readings.flag", "may be NULL", "make it NOT NULL")
    streamer.file.write_text(good)
    streamer.started()
    write(mysql, "unknown", 1)
    streamer.wait_until_released()
    assert {one.partition for one in records(kafka, "unknown.all")} == {0}
    assert streamer.stop() == 0
