"""A server as a detached process of its own: started, waited for, found again, stopped without orphans.

What was started is written to `<home>/process.json` at once, with the process's start time, so that a
later command knows its own process from another one that was given the same number.
"""

from __future__ import annotations

import abc
import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from stack.errors import StackError
from stack.paths import writable_folder
from stack.ports import HOST, MARK, refuse_taken_port
from stack.running import Running, alive, of_session

log = logging.getLogger("stack")
# Set when the user gives up: every wait of every thread ends with CancelledError.
cancelled = threading.Event()


class CancelledError(StackError):
    """The start was given up."""

    def __init__(self) -> None:
        super().__init__("given up on request")


class Server(abc.ABC):
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
    @abc.abstractmethod
    def command(self) -> Sequence[str]: ...

    def environment(self) -> Mapping[str, str]:
        return dict(os.environ)

    def folder(self) -> Path:
        return self.home

    def ports(self) -> Mapping[str, int]:
        """Each port that the server will open, under the option that changes it."""
        return {self.port_option: self.port}

    def prepare(self) -> None:  # noqa: B027  a choice, not a duty
        """Downloads and makes what `command` needs; run when the ports are known to be free."""

    @abc.abstractmethod
    def healthy(self) -> bool: ...

    def keeps(self, running: psutil.Process) -> Sequence[str]:
        """What the running one was started with that this one would not be, each in words: it is not started twice."""
        return ()

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
        noted = self._noted()
        if noted is None:
            return None
        try:
            process = psutil.Process(noted.pid)
            same = abs(process.create_time() - noted.created) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return noted if same else None

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
        family = self._family()
        os.kill(running.pid, self.stop_signal)
        if not self._wait_gone([psutil.Process(running.pid)], self.stop_seconds if seconds is None else seconds):
            log.warning("%s: did not end in time and is killed", self.name)
        self.sweep(family)
        return True

    def kill(self) -> None:
        """SIGKILL to the process and all that it started, as a crash would end it."""
        self.sweep()

    def sweep(self, known: Sequence[psutil.Process] = ()) -> None:
        """Kills what is left of this server, such as the children of a process that was killed."""
        for _ in range(5):  # one that forks meanwhile is found in the next round
            family = [process for process in {*known, *self._family()} if alive(process)]
            if not family:
                break
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._wait_gone(family, 10)
        if self._child is not None:  # a zombie has its ports until the last of its threads has ended
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(10)
        with contextlib.suppress(OSError):
            self._state.unlink()

    # Inside
    @property
    def _state(self) -> Path:
        return self.home / "process.json"

    def _noted(self) -> Running | None:
        """The process that was started last for this folder, running or not."""
        try:
            return Running(**json.loads(self._state.read_text()))
        except (OSError, ValueError, TypeError):
            return None

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
        if kept := self._kept(running):
            raise StackError(
                f"{self.title} of {self.home} runs already, with {' and '.join(kept)}",
                f"Stop it first (`python -m stack down {self.name}`), then start it again.",
            )
        self._wait_healthy()
        log.info("%s: is up already on %s (process %d)", self.name, self.address, running.pid)

    def _kept(self, running: Running) -> Sequence[str]:
        try:
            return self.keeps(psutil.Process(running.pid))
        except psutil.Error:  # another user's, which tells nothing; or it ended just now
            return ()

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
        """Every living process of this server: by its mark, by its session, and the children of both.

        The mark alone is not enough, since a program that renames itself may overwrite its environment.
        """
        noted = self._noted()
        found: set[psutil.Process] = set()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if alive(process) and (self._marked(process) or (noted and of_session(process, noted))):
                    found |= {process, *process.children(recursive=True)}
        return list(found)

    def _marked(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == str(self.home)
        except (psutil.Error, OSError):
            return False

    def _wait_gone(self, processes: Sequence[psutil.Process], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while any(alive(process) for process in processes):
            if time.monotonic() > deadline:
                return False
            if self._child is not None:
                self._child.poll()  # reaps it: a zombie would count as running
            time.sleep(0.05)
        return True
