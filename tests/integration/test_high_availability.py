"""Two streamers of one pipeline, of which one is active: the other takes over, and nobody writes twice."""

from __future__ import annotations

import signal
import time

import pytest

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, Streamer, rows
from tests.integration.test_exactly_once import Writer, committed
from tests.integration.topic_records import replayed

TAKEOVER_SECONDS = 10
ELECTED = "latest\n  high_availability: true"


def pair(make: Make, name: str) -> tuple[Streamer, Streamer]:
    """The active one, and the other in standby."""
    active = make(name, start=ELECTED).started()
    other = make(name, start=ELECTED)
    other.log_path = other.log_path.with_suffix(".other.log")
    other.file = other.file.rename(other.file.with_name(f"{name}-other.yaml"))
    other.start()
    other.wait_for(lambda status: status["state"] == "standby")
    time.sleep(3)  # a group that gained a member leaves the partition where it is
    assert active.status()["state"] == "streaming"
    assert other.status()["state"] == "standby"
    return active, other


def took_over(other: Streamer) -> float:
    began = time.monotonic()
    other.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])
    return time.monotonic() - began


@pytest.mark.parametrize("end", ["kill", "freeze", "stop"])
def test_the_standby_takes_over(make: Make, mysql: MySQL, kafka: Kafka, end: str) -> None:
    name = f"pair{end}"
    active, other = pair(make, name)
    writer = Writer(mysql, name)
    writer.start()
    active.wait_for(lambda status: status["checkpoint"]["events"] > 20)
    assert active.process is not None
    if end == "freeze":
        active.process.send_signal(signal.SIGSTOP)
    else:
        getattr(active, end)()
    seconds = took_over(other)
    assert seconds < TAKEOVER_SECONDS * (2 if end == "freeze" else 1.5), "on a busy machine"
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
    assert replayed(committed(kafka, name)) == rows(mysql, f"{name}.t")
    print(f"{end}: taken over within {seconds:.1f} s")
