"""What MySQL does while the streamer reads it: nothing is lost and, without a crash, nothing comes twice."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, arrived, execute, fails, insert, kill_dumps, rows
from tests.integration.topic_records import records, replayed


def test_a_second_streamer_with_the_same_server_id(make: Make, mysql: MySQL) -> None:
    """Pitfall "Two replicas with one server id": another pipeline's is refused before it reads; of two of one pipeline
    the first ends and says so, without a loop."""
    first = make("twins").started()
    other = make("twins2", server_id=first.values["server_id"])
    fails(other, "preflight", "server_id", "another pipeline", "source.server_id")
    assert first.status()["state"] == "streaming"
    assert first.status()["source"]["reconnects"] == 0
    second = make("twins", server_id=first.values["server_id"])
    second.start()
    assert first.end() == 1
    assert "server_id_in_use" in first.log() or "fenced" in first.log(), "whoever is the quicker to tell"
    assert "Traceback" not in first.log()
    second.wait_for(lambda status: status["state"] == "streaming")


def test_mysql_restarted(make: Make, kafka: Kafka, mysql_server: Callable[..., MySQL]) -> None:
    own = mysql_server()
    streamer = make("restarted", mysql=own).started()
    insert(own, "restarted", 0, 100)
    streamer.wait_until_released()
    own.stop()
    streamer.wait_for(lambda status: status["state"] == "waiting" and "MySQL" in status["waiting_for"])
    own.start()
    insert(own, "restarted", 100, 100)
    status = streamer.wait_until_released()
    assert status["source"]["reconnects"] >= 1
    found = records(kafka, "restarted.restarted.t")
    assert sorted(r.key["id"] for r in found) == list(range(200)), "each once"
    assert "Traceback" not in streamer.log()


@pytest.mark.soak
def test_a_dump_that_the_server_drops_while_kafka_is_away(
    make: Make, mysql_server: Callable[..., MySQL], kafka_server: Callable[..., Kafka]
) -> None:
    source, broker = mysql_server(options=["net_write_timeout=1"]), kafka_server()
    streamer = make("dropped", mysql=source, kafka=broker, max_events=1000).started()
    execute(source, "ALTER TABLE dropped.t MODIFY name TEXT")
    insert(source, "dropped", 0, 10)
    streamer.wait_until_released()
    broker.kill()
    for n in range(1, 31):  # 30 MB: more than the sockets hold
        values = ",".join(f"({n * 1000 + i}, 1, REPEAT('x', 1000))" for i in range(1000))
        execute(source, f"INSERT INTO dropped.t VALUES {values}")
    time.sleep(5)
    broker.start()
    status = streamer.wait_until_released(240)
    assert status["source"]["reconnects"] >= 1
    found = records(broker, "dropped.dropped.t")
    assert len(found) == 30_010
    assert len({record.key["id"] for record in found}) == 30_010, "each once"


def test_a_dump_killed_by_the_server_is_opened_again(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("cut").started()
    with mysql.connect() as root, root.cursor() as cursor:
        for n in range(20):
            insert(mysql, "cut", n * 100, 100)
            if n % 4 == 3:
                kill_dumps(cursor, "headrace")
    streamer.wait_until_released()
    found = records(kafka, "cut.cut.t")
    assert sorted(r.key["id"] for r in found) == list(range(2000)), "each once"
    assert replayed(sorted(found, key=lambda r: r.seq)) == rows(mysql, "cut.t")


def test_a_server_without_a_free_connection_is_waited_for(
    make: Make, kafka: Kafka, mysql_server: Callable[..., MySQL]
) -> None:
    own = mysql_server()
    streamer = make("crowded", mysql=own).started()
    insert(own, "crowded", 0, 3)
    streamer.wait_until_released()
    with own.connect() as root, root.cursor() as cursor:
        cursor.execute("SET GLOBAL max_connections = 1")  # root's own is the one
        kill_dumps(cursor, "headrace")
        status = streamer.wait_for(lambda status: "Too many connections" in str(status["last_error"]))
        assert (status["state"], status["last_error"]["kind"]) == ("waiting", "unreachable")
        cursor.execute("INSERT INTO crowded.t VALUES (3, 3, 'while it was full')")
        cursor.execute("SET GLOBAL max_connections = 50")
    streamer.wait_until_released()
    assert arrived(kafka, "crowded") == [0, 1, 2, 3]
    assert "Traceback" not in streamer.log()
