"""Two streamers of one pipeline, of which one is active: the other takes over, and nobody writes twice."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.few_keys import Writing
from tests.integration.proxied_kafka import proxied
from tests.integration.proxy import Proxy
from tests.integration.streaming import Make, Streamer, arrived, execute, insert, rows
from tests.integration.test_exactly_once import committed
from tests.integration.topic_records import records, replayed, silence

TAKEOVER_SECONDS = {"kill": 10, "freeze": 10, "cut": 10, "stop": 4}  # from the last record before to the first after
ELECTED = "latest\n  high_availability: true"


def pair(make: Make, name: str, kafka: Kafka, through: str = "") -> tuple[Streamer, Streamer]:
    """The active one, which may reach Kafka at an address of its own, and the other in standby."""
    active = make(name, kafka=kafka, start=ELECTED)
    active.file.write_text(active.file.read_text().replace(kafka.address, through or kafka.address))
    active.started()
    active.file = active.file.rename(active.file.with_name(f"{name}-active.yaml"))
    other = make(name, kafka=kafka, start=ELECTED)
    other.log_path = other.log_path.with_suffix(".other.log")
    other.file = other.file.rename(other.file.with_name(f"{name}-other.yaml"))
    other.start()
    other.wait_for(lambda status: status["state"] == "standby")
    time.sleep(3)  # a group that gained a member leaves the partition where it is
    assert active.status()["state"] == "streaming"
    assert other.status()["state"] == "standby"
    return active, other


def took_over(other: Streamer) -> None:
    other.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])


def assert_taken_over_in_time(kafka: Kafka, name: str, mysql: MySQL, end: str) -> None:
    """As a reader of the topic sees it, under a load that never rests."""
    found = committed(kafka, name)
    assert replayed(found) == rows(mysql, f"{name}.t")
    seconds = silence(found)
    print(f"{end}: taken over within {seconds:.1f} s")
    assert seconds < TAKEOVER_SECONDS[end]


@pytest.mark.parametrize("end", ["kill", pytest.param("freeze", marks=pytest.mark.soak), "stop"])
def test_the_standby_takes_over(make: Make, mysql: MySQL, kafka: Kafka, writing: Writing, end: str) -> None:
    name = f"pair{end}"
    active, other = pair(make, name, kafka)
    writer = writing(name)
    active.wait_for(lambda status: status["checkpoint"]["events"] > 20)
    assert active.process is not None
    if end == "freeze":
        active.process.send_signal(signal.SIGSTOP)
    else:
        getattr(active, end)()
    took_over(other)
    if end == "freeze":  # awake again it finds itself shut out, and stands by
        active.process.send_signal(signal.SIGCONT)
        active.wait_for(lambda status: status["state"] == "standby")
        assert "not the active streamer any more" in active.log()
        time.sleep(1)
        assert other.status()["state"] == "streaming"
    writer.end()
    other.wait_until_released()
    assert other.stop() == 0
    if end == "freeze":  # and takes its turn
        active.wait_for(lambda status: status["state"] == "streaming")
        assert active.stop() == 0
    assert_taken_over_in_time(kafka, name, mysql, end)


@pytest.mark.soak
def test_both_stop_in_time_while_kafka_is_away(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]) -> None:
    own = kafka_server()
    active, other = pair(make, "pairaway", own)
    insert(mysql, "pairaway", 0, 10)
    active.wait_until_released()
    own.kill()
    insert(mysql, "pairaway", 10, 10)
    active.wait_for(lambda status: status["queue"]["events"] >= 10)
    for streamer in (active, other):
        began = time.monotonic()
        assert streamer.stop(60) == 0
        assert time.monotonic() - began < 25, "15 s may be flushed for"
        assert "Traceback" not in streamer.log()


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[tuple[Kafka, Proxy]]:
    with proxied(tmp_path, Proxy) as found:
        yield found


def test_the_standby_takes_over_from_one_whose_network_is_cut(
    make: Make, mysql: MySQL, cut: tuple[Kafka, Proxy], writing: Writing
) -> None:
    """Nothing is closed: what either side sends just does not arrive. Joined again, the first one cannot write."""
    kafka, proxy = cut
    active, other = pair(make, "paircut", kafka, f"127.0.0.1:{proxy.port}")
    writer = writing("paircut")
    active.wait_for(lambda status: status["checkpoint"]["events"] > 20)
    proxy.flows.clear()
    took_over(other)
    before = other.status()["checkpoint"]["events"]
    other.wait_for(lambda status: status["checkpoint"]["events"] > before + 20)
    assert active.process is not None
    assert active.process.poll() is None
    proxy.flows.set()
    active.wait_for(lambda status: status["state"] == "standby")
    assert "not the active streamer any more" in active.log()
    time.sleep(1)
    assert other.status()["state"] == "streaming"
    writer.end()
    other.wait_until_released()
    assert_taken_over_in_time(kafka, "paircut", mysql, "cut")
    assert other.stop() == 0
    active.wait_for(lambda status: status["state"] == "streaming")
    insert(mysql, "paircut", 10**6, 3)
    active.wait_until_released()
    assert active.stop() == 0
    assert replayed(committed(kafka, "paircut")) == rows(mysql, "paircut.t")


def test_a_file_that_changed_while_its_streamer_stood_by_is_followed_from_the_take_over(
    make: Make, mysql: MySQL, kafka: Kafka
) -> None:
    execute(mysql, "CREATE DATABASE IF NOT EXISTS pairfile", "CREATE TABLE pairfile.hidden (id INT PRIMARY KEY)")
    active, other = pair(make, "pairfile", kafka)
    execute(mysql, "INSERT INTO pairfile.hidden VALUES (1)")
    active.wait_until_released()
    other.file.write_text(other.file.read_text().replace('exclude: ["*.hidden*"]', "exclude: []"))
    assert other.status()["state"] == "standby"
    active.kill()
    took_over(other)
    execute(mysql, "INSERT INTO pairfile.hidden VALUES (2)")
    insert(mysql, "pairfile", 1, 2)
    status = other.wait_until_released()
    assert status["tables"]["exclude"] == []
    assert other.stop() == 0
    assert arrived(kafka, "pairfile") == [1, 2]
    found = [record.key["id"] for record in records(kafka, "pairfile.pairfile.hidden")]
    assert found == [2], "from the take-over on"
