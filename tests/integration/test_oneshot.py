"""`headrace run --oneshot`: what the server has is delivered and checkpointed, then the streamer ends by itself."""

from __future__ import annotations

import pytest

from contract import gtids
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import executed
from tests.integration.streaming import Make, Streamer, arrived, execute, fails, insert
from tests.integration.topic_records import records


def checkpoint(kafka: Kafka, name: str) -> str:
    return str([record.value["gtid_set"] for record in records(kafka, f"{name}.commit-log")][-1])


def ended(streamer: Streamer) -> None:
    streamer.start("--oneshot")
    assert streamer.end(40) == 0, streamer.log()


@pytest.mark.parametrize(
    ("kind", "delivery"),
    [
        ("mysql", "exactly_once"),
        ("mariadb", "at_least_once"),
        pytest.param("mysql", "at_least_once", marks=pytest.mark.soak),
        pytest.param("mariadb", "exactly_once", marks=pytest.mark.soak),
    ],
)
def test_oneshot_runs_deliver_what_is_there_and_end(
    make: Make, request: pytest.FixtureRequest, kafka: Kafka, kind: str, delivery: str
) -> None:
    server: Database = request.getfixturevalue(kind)
    streamer = make(f"once{kind}{delivery[:2]}", server, delivery=delivery)
    ended(streamer)  # a first start at `latest`: nothing to do, but from here on
    insert(server, streamer.name, 1, 500)
    execute(server, f"CREATE DATABASE IF NOT EXISTS {streamer.name}_other")  # the last transaction is none of its own
    wanted = executed(server)
    ended(streamer)
    assert arrived(kafka, streamer.name) == list(range(1, 501))
    assert gtids.parse(checkpoint(kafka, streamer.name)).issuperset(wanted)
    ended(streamer)  # nothing new
    assert arrived(kafka, streamer.name) == list(range(1, 501))


def test_the_mode_of_the_pipeline_file_counts_and_a_stop_before_the_end_is_an_error(
    make: Make, mysql: Database, kafka: Kafka
) -> None:
    streamer = make("oncecut", mysql)
    streamer.file.write_text(streamer.file.read_text().replace("  start:", "  mode: oneshot\n  start:"))
    streamer.start()
    assert streamer.end(40) == 0, streamer.log()
    streamer.file.write_text(streamer.file.read_text().replace(kafka.address, "127.0.0.1:1"))
    streamer.start()
    streamer.wait_for(lambda status: status["state"] == "waiting")
    assert streamer.stop() == 1
    assert '"kind": "cut_short"' in streamer.log()


def test_a_standby_can_not_be_oneshot(make: Make, mysql: Database) -> None:
    streamer = make("onceha", mysql)
    streamer.file.write_text(streamer.file.read_text().replace("  start:", "  high_availability: true\n  start:"))
    told = streamer.command("run", "--oneshot")
    assert told.returncode == 2
    assert "--oneshot" in told.stderr
    streamer.file.write_text(streamer.file.read_text().replace("  start:", "  mode: oneshot\n  start:"))
    fails(streamer, "streamer.high_availability", "set streamer.mode to continuous", status=2)
