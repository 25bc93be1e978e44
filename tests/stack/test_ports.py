"""Ports for tests' servers."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from stack import ports
from stack.ports import HOST, free_port

SCRIPT = """
from stack import ports
ports.FREE = range({0.start}, {0.stop})
print(*(ports.free_port() for _ in range(5)))
"""


def test_none_is_given_twice_and_none_that_another_process_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    few = range(free_port(), ports.FREE.stop + 40)[:40]
    monkeypatch.setattr(ports, "FREE", few)
    here = [free_port() for _ in range(15)]
    command = [sys.executable, "-c", SCRIPT.format(few)]
    there = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert len({*here, *map(int, there)}) == 20


def test_the_server_that_it_is_for_listens_there() -> None:
    port = free_port()
    with socket.create_server((HOST, port)) as server, socket.create_connection((HOST, port)) as client:
        server.accept()[0].close()
        assert client.recv(1) == b""


def test_until_then_nobody_answers_there() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, free_port()))
