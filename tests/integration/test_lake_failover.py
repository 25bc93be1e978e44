"""The first server dies and its replica goes on, all the way into a lake: the second's rows, each change once, history
in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.gtid import GtidSet
from contract.pipeline import Pipeline, load
from readers.lake import query
from spark.history.history import History
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration import failover
from tests.integration.decoding import executed, run
from tests.integration.streaming import Make, Streamer
from tests.integration.test_failover import Pair, forgets, over, share_password
from tests.integration.topic_records import records

pytestmark = pytest.mark.usefixtures("without_expectations")

Another = Callable[..., Database]
Rows = dict[str, list[tuple[Any, ...]]]

TABLES = ("items", "codes", "t")  # nothing is written into `t` behind the snapshot
BEGUN = (
    "CREATE TABLE items (id int PRIMARY KEY, v int, name varchar(20))",
    "CREATE TABLE codes (code varchar(20) PRIMARY KEY, v int)",
    "INSERT INTO items VALUES " + ", ".join(f"({n}, 0, 'begun')" for n in range(1, 41)),
    "INSERT INTO codes VALUES ('c1', 0), ('c2', 0), ('c3', 0)",
    "INSERT INTO t VALUES (1, 1, 'still'), (2, 2, 'still')",
)


class Stage(NamedTuple):
    """Transactions, and how many changes they are; a moved key is two."""

    statements: tuple[str, ...]
    changes: int


SENT = Stage(  # from the first server
    (
        "UPDATE items SET v = 1, name = 'first' WHERE id <= 10",
        "INSERT INTO items VALUES (50, 1, 'first'), (51, 1, 'first')",
        "DELETE FROM items WHERE id = 20",
        "UPDATE codes SET code = 'moved', v = 1 WHERE code = 'c2'",
    ),
    15,
)
UNSENT = Stage(  # written on the first server, and sent from the second
    (
        "UPDATE items SET v = 2 WHERE id <= 5",
        "UPDATE items SET id = 60 WHERE id = 30",
        "DELETE FROM items WHERE id = 51",
    ),
    8,
)
SECOND = Stage(
    (
        "UPDATE items SET v = 3, name = 'second' WHERE id IN (1, 2, 50)",
        "DELETE FROM items WHERE id IN (3, 21)",
        "INSERT INTO items VALUES (20, 3, 'again'), (70, 3, 'second')",
        "UPDATE items SET id = 61 WHERE id = 60",
        "UPDATE codes SET code = 'c2' WHERE code = 'moved'",
    ),
    11,
)


class Left(NamedTuple):
    """What the first server has done, and a time behind that with the rows of then."""

    done: GtidSet
    at: datetime
    rows: Rows


@pytest.fixture
def pair(server: Database, another: Another, monkeypatch: pytest.MonkeyPatch) -> Pair:
    options = failover.options(server.flavor)
    first, second = another(options, server_id=11), another(options, server_id=12)
    failover.replicate(first, second)
    share_password(first, second)
    monkeypatch.setenv("TEST_PASSWORD", first.password)
    return Pair(first, second)


def source_rows(server: Database, db: str) -> Rows:
    with server.connect(database=db) as connection, connection.cursor() as cursor:
        found = {}
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table}")
            found[table] = sorted(cursor.fetchall())
    return found


def lake_rows(pipeline: Pipeline, as_of: str = "") -> Rows:
    at = f"_as_of('{as_of}')" if as_of else ""
    return {table: sorted(query(pipeline, f"SELECT * FROM {table}{at}").rows()) for table in TABLES}


def moved_over(streamer: Streamer, kafka: Kafka, pair: Pair, again: bool) -> Left:
    """The first server's last transactions are on its replica alone when both it and the streamer have died; with
    `again`, the streamer's last checkpoint is of before all that it sent."""
    name, kept = streamer.name, records(kafka, f"{streamer.name}.commit-log")[-1].value
    run(pair.first, *SENT.statements, database=name)
    streamer.wait_until_released()
    streamer.kill()
    run(pair.first, *UNSENT.statements, database=name)
    done = executed(pair.first)
    failover.caught_up(pair.second, done)
    pair.first.kill()
    if again:
        forgets(streamer, kafka, kept)
    failover.promote(pair.second)
    time.sleep(1.1)  # MariaDB tells times of commits in seconds
    left = Left(done, datetime.now(UTC), source_rows(pair.second, name))
    time.sleep(1.1)
    streamer.start()
    streamer.mysql = pair.second
    streamer.wait_for(lambda found: found["checkpoint"]["epoch"] == 1 and found["source"]["connected"])
    return left


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize("delivery", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_the_lake_of_a_stream_that_went_on_from_the_replica(
    spark: SparkSession, make: Make, pair: Pair, kafka: Kafka, delivery: str
) -> None:
    """Pitfall "Wrong server": a check of before the new epoch's first compaction waits for that, here by compacting
    itself. What was sent of the first server, and comes again from the second, lands once."""
    again = delivery == "at_least_once"
    name = f"overlake{pair.first.name}{int(again)}"
    streamer = over(make, kafka, name, pair, delivery=delivery)
    run(pair.first, *BEGUN, database=name)
    failover.caught_up(pair.second, executed(pair.first))
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [], compact="yes")
    left = moved_over(streamer, kafka, pair, again)
    run(pair.second, *SECOND.statements, database=name)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    sent = sum(len(records(kafka, f"{name}.{name}.{table}")) for table in ("items", "codes"))
    assert sent == SENT.changes * (1 + again) + UNSENT.changes + SECOND.changes

    assert epoch(pipeline) == 0
    told = verify(spark, pipeline, [], compact="yes")["tables"]
    assert epoch(pipeline) == 1
    assert {table: facts["equal"] for table, facts in told.items()} == {f"{name}.{table}": True for table in TABLES}
    assert lake_rows(pipeline) == source_rows(pair.second, name)
    assert lake_rows(pipeline, left.at.isoformat()) == left.rows
    each_change_is_there_once(spark, pipeline)
    the_history_is_in_order(spark, pipeline, left.done)


def epoch(pipeline: Pipeline) -> int:
    found = status.read(pipeline)
    assert found is not None
    assert found.checkpoint is not None
    return found.checkpoint.epoch


def each_change_is_there_once(spark: SparkSession, pipeline: Pipeline) -> None:
    lake = Lake(spark, pipeline)
    found = lake.frame(lake.changes).select("tbl", "gtid", "_seq.event", "_seq.row", "op").collect()
    assert len(set(found)) == len(found) == SENT.changes + UNSENT.changes + SECOND.changes


def the_history_is_in_order(spark: SparkSession, pipeline: Pipeline, first: GtidSet) -> None:
    """Of a row that both servers changed, and of one that the first removed and the second brought again. `first`: the
    first server's transactions."""
    history = History(spark, Lake(spark, pipeline), pipeline.name, "items")
    changes = [(row["key"], row["op"], first.contains(row["gtid"])) for row in history.changes().collect()]
    of = {n: [(op, own) for key, op, own in changes if key == f'{{"id":{n}}}'] for n in (1, 20)}
    assert of == {1: [("u", True), ("u", True), ("u", False)], 20: [("d", True), ("c", False)]}
    asked = "SELECT v, name, gtid, valid_from, valid_to FROM items_history WHERE id = 1 ORDER BY v"
    read = list(query(pipeline, asked).rows())
    assert [(v, name) for v, name, *_ in read] == [(0, "begun"), (1, "first"), (2, "first"), (3, "second")]
    assert [gtid and first.contains(gtid) for _, _, gtid, *_ in read] == [None, True, True, False]
    times = [row[3] for row in read[1:]]
    assert [row[4] for row in read] == [*times, None]
    assert times == sorted(times)
