"""The base of all servers, with small servers of our own instead of real ones."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from stack.errors import StackError
from stack.ports import HOST, free_port
from stack.process import Server

LISTEN = """
import os, signal, socket, subprocess, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
subprocess.Popen(["sleep", "1000"], start_new_session=True)
if "nameless" in sys.argv: subprocess.Popen(["sleep", "1001"], env={})
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("listening", flush=True)
while True: time.sleep(1)
"""


class Small(Server):
    """Listens on its port, and has a child in a session of the child's own."""

    name, title, port_option = "small", "Small", "--small-port"
    start_seconds = 10.0
    code, words = LISTEN, ""

    def command(self) -> Sequence[str]:
        return [sys.executable, "-c", self.code, str(self.port), self.words]

    def healthy(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0 and "listening" in self.log_path.read_text()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    server = Small(tmp_path / "small", free_port())
    yield server
    server.kill()


def family(server: Server) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if marked(process, server)]


def marked(process: psutil.Process, server: Server) -> bool:
    try:
        return process.environ().get("HEADRACE_SERVER_HOME") == str(server.home) and process.status() != "zombie"
    except (psutil.Error, OSError):
        return False


def test_it_starts_once_and_stops_with_its_children(small: Small) -> None:
    assert small.start() is True
    assert small.start() is False
    assert len(family(small)) == 2
    assert small.stop() is True
    assert family(small) == []
    assert small.stop() is False


def test_another_object_of_the_same_folder_knows_it(small: Small) -> None:
    small.start()
    same = Small(small.home, small.port)
    assert same.pid == small.pid
    assert same.start() is False
    assert same.stop() is True
    assert small.pid is None


def test_children_of_a_killed_server_are_swept_at_the_next_start(small: Small) -> None:
    small.start()
    pid = small.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    (orphan,) = wait_for_family(small, 1)
    assert small.pid is None
    assert small.start() is True
    assert not marked(orphan, small)


def test_a_child_that_lost_the_mark_is_swept_too(small: Small) -> None:
    small.words = "nameless"
    small.start()
    (nameless,) = [child for child in psutil.Process(small.pid).children() if child.cmdline()[-1] == "1001"]
    small.kill()
    assert not nameless.is_running() or nameless.status() == psutil.STATUS_ZOMBIE


def wait_for_family(server: Server, size: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 5
    while len(family(server)) != size and time.monotonic() < deadline:
        time.sleep(0.05)
    return family(server)


def test_one_that_does_not_listen_to_sigterm_is_killed(small: Small) -> None:
    small.words = "stubborn"
    small.start()
    assert small.stop(seconds=0.3) is True
    assert family(small) == []


def test_a_number_given_to_another_process_is_not_taken_for_ours(small: Small) -> None:
    small.start()
    state = small.home / "process.json"
    text = state.read_text().replace(f'"pid": {small.pid}', f'"pid": {os.getpid()}')
    state.write_text(text)
    assert small.pid is None


def test_a_taken_port_names_port_process_and_option(small: Small) -> None:
    taker = subprocess.Popen([sys.executable, "-c", LISTEN, str(small.port)], stdout=subprocess.PIPE)
    try:
        assert taker.stdout
        assert taker.stdout.readline()
        with pytest.raises(StackError) as caught:
            small.start()
    finally:
        for process in [*psutil.Process(taker.pid).children(), taker]:
            process.kill()
        taker.wait()
    text = str(caught.value)
    assert f"port {small.port} of 127.0.0.1, meant for Small, is taken by process {taker.pid}" in text
    assert "change --small-port" in text


def test_one_of_another_folder_on_the_port_is_told(small: Small, tmp_path: Path) -> None:
    small.start()
    with pytest.raises(StackError, match=f"Headrace's server in {small.home}"):
        Small(tmp_path / "other", small.port).start()


def test_one_that_runs_on_another_port_is_not_started_twice(small: Small) -> None:
    small.start()
    with pytest.raises(StackError, match=f"runs already, on port {small.port} and not on"):
        Small(small.home, free_port()).start()


def test_a_server_that_ends_while_starting_says_which_log_and_its_last_lines(small: Small) -> None:
    small.code = "import sys; sys.exit('no such setting: colour')"
    with pytest.raises(StackError) as caught:
        small.start()
    assert "Small ended while starting (status 1)" in str(caught.value)
    assert str(small.log_path) in str(caught.value)
    assert "no such setting: colour" in str(caught.value)


def test_a_server_that_never_answers_is_stopped_again(small: Small) -> None:
    small.start_seconds = 0.5
    small.code = "import time; time.sleep(100)"
    with pytest.raises(StackError, match="did not answer within"):
        small.start()
    assert family(small) == []


def test_a_folder_that_cannot_be_written_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match=r"file/small cannot be written: .* with --data"):
        Small(tmp_path / "file" / "small", free_port()).start()
