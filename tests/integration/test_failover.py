"""The first server dies, and the stream goes on from its replica by GTID: nothing lost, nothing twice, a new epoch."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contract.gtids import parse
from stack.database import Database
from stack.kafka import Kafka
from tests.integration import failover
from tests.integration.decoding import executed, run
from tests.integration.proxy import Proxy
from tests.integration.streaming import Make, Streamer, execute, fails, insert, rows
from tests.integration.test_exactly_once import LARGE, committed, large
from tests.integration.topic_records import Record, records, replayed

Another = Callable[..., Database]


class Pair(NamedTuple):
    first: Database
    second: Database


@pytest.fixture
def pair(server: Database, another: Another) -> Pair:
    """A server and its replica, with one password for the streamer's user."""
    options = failover.options(server.flavor)
    first, second = another(options, server_id=11), another(options, server_id=12)
    failover.replicate(first, second)
    share_password(first, second)
    return Pair(first, second)


def share_password(first: Database, second: Database) -> None:
    run(second, "SET sql_log_bin = 0", f"ALTER USER headrace IDENTIFIED BY '{first.password}'")
    (second.home / "headrace.password").write_text(first.password)


def over(make: Make, kafka: Kafka, name: str, pair: Pair, **more: Any) -> Streamer:
    """A streamer of the first server that may go on from the second."""
    streamer = make(name, mysql=pair.first, kafka=kafka, **more)
    text = streamer.file.read_text()
    also = f"  failover: ['127.0.0.1:{pair.second.port}']\n  failover_seconds: 2\n"
    streamer.file.write_text(text.replace("tables: ", f"{also}tables: "))
    return streamer


class Load(threading.Thread):
    """Transactions of three statements each, the last one large, until it is ended."""

    def __init__(self, server: Database, name: str, base: int) -> None:
        super().__init__(daemon=True)
        self.connection = server.connect(database=name, autocommit=False)
        self.base, self.ending, self.transactions = base, False, 0

    def run(self) -> None:
        with self.connection.cursor() as cursor:
            while not self.ending:
                at = self.base + self.transactions * 1000
                values = ",".join(f"({at + n}, {n}, 'some text')" for n in range(900))
                cursor.execute(f"INSERT INTO t VALUES {values}")
                cursor.execute("UPDATE t SET v = v + 1 WHERE id = %s", (at,))
                cursor.execute("DELETE FROM t WHERE id BETWEEN %s AND %s", (at + 1, at + 3))
                self.connection.commit()
                self.transactions += 1
                time.sleep(0.03)  # what is written must be replicated and read back

    def end(self) -> None:
        self.ending = True
        self.join(30)
        self.connection.close()


@pytest.mark.lacks("mysql80", "its replica takes over in test_source_pitfalls.py")
def test_the_stream_goes_on_from_the_replica_under_load(make: Make, pair: Pair, kafka: Kafka) -> None:
    """Pitfall "Wrong server": GTID failover to another server continues and raises the epoch."""
    name = f"failover{pair.first.flavor}"
    streamer = over(make, kafka, name, pair).started()
    load = Load(pair.first, name, 0)
    load.start()
    time.sleep(0.7)
    assert streamer.process is not None
    streamer.process.send_signal(signal.SIGSTOP)  # so that it has not read all when the server dies
    time.sleep(0.7)
    load.end()
    failover.caught_up(pair.second, executed(pair.first))
    pair.first.kill()
    streamer.process.send_signal(signal.SIGCONT)
    began = time.monotonic()
    failover.promote(pair.second)
    more = Load(pair.second, name, 100_000_000)
    more.start()
    status = streamer.wait_for(lambda status: status["source"]["port"] == pair.second.port)
    streamer.wait_for(lambda status: status["checkpoint"]["epoch"] == 1 and status["source"]["connected"])
    print(f"failover of {pair.first.title}: {time.monotonic() - began:.2f} s")
    time.sleep(0.5)
    more.end()
    streamer.mysql = pair.second
    status = streamer.wait_until_released()
    assert streamer.stop() == 0

    assert load.transactions > 5
    assert more.transactions > 2
    assert status["checkpoint"]["epoch"] == 1
    found = sorted(records(kafka, f"{name}.{name}.t"), key=lambda record: record.seq)
    assert {record.seq[0] for record in found} == {0, 1}
    assert len({record.identity for record in found}) == len(found), "nothing twice"
    assert replayed(found) == rows(pair.second, f"{name}.t")
    the_epoch_is_durable_before_its_first_record(kafka, name, found)
    assert "Traceback" not in streamer.log()


def the_epoch_is_durable_before_its_first_record(kafka: Kafka, name: str, found: list[Record]) -> None:
    """The first checkpoint of the new epoch has all whole transactions of the old one, and none of the new one."""
    checkpoints = [record.value for record in records(kafka, f"{name}.commit-log")]
    raised = next(value for value in checkpoints if value["epoch"] == 1)
    before = checkpoints[checkpoints.index(raised) - 1]
    assert (before["epoch"], before["gtid_set"], before["events"]) == (0, raised["gtid_set"], raised["events"])
    assert before["server_uuid"] != raised["server_uuid"]
    seen = parse(raised["gtid_set"])
    place = (1, int(raised["file"].rpartition(".")[2]), raised["pos"])
    new = [record for record in found if record.seq[0] == 1]
    assert all(not seen.contains(record.value["source"]["gtid"]) for record in new)
    assert all(record.seq[:3] >= place for record in new)
    half = {record.value["source"]["gtid"] for record in new}
    old = {record.value["source"]["gtid"] for record in found if record.seq[0] == 0}
    assert len(old & half) <= 1, "at most the transaction that was being read"


def test_the_first_server_dies_halfway_through_a_large_transaction(
    make: Make, mysql_server: Callable[..., Database], kafka: Kafka
) -> None:
    """Exactly once: readers of committed records see all of it once, in order, from the second server alone."""
    first, second = mysql_server(server_id=11), mysql_server(server_id=12)
    failover.replicate(first, second)
    share_password(first, second)
    name = "halfover"
    proxy = Proxy(first.port)
    streamer = over(make, kafka, name, Pair(first, second))
    streamer.file.write_text(streamer.file.read_text().replace(f"port: {first.port}\n", f"port: {proxy.port}\n"))
    streamer.started()
    insert(first, name, 10**6, 5)
    streamer.wait_until_released()
    proxy.cut_after(1_000_000)  # of the some 3 MB that the transaction takes
    large(first, name, 0)
    failover.caught_up(second, executed(first))
    assert proxy.is_cut
    first.kill()
    failover.promote(second)
    insert(second, name, 2 * 10**6, 5)
    streamer.mysql = second
    status = streamer.wait_until_released()
    assert streamer.stop() == 0
    assert status["checkpoint"]["epoch"] == 1
    assert "another server goes on in the middle of a transaction" in streamer.log()
    found = committed(kafka, name)
    assert len(found) == LARGE + 10
    assert {record.seq[0] for record in found if record.key["id"] < 10**6} == {1}, "nothing of it from the first server"
    assert replayed(found) == rows(second, f"{name}.t")


@pytest.mark.lacks("mysql80", "its replica takes over in test_source_pitfalls.py")
def test_a_replica_that_lacks_what_was_streamed_is_refused(make: Make, pair: Pair, kafka: Kafka) -> None:
    """Pitfall "Wrong server": one that lost committed transactions, and has others in their place."""
    name = f"lacking{pair.first.flavor}"
    streamer = over(make, kafka, name, pair).started()
    insert(pair.first, name, 0, 5)
    streamer.wait_until_released()
    failover.caught_up(pair.second, executed(pair.first))
    failover.promote(pair.second)
    insert(pair.first, name, 5, 5)
    streamer.wait_until_released()
    execute(pair.second, f"INSERT INTO {name}.t VALUES (100, 1, 'errant')")
    pair.first.kill()
    words = "not in the master's binlog" if pair.first.flavor == "mariadb" else "lacks transactions"
    status = streamer.wait_for(lambda status: words in str(status["last_error"]))
    assert status["state"] == "waiting"
    time.sleep(1)
    assert streamer.status()["source"]["port"] == pair.first.port, "it is still the first one's"
    checked = streamer.command("check")
    assert checked.returncode == 1
    pair.first.start()
    insert(pair.first, name, 10, 5)
    status = streamer.wait_until_released()
    assert streamer.stop() == 0
    assert status["checkpoint"]["epoch"] == 0
    found = [record.key["id"] for record in records(kafka, f"{name}.{name}.t")]
    assert sorted(found) == list(range(15))


def forgets(streamer: Streamer, kafka: Kafka, kept: object) -> None:
    """The commit log as it was when the streamer was killed before it could write a newer checkpoint."""
    topic = f"{streamer.name}.commit-log"
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.delete_topics([topic])[topic].result()
    until = time.monotonic() + 10
    while topic in client.list_topics(timeout=5).topics:
        assert time.monotonic() < until
        time.sleep(0.1)
    client.create_topics([NewTopic(topic, 1, config={"cleanup.policy": "compact"})])[topic].result()
    producer = Producer({"bootstrap.servers": kafka.address})
    producer.produce(topic, json.dumps(kept), streamer.name)
    assert producer.flush(30) == 0


def test_what_was_sent_behind_the_last_checkpoint_counts_too(
    make: Make, mysql_server: Callable[..., Database], kafka: Kafka
) -> None:
    """Both die: the streamer before its checkpoint, the first server before its replica had all."""
    first, second = mysql_server(server_id=11), mysql_server(server_id=12)
    failover.replicate(first, second)
    share_password(first, second)
    name = "bothdie"
    streamer = over(make, kafka, name, Pair(first, second)).started()
    insert(first, name, 0, 5)
    streamer.wait_until_released()
    kept = records(kafka, f"{name}.commit-log")[-1].value
    failover.caught_up(second, executed(first))
    failover.promote(second)
    insert(first, name, 5, 5)
    streamer.wait_until_released()
    streamer.kill()
    lost = str(executed(first).subtract(executed(second)))
    first.kill()
    forgets(streamer, kafka, kept)
    streamer.start()
    status = streamer.wait_for(lambda status: "lacks transactions" in str(status["last_error"]))
    assert lost in status["last_error"]["message"]
    assert status["state"] == "waiting"


def test_reset_or_restored_server_with_the_same_identity(
    make: Make, mysql_server: Callable[..., Database], kafka: Kafka
) -> None:
    """Pitfall "Reset or restored server": refused where something is missing, a new epoch where GTIDs prove that
    nothing is."""
    own = mysql_server()
    streamer = make("reset", mysql=own).started()
    insert(own, "reset", 0, 5)
    execute(own, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    insert(own, "reset", 5, 5)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    seen = str(executed(own))
    execute(own, "RESET BINARY LOGS AND GTIDS")
    fails(streamer, "wrong_server", "no longer has transactions that were streamed", "reset or restored")
    execute(own, f"SET GLOBAL gtid_purged = '{seen}'")
    insert(own, "reset", 10, 5)
    streamer.started()
    insert(own, "reset", 15, 5)
    status = streamer.wait_until_released()
    assert streamer.stop() == 0
    assert (status["checkpoint"]["epoch"], status["checkpoint"]["file"]) == (1, "binlog.000001")
    found = sorted(records(kafka, "reset.reset.t"), key=lambda record: record.seq)
    assert [record.key["id"] for record in found] == list(range(20)), "in the order of seq, each once"
