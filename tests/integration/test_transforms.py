"""The documented examples of `transforms` and `records` on real servers: the stream, the snapshot, the lake."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.spark_jobs import message
from tests.integration.streaming import Make, Streamer, fails, insert
from tests.integration.topic_records import records

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, email varchar(60), status varchar(10), total decimal(10,2))",
    "CREATE TABLE visits (id int PRIMARY KEY, country char(2), note varchar(20), minutes int)",
    "CREATE TABLE plain (id int PRIMARY KEY, v int)",
)
Example = Callable[..., Streamer]


@pytest.fixture
def example(make: Make, mysql: MySQL) -> Example:
    """A streamer by the examples, over a database of its name."""

    def one(name: str, **more: Any) -> Streamer:
        run(mysql, f"DROP DATABASE IF EXISTS {name}")
        streamer = make(name, **more)
        run(mysql, *TABLES, database=name)
        page = PAGE.read_text()
        [rules, asked, _] = re.findall(r"```yaml\n((?:transforms|records):.*?)```", page, re.DOTALL)
        streamer.file.write_text(streamer.file.read_text() + (rules + asked).replace("shop", name))
        for file, script in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
            (streamer.file.parent / file).write_text(script.replace("visits-of", f"{name}-visits-of"))
        return streamer

    return one


def write(mysql: MySQL, db: str, first: int) -> None:
    emails = ", ".join(
        f"({n}, 'quokka{n}@example.org', '{('paid', 'test')[n % 2]}', 1.5)" for n in range(first, first + 4)
    )
    visits = f"({first}, 'DE', '120', 0), ({first + 1}, 'NZ', '60', 0), ({first + 2}, 'DE', 'quokka', 0)"
    run(
        mysql,
        "BEGIN",
        f"INSERT INTO orders VALUES {emails}",
        f"INSERT INTO visits VALUES {visits}",
        f"INSERT INTO plain VALUES ({first}, {first})",
        "COMMIT",
        f"UPDATE orders SET total = 2 WHERE id = {first}",
        f"DELETE FROM orders WHERE id = {first + 2}",
        database=db,
    )


def headers(kafka: Kafka, topic: str, partition: int) -> list[tuple[str, bytes]]:
    """Of the partition's first record."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "test"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    first = consumer.poll(20)
    consumer.close()
    return first.headers() or []


def digest(n: int) -> str:
    return hashlib.sha256(f"quokka{n}@example.org".encode()).hexdigest()


def test_the_examples_change_drop_move_and_bury(example: Example, mysql: MySQL, kafka: Kafka) -> None:
    streamer = example("bends").started()
    write(mysql, "bends", 0)
    status = streamer.wait_until_released()
    told = sorted(records(kafka, "bends.bends.orders"), key=lambda record: record.seq)
    assert [(one.value["op"], one.key["id"]) for one in told] == [("c", 0), ("c", 2), ("u", 0), ("d", 2)]
    assert [one.seq[4] for one in told[:2]] == [0, 2], "what is dropped keeps its place"
    assert told[2].value["before"] == {"id": 0, "email": digest(0), "status": "paid", "total": "1.50"}
    assert told[2].value["after"]["total"] == "2.00"
    [visit] = records(kafka, "bends.bends.visits")
    assert visit.value["after"] == {"id": 0, "country": "DE", "note": "120", "minutes": 2}
    [moved] = records(kafka, "bends-visits-of-new-zealand")
    assert (moved.key, moved.value["after"]["minutes"]) == ({"id": 1}, 1)
    [letter] = records(kafka, "bends.dead-letter")
    assert letter.key == {"id": 2}
    assert letter.value["error"] == {"kind": "transform", "cause": "ValueError at visits.py:6", "by": "visits.py"}
    assert letter.value["value"]["after"] == {"id": 2, "country": "DE", "note": "quokka", "minutes": 0}
    assert letter.value["source"]["pos"] == letter.value["value"]["source"]["pos"]
    assert status["transformed"] == {
        "bends.orders": {"changed": 4, "dropped": 2}, "bends.visits": {"changed": 2, "dead_letter": 1},
    }  # fmt: skip
    assert status["checkpoint"]["events"] == 10, "of all rows that were read"
    assert "quokka" not in streamer.log()
    _transactions(kafka, told, visit)
    assert "headrace_transformed_total" in streamer.metrics()
    assert streamer.stop() == 0
    text = streamer.file.read_text()
    streamer.file.write_text(text.replace("partitions: 2", 'partitions: 2, topic: "{pipeline}-visits-of-{table}"'))
    told = "a transform has sent changes of other tables into bends-visits-of-new-zealand"
    fails(streamer, '"kind": "transform"', told, "delete the topic")  # by the file as it is now a table's own


def _transactions(kafka: Kafka, orders: list[Any], visit: Any) -> None:
    found = [record.value for record in records(kafka, "bends.transactions")]
    assert [one["status"] for one in found] == ["BEGIN", "END"] * 3
    counted = [(table["data_collection"], table["event_count"]) for table in found[1]["data_collections"]]
    assert counted == [("bends.orders", 2), ("bends.plain", 1), ("bends.visits", 2)]
    assert found[1]["event_count"] == 5
    places = [one.value["transaction"] for one in (*orders[:2], visit)]
    assert [(one["total_order"], one["data_collection_order"]) for one in places] == [(1, 1), (2, 2), (3, 1)]
    assert places[0]["id"] == found[0]["id"] == orders[0].value["source"]["gtid"]
    first = headers(kafka, "bends.bends.visits", visit.partition)
    assert first == [("__op", b"c"), ("__table", b"visits"), ("__gtid", places[0]["id"].encode())]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_tombstones_and_heartbeats(make: Make, mysql: MySQL, kafka: Kafka, delivery: str) -> None:
    name = "beats" + delivery[:2]
    streamer = make(name, delivery=delivery)
    more = "records: {tombstones: true, heartbeat_seconds: 0.5}\n"
    streamer.file.write_text(streamer.file.read_text() + more)
    streamer.started()
    insert(mysql, name, 0, 3)
    run(mysql, "DELETE FROM t WHERE id = 1", "UPDATE t SET id = 9 WHERE id = 2", database=name)
    streamer.wait_until_released()
    time.sleep(3)
    assert streamer.stop() == 0
    insert(mysql, name, 20, 1)
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    of_two = [record for record in records(kafka, f"{name}.{name}.t") if record.key["id"] in (1, 2)]
    ops = [record.value and record.value["op"] for n in (1, 2) for record in of_two if record.key["id"] == n]
    assert ops == ["c", "d", None] * 2
    beats = [record.value for record in records(kafka, f"{name}.heartbeat")]
    assert len(beats) >= 4
    assert [beat["ts_ms"] for beat in beats] == sorted(beat["ts_ms"] for beat in beats)
    last = Checkpoint.model_validate(records(kafka, f"{name}.commit-log")[-1].value)
    assert last.events == 7, "of rows, not of tombstones and heartbeats"


@pytest.mark.parametrize("delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.soak)])
def test_an_error_stops_and_a_mended_script_goes_on_with_that_change(
    example: Example, mysql: MySQL, kafka: Kafka, delivery: str
) -> None:
    name = "stops" + delivery[:2]
    streamer = example(name, delivery=delivery)
    script = streamer.file.parent / "orders.py"
    good = script.read_text()
    script.write_text(good.replace("return event", "return event if row['id'] != 6 else int(row['email'])"))
    streamer.started()
    run(
        mysql,
        *(
            f"INSERT INTO orders VALUES ({n}, 'quokka{n}@example.org', '{('paid', 'test')[n % 2]}', 1)"
            for n in range(10)
        ),
        database=name,
    )
    assert streamer.end() == 1
    log = streamer.log()
    assert f"a change of {name}.orders (binlog." in log
    assert re.search(rf"{name}\.yaml:\d+: transforms\[0\]: orders\.py: ValueError at orders\.py:8", log)
    assert "Traceback" not in log
    assert "quokka" not in log
    assert [one.key["id"] for one in _orders(kafka, name)] == [0, 2, 4]
    script.write_text(good)
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert [one.key["id"] for one in _orders(kafka, name)] == list(range(0, 10, 2))


def _orders(kafka: Kafka, name: str) -> list[Any]:
    return sorted(records(kafka, f"{name}.{name}.orders"), key=lambda record: record.seq)


def test_a_script_that_cannot_be_used_ends_the_start(example: Example) -> None:
    streamer = example("unusable")
    (streamer.file.parent / "visits.py").write_text("import nowhere_to_be_found\n")
    fails(streamer, "transforms[1]: visits.py cannot be used: ModuleNotFoundError at visits.py:1", "Mend the script")
    checked = streamer.command("check")
    assert checked.returncode == 1
    assert "visits.py cannot be used" in " ".join(checked.stdout.split())


def _become_tests(mysql: MySQL, db: str) -> None:
    """Orders that the snapshot, or the stream, showed as paid; two are deleted as tests, and one test is paid."""
    run(
        mysql,
        "INSERT INTO orders VALUES (150, 'quokka150@example.org', 'test', 1)",
        "INSERT INTO orders VALUES (152, '', 'paid', 1), (154, '', 'paid', 1)",
        "UPDATE orders SET status = 'test' WHERE id IN (50, 52, 152, 154)",
        "DELETE FROM orders WHERE id IN (50, 154)",
        "UPDATE orders SET status = 'paid' WHERE id = 150",
        database=db,
    )


def test_a_snapshot_shows_its_rows_to_the_same_functions(
    spark: SparkSession, example: Example, mysql: MySQL, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    streamer = example("stills")
    write(mysql, "stills", 0)
    run(mysql, "INSERT INTO orders VALUES (50, '', 'paid', 1), (52, '', 'paid', 1)", database="stills")
    streamer.started()
    pipeline = load(streamer.file)
    facts = snapshot(spark, pipeline, [])
    assert {name: told["rows"] for name, told in facts["tables"].items()} == {
        "stills.orders": 3, "stills.plain": 1, "stills.t": 0, "stills.visits": 1,
    }  # fmt: skip
    write(mysql, "stills", 100)
    _become_tests(mysql, "stills")
    streamer.wait_until_released()
    compact(spark, pipeline)
    proof = verify(spark, pipeline, [])["tables"]
    assert {name: told["equal"] for name, told in proof.items()} == {
        "stills.orders": None, "stills.plain": True, "stills.t": True, "stills.visits": None,
    }  # fmt: skip
    assert "transforms in" in proof["stills.orders"]["reason"]
    lake = Lake(spark, pipeline)
    orders = spark.read.format("delta").load(lake.table("stills", "orders")).orderBy("id").collect()
    assert [(row["id"], row["email"]) for row in orders] == [(n, digest(n)) for n in (0, 100, 150)]
    visits = spark.read.format("delta").load(lake.table("stills", "visits")).orderBy("id").collect()
    assert [(row["id"], row["minutes"]) for row in visits] == [(0, 2), (100, 2)]
    letters = sorted(records(kafka, "stills.dead-letter"), key=lambda record: record.key["id"])
    assert [(one.key["id"], one.value["op"]) for one in letters] == [(2, "r"), (102, "c")]
    assert letters[0].value["value"]["source"]["snapshot"] == "true"

    visits_py = streamer.file.parent / "visits.py"
    visits_py.write_text(visits_py.read_text().replace("return event", "raise KeyError('quokka')"))
    streamer.file.write_text(streamer.file.read_text().replace(", on_error: dead_letter", ""))
    changed = load(streamer.file)
    for job in (snapshot, verify):
        told = message(spark, changed, job, [])
        assert "are not those with which the streamer was started" in told
    assert streamer.stop() == 0
    streamer.started().wait_until_released()
    told = message(spark, changed, snapshot, [])
    assert "stills.visits: visits.py failed on" in told
    assert "KeyError at visits.py:7" in told
    assert "quokka" not in told
