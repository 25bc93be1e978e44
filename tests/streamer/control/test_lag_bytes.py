"""The bytes of binlog that are to come, by the server's list of files."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from contract.pipeline import Source
from streamer.control import lag_bytes
from streamer.control.lag_bytes import LagBytes, behind
from streamer.errors import UnreachableError
from tests.streamer.fakes import pipeline

SIZES = {"binlog.000009": 500, "binlog.000010": 5_000_000_000, "binlog.000011": 70}
SERVER = pipeline().source


@pytest.mark.parametrize(
    ("file", "pos", "left"),
    [
        ("binlog.000011", 70, 0),
        ("binlog.000011", 90, 0),  # it was asked before
        ("binlog.000012", 4, 0),
        ("binlog.000010", 4_999_999_000, 1070),
        ("binlog.000009", 4, 5_000_000_566),
        ("binlog.000008", 4, 5_000_000_570),  # it is purged
    ],
)
def test_what_stands_behind_a_place(file: str, pos: int, left: int) -> None:
    assert behind(SIZES, file, pos) == left


class Server:
    def __init__(self) -> None:
        self.sizes, self.away, self.asked = SIZES, False, 0
        self.answers = threading.Event()
        self.answers.set()

    def files(self, source: Source) -> Mapping[str, int]:
        self.asked += 1
        self.answers.wait(10)
        if self.away:
            raise UnreachableError("connect to", source.where, "away", "Start it")
        return self.sizes


def settled(lag: LagBytes) -> None:
    assert lag._asking is not None
    lag._asking.join(10)


def test_nobody_waits_for_the_server_and_it_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    lag = LagBytes(server.files)
    server.answers.clear()
    began = time.monotonic()
    assert lag.latest(SERVER, "binlog.000011", 20) is None
    assert time.monotonic() - began < 1
    server.answers.set()
    settled(lag)
    assert [lag.latest(SERVER, "binlog.000011", 20) for _ in range(5)] == [50] * 5
    assert server.asked == 1
    assert lag.latest(SERVER, "", 4) is None, "nothing was read yet"
    other = SERVER.model_copy(update={"port": 3399})
    assert lag.latest(other, "binlog.000011", 20) is None, "another server's files are no measure"
    monkeypatch.setattr(lag_bytes, "EVERY_SECONDS", 0)
    lag._due = 0
    server.away = True
    lag.latest(SERVER, "binlog.000011", 20)
    settled(lag)
    assert lag.latest(SERVER, "binlog.000011", 20) is None
