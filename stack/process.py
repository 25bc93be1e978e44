"""A server as a detached process of its own: started, waited for, found again, stopped without orphans.

What was started is written to `<home>/process.json` at once, with the process's start time, so that a
later command knows its own process from another one that was given the same number.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from stack.errors import StackError
from stack.paths import writable_folder

log = logging.getLogger("stack")
HOST = "127.0.0.1"


# Every process of a server carries its home in the environment: so none is missed, whoever its parent is by then.
MARK = "HEADRACE_SERVER_HOME"
# Set when the user gives up: every wait of every thread ends with CancelledError.
cancelled = threading.Event()


class CancelledError(StackError):
    """The start was given up."""

    def __init__(self) -> None:
        super().__init__("given up on request")


class Running(NamedTuple):
    """A process that this package started: its number, its start time (epoch seconds), its main port."""

    pid: int
    created: float
    port: int


class Server:
    """Base of the servers: a subclass gives `command()`, `healthy()` and, where needed, `prepare()`.

    `start()` returns when the server answers; it does nothing where this very server runs already.
    All raise StackError.
    """

    name = "server"
    title = "Server"
    port_option = "the port"
    data_option = "--data"
    start_seconds = 120.0
    stop_seconds = 30.0
    stop_signal = signal.SIGTERM

    def __init__(self, home: Path | str, port: int) -> None:
        self.home = Path(home).expanduser().absolute()
        self.port = port
        self._child: subprocess.Popen[bytes] | None = None

    # What a subclass says
    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return dict(os.environ)

    def folder(self) -> Path:
        return self.home

    def ports(self) -> Mapping[str, int]:
        """Each port that the server will open, under the option that changes it."""
        return {self.port_option: self.port}

    def prepare(self) -> None:
        """Downloads and makes what `command` needs; run when the ports are known to be free."""

    def healthy(self) -> bool:
        raise NotImplementedError

    @property
    def log_path(self) -> Path:
        return self.home / f"{self.name}.log"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    # What everyone calls
    @property
    def pid(self) -> int | None:
        """The number of the running process; None where it does not run."""
        running = self.running()
        return running.pid if running else None

    def running(self) -> Running | None:
        """The process of this server's folder, whoever started it; None where there is none."""
        try:
            state = Running(**json.loads(self._state.read_text()))
            process = psutil.Process(state.pid)
            if abs(process.create_time() - state.created) < 1.0 and process.status() != psutil.STATUS_ZOMBIE:
                return state
        except (OSError, ValueError, TypeError, psutil.NoSuchProcess):
            pass
        return None

    def start(self) -> bool:
        """Starts the server and waits until it answers. False where it ran already."""
        running = self.running()
        if running is not None:
            self._adopt(running)
            return False
        writable_folder(self.home, self.data_option)
        self.sweep()
        for option, port in self.ports().items():
            refuse_taken_port(self.title, port, option)
        self.prepare()
        began = time.monotonic()
        self._spawn()
        try:
            self._wait_healthy()
        except BaseException:
            self.kill()
            raise
        log.info("%s: ready on %s after %.1f s", self.name, self.address, time.monotonic() - began)
        return True

    def stop(self, seconds: float | None = None) -> bool:
        """Asks the process to end, kills what is left after `seconds`. False where it did not run."""
        running = self.running()
        if running is None:
            self.sweep()
            return False
        os.kill(running.pid, self.stop_signal)
        if not self._wait_gone([psutil.Process(running.pid)], self.stop_seconds if seconds is None else seconds):
            log.warning("%s: did not end in time and is killed", self.name)
        self.sweep()
        return True

    def kill(self) -> None:
        """SIGKILL to the process and all that it started, as a crash would end it."""
        self.sweep()

    def sweep(self) -> None:
        """Kills whatever carries this server's mark, such as the children of a process that was killed."""
        for _ in range(5):  # one that forks meanwhile is found in the next round
            family = self._family()
            if not family:
                break
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._wait_gone(family, 10)
        with contextlib.suppress(OSError):
            self._state.unlink()

    # Inside
    @property
    def _state(self) -> Path:
        return self.home / "process.json"

    def _spawn(self) -> None:
        with self.log_path.open("ab") as out:
            self._child = subprocess.Popen(
                list(self.command()),
                cwd=self.folder(),
                env={**self.environment(), MARK: str(self.home)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        created = psutil.Process(self._child.pid).create_time()
        state = Running(self._child.pid, created, self.port)
        self._state.write_text(json.dumps(state._asdict()))

    def _adopt(self, running: Running) -> None:
        if running.port != self.port:
            raise StackError(
                f"{self.title} of {self.home} runs already, on port {running.port} and not on {self.port}",
                f"Stop it first (`python -m stack down`), or give the port that it has with {self.port_option}.",
            )
        self._wait_healthy()
        log.info("%s: is up already on %s (process %d)", self.name, self.address, running.pid)

    def _wait_healthy(self) -> None:
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline:
            if cancelled.is_set():
                raise CancelledError
            if self.healthy():
                return
            if self.running() is None:
                status = self._child.poll() if self._child else None
                raise StackError(f"{self.title} ended while starting (status {status})", log=self.log_path)
            time.sleep(0.1)
        raise StackError(f"{self.title} did not answer within {self.start_seconds:.0f} s", log=self.log_path)

    def _family(self) -> list[psutil.Process]:
        """Every living process that carries this server's mark, the first one first."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == str(self.home) and alive(process):
                    found.append(process)
        return found

    def _wait_gone(self, processes: Sequence[psutil.Process], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while any(alive(process) for process in processes):
            if time.monotonic() > deadline:
                return False
            if self._child is not None:
                self._child.poll()  # reaps it: a zombie would count as running
            time.sleep(0.05)
        return True


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def refuse_taken_port(title: str, port: int, option: str) -> None:
    """Raises StackError where something listens on the port, naming its process where the system tells."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            return
        except OSError as error:
            reason = error.strerror
    owner = listener(port)
    by = f" by process {owner.pid} ({described(owner)})" if owner else f" ({reason})"
    raise StackError(f"port {port} of {HOST}, meant for {title}, is taken{by}", f"Stop that, or change {option}.")


def listener(port: int) -> psutil.Process | None:
    """The process that listens on the port; None where the system does not tell (another user's)."""
    try:
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port and connection.pid:
                return psutil.Process(connection.pid)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass
    return None


def described(process: psutil.Process) -> str:
    """The program's name, or which Headrace server of another data folder it is."""
    with contextlib.suppress(psutil.Error, OSError):
        home = process.environ().get(MARK)
        if home:
            return f"Headrace's server in {home}"
    try:
        return process.name()
    except psutil.Error:
        return "its name is hidden"


def free_port() -> int:
    """A port that nothing uses at this moment, for tests."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
