"""What a start must not pass by: one message, an exit status, no traceback; after the mend all rows are there."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from streamer.source import facts
from tests.integration.decoding import executed, purge, source
from tests.integration.streaming import ROOT, Make, Streamer, arrived, execute, fails, insert, kill_dumps
from tests.integration.topic_records import records


def begun(make: Make, mysql: MySQL, name: str, **more: Any) -> Streamer:
    """A streamer that has streamed the rows 0 to 4 and was stopped."""
    streamer = make(name, mysql=mysql, **more).started()
    insert(mysql, name, 0, 5)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    return streamer


def goes_on(streamer: Streamer) -> None:
    """After the mend: the rows 5 to 9, committed while it did not run, have come too, each once."""
    streamer.started().wait_until_released()
    found = [record.key["id"] for record in records(streamer.kafka, f"{streamer.name}.{streamer.name}.t")]
    assert sorted(found) == list(range(10))


def test_wrong_password(make: Make, mysql: MySQL) -> None:
    streamer = begun(make, mysql, "denied")
    right, streamer.password = streamer.password, "not-this-one"
    fails(streamer, "access_denied", "headrace", "password")
    insert(mysql, "denied", 5, 5)
    streamer.password = right
    goes_on(streamer)


def test_a_password_changed_while_it_streams(make: Make, mysql: MySQL, tmp_path: Path) -> None:
    user = "CREATE USER IF NOT EXISTS 'changing'@'%' IDENTIFIED BY 'one'"
    execute(mysql, user, "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'changing'@'%'")
    secret = tmp_path / "password"
    secret.write_text("one\n")
    streamer = make("changed")
    text = streamer.file.read_text().replace("user: headrace", "user: changing")
    streamer.file.write_text(text.replace("password: ${TEST_PASSWORD}", f"password_file: {secret}"))
    streamer.started()
    insert(mysql, "changed", 0, 5)
    streamer.wait_until_released()
    execute(mysql, "ALTER USER 'changing'@'%' IDENTIFIED BY 'other-one'")
    with mysql.connect() as root, root.cursor() as cursor:
        kill_dumps(cursor, "changing")
    assert streamer.end() == 1
    assert "access_denied" in streamer.log()
    insert(mysql, "changed", 5, 5)
    fails(streamer, "access_denied")
    secret.write_text("other-one\n")
    goes_on(streamer)


def refused(streamer: Streamer, *words: str) -> str:
    """Both commands, `run` and `check`, name the words and end with status 1; what `check` printed."""
    fails(streamer, *words)
    checked = streamer.command("check")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "Traceback" not in checked.stdout + checked.stderr
    text = " ".join(checked.stdout.split())
    assert [word for word in words if word not in text] == []
    return text


def test_a_server_that_is_away_then_without_binlog_then_without_grants(
    make: Make, mysql_server: Callable[..., MySQL]
) -> None:
    own = mysql_server()
    streamer = begun(make, own, "mended")
    insert(own, "mended", 5, 1)
    own.stop()
    refused(streamer, f"127.0.0.1:{own.port}", "Start the server")
    options, own.options = own.options, (*own.options, "skip_log_bin")
    own.start()
    refused(streamer, "writes no binlog", "Set log_bin")
    own.stop()
    own.options = options
    own.start()
    execute(own, "REVOKE REPLICATION SLAVE ON *.* FROM 'headrace'@'%'")
    text = refused(streamer, "lacks REPLICATION SLAVE")
    [grant] = re.findall(r"GRANT [^;]*;", text)
    execute(own, grant)
    insert(own, "mended", 6, 4)
    goes_on(streamer)


def test_port_in_use(make: Make, mysql: MySQL) -> None:
    streamer = begun(make, mysql, "port")
    with socket.create_server(("127.0.0.1", streamer.values["http"])):
        refused(streamer, str(streamer.values["http"]), "streamer.http")
        assert "port_in_use" in streamer.log()
        insert(mysql, "port", 5, 5)
    goes_on(streamer)


def test_check_and_status_beside_the_running_streamer(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    streamer = make("beside").started()
    checked = streamer.command("check")
    assert checked.returncode == 0, checked.stdout
    text = " ".join(checked.stdout.split())
    assert "this pipeline's streamer runs there" in text
    assert "warning" not in text, "its own server id is no other's"
    monkeypatch.setattr(streamer, "_environment", lambda: {**os.environ, "PYTHONPATH": str(ROOT)})
    assert "TEST_PASSWORD is not set" in streamer.command("check").stderr
    asked = streamer.command("status")
    assert asked.returncode == 0, "it needs no password: " + asked.stderr
    assert "streaming" in asked.stdout


def test_a_pipeline_file_with_three_mistakes(make: Make) -> None:
    streamer = make("mistaken")
    text = streamer.file.read_text()
    text = text.replace("partitions: 2", "partitions: 0").replace("start: latest", "start: yesterday")
    streamer.file.write_text(text.replace("server_id", "serverid"))
    log = fails(streamer, "partitions", "start", "did you mean server_id?", status=2)
    assert "mistakes" in log


def test_a_server_with_the_wrong_settings(make: Make, mysql_server: Callable[..., MySQL]) -> None:
    own = mysql_server()
    streamer = begun(make, own, "settings")
    with own.connect() as session, session.cursor() as cursor:  # it keeps the settings that it began with
        execute(own, "SET GLOBAL binlog_row_metadata = MINIMAL", "SET GLOBAL binlog_row_image = MINIMAL")
        log = fails(streamer, "preflight", "binlog_row_metadata", "binlog_row_image")
        execute(own, *re.findall(r"SET PERSIST \w+ = '\w+'", log))
        cursor.execute("INSERT INTO settings.t VALUES " + ",".join(f"({n}, {n}, 'x')" for n in range(5, 10)))
    goes_on(streamer)


def test_another_server_behind_the_address(
    make: Make, mysql: MySQL, kafka: Kafka, mysql_server: Callable[..., MySQL]
) -> None:
    """Pitfall "Wrong server"."""
    streamer = make("swapped").started()
    insert(mysql, "swapped", 0, 3)
    streamer.wait_until_released()
    streamer.stop()
    other = mysql_server()
    streamer.file.write_text(streamer.file.read_text().replace(f"port: {mysql.port}", f"port: {other.port}"))
    streamer.password = other.password
    fails(streamer, "wrong_server", "Point source.host")


def test_purged_binlogs(make: Make, kafka: Kafka, mysql_server: Callable[..., MySQL]) -> None:
    """Pitfall "Purged position": before the dump."""
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
    purge(own, last)  # again and again: the dump that has just ended may still hold its file
    fails(streamer, "snapshot")
    assert streamer.command("check").returncode == 1


def test_topics_with_records_but_no_checkpoint(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("again").started()
    insert(mysql, "again", 1, 3)
    streamer.wait_until_released()
    streamer.stop()
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.delete_topics(["again.commit-log"])["again.commit-log"].result()
    for future in client.delete_records([TopicPartition("again.again.t", n, OFFSET_END) for n in (0, 1)]).values():
        future.result()  # as records go by their retention
    time.sleep(1)
    fails(streamer, "first_start", "again.again.t", "another name")
    checked = streamer.command("check")
    assert (checked.returncode, "again.again.t" in checked.stdout) == (1, True)


def test_schemas_lost_and_brought_back(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = begun(make, mysql, "forgot")
    topic = "forgot.schemas"
    [kept] = records(kafka, topic)
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.delete_topics([topic])[topic].result()
    time.sleep(1)
    checked = streamer.command("check")
    assert checked.returncode == 1
    assert "empty, or was deleted" in " ".join(checked.stdout.split())
    for _ in range(2):  # the first start makes the topic anew, and the second one finds it empty
        fails(streamer, "schemas_lost", topic, "backup")
    insert(mysql, "forgot", 5, 5)
    producer = Producer({"bootstrap.servers": kafka.address})
    producer.produce(topic, json.dumps(kept.value), json.dumps(kept.key, separators=(",", ":")))
    assert producer.flush(30) == 0
    goes_on(streamer)
    assert streamer.status()["schemas"] == {"forgot.t": 1}


def test_check_finds_everything_at_once(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("lookedat")
    well = streamer.command("check")
    assert well.returncode == 0, well.stdout + well.stderr
    assert "lookedat.t" in well.stdout
    assert "is missing yet: headrace run makes it, and so does headrace topics" in well.stdout, "it makes none"
    streamer.password = "not-this-one"
    streamer.file.write_text(streamer.file.read_text().replace(kafka.address, f"127.0.0.1:{free_port()}"))
    ill = streamer.command("check")
    assert ill.returncode == 1
    assert "Access denied" in ill.stdout
    assert "no broker answers" in " ".join(ill.stdout.split())
    assert "Traceback" not in ill.stdout + ill.stderr


@pytest.mark.soak
def test_a_first_start_at_a_time_and_at_a_position(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("moment")
    insert(mysql, "moment", 0, 3)
    time.sleep(1.1)
    moment = datetime.now(UTC).isoformat()
    place = facts(source(mysql))
    insert(mysql, "moment", 3, 3)
    streamer.file.write_text(streamer.file.read_text().replace("start: latest", f"start: {moment}"))
    checked = " ".join(streamer.command("check").stdout.split())
    assert f"the first start begins at {place.file}:{place.pos}: transaction" in checked
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert arrived(kafka, "moment") == [3, 4, 5]
    other = make("momentplace", start=f"{place.file}:{place.pos}")
    text = other.file.read_text()
    other.file.write_text(text.replace('include: ["momentplace.*"]', 'include: ["moment.*"]'))
    other.started().wait_until_released()
    found = [record.key["id"] for record in records(kafka, "momentplace.moment.t")]
    assert sorted(found) == [3, 4, 5]
    ill = make("momentill", start=f"{place.file}:{place.pos + 1}")
    refused(ill, "in the middle of a transaction", f"{place.file}:{place.pos}, where it begins")


@pytest.mark.soak_on("mysql80")
def test_a_first_start_at_a_gtid_set_that_the_server_has_not(make: Make, server: Database, kafka: Kafka) -> None:
    """Nothing is durable then: the corrected file starts."""
    name = f"beyond{type(server).__name__.lower()}"
    wrong = "7-7-5000" if server.flavor == "mariadb" else "77777777-7777-7777-7777-777777777777:1-5000"
    streamer = make(name, mysql=server, start=f"'{wrong}'")
    refused(streamer, f"the server has not executed {wrong}", "streamer.start")
    topics = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=5).topics
    assert not [topic for topic in topics if topic.startswith(f"{name}.")], "nothing is made for it yet"
    known = str(executed(server))
    insert(server, name, 0, 2)
    streamer.file.write_text(streamer.file.read_text().replace(wrong, known))
    streamer.started().wait_until_released()
    assert arrived(kafka, name) == [0, 1]


def test_a_stop_while_the_first_start_waits_for_kafka(make: Make, kafka: Kafka) -> None:
    streamer = make("waits")
    streamer.file.write_text(streamer.file.read_text().replace(kafka.address, f"127.0.0.1:{free_port()}"))
    streamer.start()
    streamer.wait_for(lambda status: status["state"] == "waiting")
    assert streamer.stop() == 0
    assert "Traceback" not in streamer.log()
