"""Exactly-once delivery on real servers: readers of committed records see each change once, in order, whatever ends a
streamer: SIGKILL, SIGTERM, SIGSTOP for longer than the broker waits, another streamer of the pipeline."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import pytest

from contract.checkpoint import Checkpoint
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.few_keys import Writing
from tests.integration.streaming import Make, Streamer, execute, insert, rows
from tests.integration.topic_records import Record, records, replayed

KILLS = 4  # test_exactly_once_everything.py has more
LARGE = 100_000  # two Kafka transactions' records


def committed(kafka: Kafka, db: str) -> list[Record]:
    """The table's records; asserts that none is there twice or out of its place, and that the commit log is behind
    them."""
    found = records(kafka, f"{db}.{db}.t")
    places = [(record.partition, record.seq) for record in found]
    assert places == sorted(set(places)), "a record is there twice, or out of its place"
    log = [Checkpoint.model_validate(record.value) for record in records(kafka, f"{db}.commit-log")]
    assert [one.place for one in log] == sorted(one.place for one in log)
    assert log[-1].events == len(found)
    return found


def large(mysql: Database, db: str, first: int, count: int = LARGE) -> None:
    """One transaction of so many rows."""
    digits = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(10))
    numbers = "SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n AS id FROM " + ", ".join(
        f"({digits}) {name}" for name in "abcdef"
    )
    execute(mysql, f"INSERT INTO {db}.t SELECT {first} + id, id, 'x' FROM ({numbers}) AS numbers WHERE id < {count}")


def in_the_middle(streamer: Streamer, before: int = 0) -> None:
    """Returns when a part of the large transaction was sent. `before`: bytes that had been sent before it."""
    streamer.wait_for(lambda status: status["bytes_sent"] > before + 2_000_000)


@pytest.mark.soak
def test_killed_at_random_moments_readers_see_each_change_once(
    make: Make, mysql: MySQL, kafka: Kafka, writing: Writing
) -> None:
    streamer = make("oncekills").started()
    writer = writing("oncekills")
    moment = random.Random(7)
    for _ in range(KILLS):
        time.sleep(moment.uniform(0.2, 2.0))
        streamer.kill()
        streamer.started()
    writer.end()
    streamer.wait_until_released()
    assert streamer.stop() == 0
    found = committed(kafka, "oncekills")
    assert len(found) > 500
    assert replayed(found) == rows(mysql, "oncekills.t")


def test_nothing_is_visible_of_a_transaction_that_was_sent_in_part(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("oncelarge", shutdown=2).started()
    insert(mysql, "oncelarge", 10**6, 5)
    streamer.wait_until_released()
    for number, end in enumerate((streamer.kill, streamer.stop)):
        before = streamer.status()["bytes_sent"]
        large(mysql, "oncelarge", number * LARGE)
        in_the_middle(streamer, before)
        end()
        streamer.start()  # it takes back at once what the one before had open
        streamer.wait_for(lambda status: status["state"] == "streaming")
        streamer.wait_until_released()
    assert streamer.stop() == 0
    assert len(committed(kafka, "oncelarge")) == 2 * LARGE + 5


def test_a_second_streamer_takes_the_pipeline_and_the_first_ends(
    make: Make, mysql: MySQL, kafka: Kafka, writing: Writing
) -> None:
    """Under load: the first one finds that it is shut out while the second still starts."""
    first = make("oncetwo").started()
    writer = writing("oncetwo")
    first.wait_for(lambda status: status["checkpoint"]["events"] > 20)
    second = make("oncetwo").started()
    assert first.end() == 1
    assert "another producer took the transactional id headrace-oncetwo" in first.log()
    assert "Traceback" not in first.log()
    writer.end()
    second.wait_until_released()
    assert second.stop() == 0
    assert replayed(committed(kafka, "oncetwo")) == rows(mysql, "oncetwo.t")


@pytest.mark.soak
def test_a_kafka_transaction_that_the_broker_gave_up_is_read_and_sent_again(
    make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]
) -> None:
    own = kafka_server({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"})
    streamer = make("oncelate", kafka=own, kafka_more=", transaction_timeout_seconds: 6").started()
    large(mysql, "oncelate", 0, 50_000)
    in_the_middle(streamer)
    assert streamer.process is not None
    streamer.process.send_signal(signal.SIGSTOP)
    time.sleep(8)
    streamer.process.send_signal(signal.SIGCONT)
    streamer.wait_until_released()
    assert "beginning again at the last checkpoint" in streamer.log()
    assert streamer.stop() == 0
    assert len(committed(own, "oncelate")) == 50_000
