"""What goes wrong around the streamer: each a message, an exit status and no traceback, and nothing lost after."""

from __future__ import annotations

import os
import random
import signal
import socket
import string
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from tests.integration.streaming import Streamer, execute, once, records, replayed, rows

Make = Callable[..., Streamer]


@pytest.fixture
def make(tmp_path: Path, mysql: MySQL, kafka: Kafka) -> Iterator[Make]:
    """A streamer over the session's servers, or over those given."""
    made: list[Streamer] = []

    def one(name: str, mysql: MySQL = mysql, kafka: Kafka = kafka, **more: Any) -> Streamer:
        execute(
            mysql,
            f"CREATE DATABASE IF NOT EXISTS {name}",
            f"CREATE TABLE IF NOT EXISTS {name}.t (id BIGINT PRIMARY KEY, v INT, name VARCHAR(40))",
        )
        made.append(Streamer(tmp_path, mysql, kafka, name, **more))
        return made[-1]

    yield one
    for streamer in made:
        streamer.close()


def fails(streamer: Streamer, *words: str, status: int = 1) -> str:
    """The run ends by itself with one message that holds the words, and no traceback."""
    streamer.start()
    assert streamer.end() == status, streamer.log()
    log = streamer.log()
    assert "Traceback" not in log
    for word in words:
        assert word in log, log
    assert streamer.password not in log
    return log


def insert(mysql: MySQL, db: str, first: int, count: int) -> None:
    values = ",".join(f"({n}, {n}, 'x')" for n in range(first, first + count))
    execute(mysql, f"INSERT INTO {db}.t VALUES {values}")


def arrived(kafka: Kafka, db: str) -> list[int]:
    return sorted(record.key["id"] for record in once(records(kafka, f"{db}.{db}.t")))


def create(kafka: Kafka, topic: NewTopic) -> None:
    client = AdminClient({"bootstrap.servers": kafka.address})
    for future in client.create_topics([topic]).values():
        future.result()


def test_wrong_password(make: Make) -> None:
    streamer = make("denied")
    streamer.password = "not-this-one"
    fails(streamer, "access_denied", "headrace", "password")


def test_server_not_reachable(make: Make) -> None:
    port = free_port()
    fails(make("nobody", mysql_port=port), "unreachable", f"127.0.0.1:{port}", "Start the server")


def test_port_in_use(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        fails(make("port", http=port), "port_in_use", str(port), "streamer.http")


def test_a_pipeline_file_with_three_mistakes(make: Make) -> None:
    streamer = make("mistaken")
    text = streamer.file.read_text()
    text = text.replace("partitions: 2", "partitions: 0").replace("start: latest", "start: yesterday")
    streamer.file.write_text(text.replace("server_id", "serverid"))
    log = fails(streamer, "partitions", "start", "did you mean server_id?", status=2)
    assert "mistakes" in log


def test_a_second_streamer_with_the_same_server_id(make: Make, mysql: MySQL) -> None:
    first = make("twins").started()
    second = make("twins2", server_id=first.values["server_id"])
    second.start()
    assert first.end() == 1
    assert "server_id" in first.log()
    assert "Traceback" not in first.log()
    second.wait_for(lambda status: status["state"] == "streaming")


def test_an_event_topic_that_compacts_is_refused(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    topic = NewTopic("compacts.compacts.t", 1, 1, config={"cleanup.policy": "compact"})
    create(kafka, topic)
    streamer = make("compacts")
    refused = streamer.command("topics")
    assert refused.returncode == 1
    assert "loses deletes" in refused.stderr
    assert "Traceback" not in refused.stderr
    streamer.started()
    insert(mysql, "compacts", 1, 3)
    assert streamer.end() == 1
    assert "cleanup.policy=delete" in streamer.log()
    assert "Traceback" not in streamer.log()


def test_a_topic_with_other_settings_is_used_and_told_of(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    topic = NewTopic("differs.differs.t", 5, 1, config={"retention.ms": "1000000"})
    create(kafka, topic)
    streamer = make("differs").started()
    insert(mysql, "differs", 1, 50)
    streamer.wait_until_released()
    assert "partitions is 5, the pipeline file wants 2" in streamer.log()
    assert arrived(kafka, "differs") == list(range(1, 51))
    told = streamer.command("topics")
    assert told.returncode == 0
    assert "differs" in told.stdout


def test_topics_with_records_but_no_checkpoint(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("again").started()
    insert(mysql, "again", 1, 3)
    streamer.wait_until_released()
    streamer.stop()
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.delete_topics(["again.commit-log"])["again.commit-log"].result()
    time.sleep(1)
    fails(streamer, "first_start", "again.again.t", "another name")


def test_a_record_too_large_stops_before_it_and_goes_on_behind(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("oversized", kafka_more=", max_message_bytes: 2000").started()
    execute(mysql, "CREATE TABLE oversized.big (id INT PRIMARY KEY, text TEXT)")
    insert(mysql, "oversized", 1, 10)
    execute(mysql, "INSERT INTO oversized.big VALUES (1, REPEAT('x', 3000))")
    insert(mysql, "oversized", 11, 10)
    assert streamer.end() == 1
    assert "record_too_large" in streamer.log()
    assert "Traceback" not in streamer.log()
    assert "xxxx" not in streamer.log()
    assert arrived(kafka, "oversized") == list(range(1, 11))
    streamer.file.write_text(streamer.file.read_text().replace("max_message_bytes: 2000", "max_message_bytes: 200000"))
    limit_records(kafka, "oversized.oversized.big", 200_000)
    streamer.started().wait_until_released()
    assert arrived(kafka, "oversized") == list(range(1, 21))
    assert len(records(kafka, "oversized.oversized.big")) == 1


def test_a_record_that_the_topic_refuses(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    create(kafka, NewTopic("refuses.refuses.t", 1, 1, config={"max.message.bytes": "900"}))
    streamer = make("refuses").started()
    execute(mysql, "ALTER TABLE refuses.t MODIFY name TEXT", "INSERT INTO refuses.t VALUES (1, 1, 'short')")
    # No compression makes this one small enough.
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=3000))
    execute(mysql, f"INSERT INTO refuses.t VALUES (2, 2, '{noise}')")
    insert(mysql, "refuses", 3, 3)
    assert streamer.end() == 1
    assert "refuses.refuses.t" in streamer.log()
    assert "size too large" in streamer.log()
    assert noise not in streamer.log()
    assert "Traceback" not in streamer.log(), streamer.log()
    limit_records(kafka, "refuses.refuses.t", 100_000)
    streamer.started().wait_until_released()
    assert arrived(kafka, "refuses") == [1, 2, 3, 4, 5]


def limit_records(kafka: Kafka, topic: str, limit: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": kafka.address})
    for future in client.incremental_alter_configs([resource]).values():
        future.result()


def test_kafka_down_at_the_start(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]) -> None:
    own = kafka_server()
    own.stop()
    streamer = make("late", kafka=own)
    streamer.start()
    streamer.wait_for(lambda status: (status["state"], status["waiting_for"]) == ("waiting", "Kafka"))
    assert '"waiting"' in streamer.log()
    own.start()
    streamer.wait_for(lambda status: status["state"] == "streaming")
    insert(mysql, "late", 1, 5)
    streamer.wait_until_released()
    assert arrived(own, "late") == [1, 2, 3, 4, 5]
    assert streamer.stop() == 0


def test_kafka_down_in_the_middle(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]) -> None:
    own = kafka_server()
    streamer = make("away", kafka=own, max_events=2000).started()
    insert(mysql, "away", 0, 100)
    streamer.wait_until_released()
    own.kill()
    for n in range(1, 60):
        insert(mysql, "away", n * 100, 100)
    status = streamer.wait_for(lambda status: (status["state"], status["waiting_for"]) == ("waiting", "Kafka"))
    assert 2000 <= status["queue"]["events"] <= 2100, "bounded"
    assert not status["sink"]["healthy"]
    time.sleep(3)
    own.start()
    streamer.wait_until_released(120)
    streamer.wait_for(lambda status: status["state"] == "streaming" and status["sink"]["healthy"])
    assert arrived(own, "away") == list(range(6000))
    assert "Traceback" not in streamer.log()
    assert streamer.stop() == 0


def test_a_stop_while_kafka_is_away_ends_in_time(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]) -> None:
    own = kafka_server()
    streamer = make("gone", kafka=own, shutdown=3).started()
    insert(mysql, "gone", 0, 10)
    streamer.wait_until_released()
    own.kill()
    insert(mysql, "gone", 10, 10)
    streamer.wait_for(lambda status: status["queue"]["events"] >= 10)
    began = time.monotonic()
    assert streamer.stop() == 0
    assert time.monotonic() - began < 10
    assert "sent again at the next start" in streamer.log()
    own.start()
    streamer.started().wait_until_released()
    assert arrived(own, "gone") == list(range(20))


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
                kill_dumps(cursor)
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
        kill_dumps(cursor)
        status = streamer.wait_for(lambda status: "Too many connections" in str(status["last_error"]))
        assert (status["state"], status["last_error"]["kind"]) == ("waiting", "unreachable")
        cursor.execute("INSERT INTO crowded.t VALUES (3, 3, 'while it was full')")
        cursor.execute("SET GLOBAL max_connections = 50")
    streamer.wait_until_released()
    assert arrived(kafka, "crowded") == [0, 1, 2, 3]
    assert "Traceback" not in streamer.log()


def kill_dumps(cursor: Any) -> None:
    cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
    for (number,) in cursor.fetchall():
        cursor.execute(f"KILL {number}")


def test_another_server_behind_the_address(
    make: Make, mysql: MySQL, kafka: Kafka, mysql_server: Callable[..., MySQL]
) -> None:
    streamer = make("swapped").started()
    insert(mysql, "swapped", 0, 3)
    streamer.wait_until_released()
    streamer.stop()
    other = mysql_server()
    streamer.file.write_text(streamer.file.read_text().replace(f"port: {mysql.port}", f"port: {other.port}"))
    streamer.password = other.password
    fails(streamer, "wrong_server", "Point source.host")


def test_a_server_with_the_wrong_settings(make: Make, kafka: Kafka, mysql_server: Callable[..., MySQL]) -> None:
    own = mysql_server(options=["binlog_row_metadata=MINIMAL", "binlog_row_image=MINIMAL"])
    log = fails(make("settings", mysql=own), "preflight", "binlog_row_metadata", "binlog_row_image")
    assert "SET" in log


def test_purged_binlogs(make: Make, kafka: Kafka, mysql_server: Callable[..., MySQL]) -> None:
    own = mysql_server()
    streamer = make("purged", mysql=own).started()
    insert(own, "purged", 0, 3)
    streamer.wait_until_released()
    streamer.stop()
    insert(own, "purged", 3, 3)
    with own.connect() as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        last = cursor.fetchall()[-1][0]
        cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
    fails(streamer, "snapshot")
    assert streamer.command("check").returncode == 1


def test_a_frozen_server_is_noticed(make: Make, kafka: Kafka, mysql_server: Callable[..., MySQL]) -> None:
    own = mysql_server()
    streamer = make("frozen", mysql=own).started()
    insert(own, "frozen", 0, 3)
    streamer.wait_until_released()
    pid = int((own.data / "mysqld.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        streamer.wait_for(lambda status: status["state"] == "waiting", 20)
    finally:
        os.kill(pid, signal.SIGCONT)
    insert(own, "frozen", 3, 3)
    streamer.wait_until_released()
    assert arrived(kafka, "frozen") == list(range(6))


def test_check_finds_everything_at_once(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("checked")
    well = streamer.command("check")
    assert well.returncode == 0, well.stdout + well.stderr
    assert "checked.t" in well.stdout
    assert "missing" in well.stdout, "it makes no topic"
    streamer.password = "not-this-one"
    streamer.file.write_text(streamer.file.read_text().replace(kafka.address, f"127.0.0.1:{free_port()}"))
    ill = streamer.command("check")
    assert ill.returncode == 1
    assert "Access denied" in ill.stdout
    assert "no broker answers" in " ".join(ill.stdout.split())
    assert "Traceback" not in ill.stdout + ill.stderr


def test_a_stop_while_the_first_start_waits_for_kafka(make: Make, kafka: Kafka) -> None:
    streamer = make("waits")
    streamer.file.write_text(streamer.file.read_text().replace(kafka.address, f"127.0.0.1:{free_port()}"))
    streamer.start()
    streamer.wait_for(lambda status: status["state"] == "waiting")
    assert streamer.stop() == 0
    assert "Traceback" not in streamer.log()
